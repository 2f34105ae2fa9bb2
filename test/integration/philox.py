"""The generator of dropout in NumPy: Philox4x32-10 (Salmon et al. 2011)."""
import numpy as np

MASK = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011): counters [4, n] and a key of two words, in 64-bit integers."""
    c, k = [np.asarray(word, np.uint64) & MASK for word in counter], [np.uint64(word) & MASK for word in key]
    for turn in range(10):
        if turn:
            k = [(k[0] + np.uint64(0x9E3779B9)) & MASK, (k[1] + np.uint64(0xBB67AE85)) & MASK]
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ k[0], second & MASK, (first >> np.uint64(32)) ^ c[3] ^ k[1], first & MASK]
    return c


def kept_at(places, ratio, stream, seed, step=0, micro=0):
    """Which of these places a dropout keeps."""
    places = np.asarray(places, np.uint64)
    high = (np.uint64(micro) + ((places >> np.uint64(32)) << np.uint64(24))) & MASK
    word = philox([places, high, np.uint64(step), np.uint64(stream)], [seed, seed >> 32])[0]
    return word >= np.uint64(round(ratio * 2**32))


def kept(shape, *arguments, **keywords):
    """The same of all places of a tensor."""
    return kept_at(np.arange(int(np.prod(shape))), *arguments, **keywords).reshape(shape)
