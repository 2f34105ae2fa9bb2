"""Trains the model of training_statistics_cases.py by PyTorch in float64, in a process of its own: Debian's python3-torch runs it.

    /usr/bin/python3 torch_batch_norm.py RUN.npz OUT.npz

RUN.npz has the weights by name, x and labels, the numbers micro, steps, rate and momentum, and accumulation, one for each training.
Writes ACCUMULATION/NAME: loss, eval, which is that of an evaluation after each step, and the weights, running means and variances
at the end. PyTorch's batch norms move the
variance that n - 1 divides by, and count the other share of their momentum; this moves them as ONNX says. Shares no code with the
compiler.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F

STATISTICS = {f"{kind}{i}" for kind in ("mean", "var") for i in (0, 1)}
MOMENTA = {0: 0.875, 1: 0.75}


def norm(w, x, i, training):
    mean, var = w[f"mean{i}"], w[f"var{i}"]
    if training:
        axes = (0, 2, 3)
        batch = x.mean(axes), x.var(axes, unbiased=False)
        for name, value in ((f"mean{i}", batch[0]), (f"var{i}", batch[1])):
            w[name] = MOMENTA[i] * w[name] + (1 - MOMENTA[i]) * value.detach()
        mean, var = batch
    shaped = lambda v: v.reshape(1, -1, 1, 1)
    return shaped(w[f"scale{i}"]) * (x - shaped(mean)) / torch.sqrt(shaped(var) + 2**-10) + shaped(w[f"shift{i}"])


def loss_of(w, x, labels, training):
    h = norm(w, x, 0, training)
    h = torch.relu(norm(w, F.conv2d(h, w["k1"]), 1, training))
    h = torch.relu(norm(w, F.conv2d(h, w["k2"]), 1, training))
    return F.cross_entropy(h.mean((2, 3)) @ w["head"] + w["bias"], labels)


def trained(given, x, labels, number, accumulation):
    w = {name: torch.tensor(array).double().requires_grad_(name not in STATISTICS) for name, array in given.items()}
    optimizer = torch.optim.SGD([v for name, v in w.items() if name not in STATISTICS], lr=number["rate"], momentum=number["momentum"])
    found, place = {"loss": [], "eval": []}, 0
    for _ in range(number["steps"]):
        optimizer.zero_grad()
        total = 0
        for _ in range(accumulation):
            part = slice(place, place + number["micro"])
            loss = loss_of(w, x[part], labels[part], True) / accumulation
            loss.backward()
            total += loss.item()
            place = part.stop % len(x)
        optimizer.step()
        found["loss"].append(total)
        with torch.no_grad():
            found["eval"].append(loss_of(w, x, labels, False).item())
    return found | {name: v.detach().numpy() for name, v in w.items()}


def main(run, out):
    given = dict(np.load(run))
    number = {name: given.pop(name).item() for name in ("micro", "steps", "rate", "momentum")}
    x, labels, found = torch.tensor(given.pop("x")).double(), torch.tensor(given.pop("labels")), {}
    for accumulation in given.pop("accumulation").tolist():
        found |= {f"{accumulation}/{name}": array for name, array in trained(given, x, labels, number, accumulation).items()}
    np.savez(out, **found)


main(*sys.argv[1:])
