"""Text of a trained GPT, a letter for each call of ds-run: the checkpoint becomes an ONNX model again, which is compiled to infer."""
import json
import time

import side_by_side
from side_by_side import np

import tasks

PROMPT, LETTERS, HEAT = "And the LORD said unto ", 240, 0.6


def draw(folder, checkpoint, arguments):
    model, package = folder / "trained.onnx", folder / "trained.dsp"
    side_by_side.tool([arguments.bin / "ds-run", "checkpoint", "export", folder / checkpoint, f"--package={folder / 'model.dsp'}", "-o", model])
    side_by_side.compile_model(model, package, arguments.bin)
    letters, random = json.loads((folder / "letters.json").read_text()), np.random.default_rng(0)
    ids, start = [letters.index(letter) for letter in PROMPT], time.time()
    for _ in range(LETTERS):
        np.savez(folder / "inputs.npz", input_ids=np.array([ids[-tasks.CONTEXT:]]))
        side_by_side.tool([arguments.bin / "ds-run", package, "--inputs", folder / "inputs.npz", "--output", folder / "outputs.npz",
                           f"--threads={arguments.threads}", "--no-verify"])
        with np.load(folder / "outputs.npz") as arrays:
            logits = arrays["logits"][0, -1].astype(float) / HEAT
        chances = np.exp(logits - logits.max())
        ids.append(int(random.choice(len(letters), p=chances / chances.sum())))
    return {"text": "".join(letters[i] for i in ids), "heat": HEAT, "calls": LETTERS, "ms_a_call": round(1000 * (time.time() - start) / LETTERS, 1)}
