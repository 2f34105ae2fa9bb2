"""Exports a PyTorch module to ONNX and differentiates that same module, in a process of its own: Debian's python3-torch runs it.

    /usr/bin/python3 torch_export.py KIND FOLDER

Writes model.onnx (by torch.onnx.export), inputs.npz (with labels) and gradients.npz: the loss, and the gradient of each parameter
by PyTorch's name. Nothing here knows how ONNX operators are computed.
"""
import sys

import numpy as np
import torch
from torch import nn

FOLDER = sys.argv[2]


class Encoder(nn.Module):
    """A classifier of sequences: two layers of nn.TransformerEncoder."""

    def __init__(self):
        super().__init__()
        self.table, self.places = nn.Embedding(31, 16), nn.Parameter(torch.randn(32, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.layers, self.out = nn.TransformerEncoder(layer, 2), nn.Linear(16, 5)

    def forward(self, ids):
        return self.out(self.layers(self.table(ids) + self.places[:ids.shape[1]]).mean(1))


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        # A norm takes a bias before it away again: its gradient is rounding.
        self.body = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(6, 8, 3, stride=2, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 1),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.body(x))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.table, self.cell, self.out = nn.Embedding(23, 7), kind(7, 6, batch_first=True, bidirectional=True), nn.Linear(12, 4)

    def forward(self, ids):
        return self.out(self.cell(self.table(ids))[0].mean(1))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 12), nn.Tanh(), nn.LayerNorm(12), nn.Linear(12, 5))

    def forward(self, x):
        return self.body(x)


def ids(count):
    return torch.randint(0, count, (3, 8))


MODELS = {"encoder": (Encoder, lambda: ids(31), {0: "n", 1: "length"}, 5), "pictures": (Pictures, lambda: torch.randn(5, 2, 10, 11), {0: "n"}, 4),
          "gru": (lambda: Recurrent(nn.GRU), lambda: ids(23), {0: "n", 1: "length"}, 4),
          "lstm": (lambda: Recurrent(nn.LSTM), lambda: ids(23), {0: "n", 1: "length"}, 4),
          "perceptron": (Perceptron, lambda: torch.randn(7, 9), {0: "n"}, 5)}


def main():
    torch.manual_seed(3)
    make, draw, axes, classes = MODELS[sys.argv[1]]
    module, x = make(), draw()
    with torch.no_grad():  # away from what fresh modules begin with, such as ones and zeros
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    trains = sys.argv[1] == "pictures"  # whose norms take the statistics of the batch
    module.train(trains)
    mode = torch.onnx.TrainingMode.TRAINING if trains else torch.onnx.TrainingMode.EVAL
    start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    # Folding would merge or transpose what the module has as parameters.
    torch.onnx.export(module, (x,), FOLDER + "/model.onnx", input_names=["x"], output_names=["logits"], training=mode,
                      dynamic_axes={"x": axes, "logits": {0: "n"}}, opset_version=16, do_constant_folding=False)
    module.load_state_dict(start)  # tracing has moved running statistics
    module.train(trains)
    x = draw()
    labels = torch.randint(0, classes, (len(x),))
    loss = nn.functional.cross_entropy(module(x), labels)
    loss.backward()
    np.savez(FOLDER + "/inputs.npz", x=x.numpy(), labels=labels.numpy())
    np.savez(FOLDER + "/gradients.npz", loss=loss.detach().numpy(),
             **{name: parameter.grad.numpy() for name, parameter in module.named_parameters()})


if __name__ == "__main__":
    main()
