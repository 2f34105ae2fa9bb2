"""MoQ in NumPy: quantizers, widths by update, and a small network that trains on rounded weights, by their formulas."""
import numpy as np

from philox import philox


def symmetric(w, bits, draw=None):
    """`w`: [groups, elements of each]. Steps are powers of 2 of the greatest magnitudes: exact in any float."""
    kind = w.dtype.type
    step = np.abs(w).max(1, keepdims=True) * kind(2.0 ** (1 - bits))
    step = np.where(step > 0, step, kind(1))
    quotient = w / step if draw is None else w / step + draw
    return np.clip(np.rint(quotient), kind(-2.0 ** (bits - 1)), kind(2.0 ** (bits - 1) - 1)) * step


def asymmetric(w, bits, draw=None):
    kind = w.dtype.type
    low, high = w.min(1, keepdims=True), w.max(1, keepdims=True)
    equal = np.where(np.abs(high) > 0, np.abs(high), kind(1))
    step = (high - low) * kind(2.0 ** -bits)
    step = np.where(step > 0, step, equal)
    first = np.rint(low / step)
    quotient = (w - first * step) / step
    quotient = quotient if draw is None else quotient + draw
    return (np.clip(np.rint(quotient), kind(0), kind(2.0 ** bits - 1)) + first) * step


def ternary(w):
    size = np.abs(w)
    is_large = size > w.dtype.type(0.7) * size.mean(1, keepdims=True, dtype=np.float64).astype(w.dtype)
    count = np.maximum(is_large.sum(1, keepdims=True), 1)
    return np.where(is_large, np.sign(w), 0) * ((size * is_large).sum(1, keepdims=True, dtype=np.float64) / count).astype(w.dtype)


def binary(w):
    return np.sign(w) * np.abs(w).mean(1, keepdims=True, dtype=np.float64).astype(w.dtype)


def draws(shape, stream, seed, step):
    """Of (-1/2, 1/2), for each place of a tensor: the upper 24 bits of a word, and half of what they leave."""
    count = int(np.prod(shape))
    word = philox([np.arange(count), np.zeros(count), np.full(count, step), np.full(count, stream)], [seed, seed >> 32])[0]
    return (((word >> np.uint64(8)).astype(np.float64) + 0.5) / 2**24 - 0.5).reshape(shape)


def image(w, bits, groups=1, scheme="symmetric", draw=None):
    """What a tensor is rounded to; with no bits, itself."""
    if not bits:
        return w
    rows = w.reshape(groups, -1)
    if scheme == "symmetric" and bits <= 2 and draw is None:
        return (ternary(rows) if bits == 2 else binary(rows)).reshape(w.shape).astype(w.dtype)
    draw = None if draw is None else draw.reshape(rows.shape).astype(w.dtype)
    return (symmetric if scheme == "symmetric" else asymmetric)(rows, bits, draw).reshape(w.shape)


def bits_after(update, start, target, period, offset):
    """0: as they are. The closed form, with q = update - offset."""
    if update < max(offset, 1):
        return 0
    q = update - offset
    return start if q < period else max(target, start - 1 - int(np.floor(np.log2(q / period))))


def share_after(update, start, target, period, offset, ratio):
    """Of the weights themselves: 1 at each drop, and when rounding begins."""
    if not ratio or not bits_after(update, start, target, period, offset):
        return 0.0
    begin = max(offset, 1)
    drops = [begin] + [offset + period * 2**k for k in range(start - target)]
    return max(0.0, 1 - ratio * (update - max(drop for drop in drops if drop <= update)))
