"""Gradients of models that PyTorch's exporter wrote, against autograd of the very modules they were written from.

torch_export.py writes and differentiates them; the graphs are the exporter's, decomposed norms and attentions and all. Debian's
PyTorch 1.13 has the exporter by TorchScript; the one by torch.export came later.
"""

import numpy as np

from kit import case, compile_model, expect, tool
from training_cases import NOISE, TOLERANCE, torch


def same_as_the_module(folder, kind, *options):
    torch("torch_export.py", kind, folder)
    package = compile_model(folder / "model.onnx", folder, "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", *options)
    tool("ds-run", "gradients", package, f"--inputs={folder / 'inputs.npz'}", f"--output={folder / 'ours.npz'}")
    ours, theirs = dict(np.load(folder / "ours.npz")), dict(np.load(folder / "gradients.npz"))
    expect(set(ours) == set(theirs), f"trained: {sorted(set(ours) ^ set(theirs))} on one side only")
    whole = np.sqrt(sum(float(np.sum(array.astype(float)**2)) for name, array in theirs.items() if name != "loss"))
    for name, array in theirs.items():
        off = np.linalg.norm(ours[name].astype(float) - array) / max(np.linalg.norm(array), NOISE * whole)
        expect(off <= TOLERANCE, f"{name} is off by {off:.3g}: {ours[name]}, expected {array}")


@case(seconds=8)
def transformer_encoder(folder):
    same_as_the_module(folder, "encoder")


@case(seconds=6)
def convolutions_with_batch_norm(folder):
    same_as_the_module(folder, "pictures")


@case(seconds=5)
def perceptron_with_layer_norm(folder):
    same_as_the_module(folder, "perceptron")


@case(seconds=12)
def gru(folder):
    """The exporter slices and joins what the module has as weights: they are named here."""
    same_as_the_module(folder, "gru", r"--train=^(table|cell|out)\.")


@case(seconds=8)
def lstm(folder):
    same_as_the_module(folder, "lstm", r"--train=^(table|cell|out)\.")
