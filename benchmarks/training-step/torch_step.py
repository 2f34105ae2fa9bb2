"""PyTorch's side: a model from an .npz of weights, steps of AdamW on random tokens. Answers with ms for each line it reads.

usage: torch_step.py gpt|bert WEIGHTS.npz BATCH LENGTH THREADS f32|bf16 eager|compiled
"""
import json
import resource
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Linear(nn.Module):
    def __init__(self, weights, *names, columns=True):
        super().__init__()
        parts = [weights[f"{name}.weight"] for name in names]
        self.weight = nn.Parameter(torch.cat([part.T if columns else part for part in parts]).contiguous())
        self.bias = nn.Parameter(torch.cat([weights[f"{name}.bias"] for name in names]).contiguous())

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    def __init__(self, weights, name, epsilon):
        super().__init__()
        self.weight, self.bias, self.epsilon = nn.Parameter(weights[f"{name}.weight"]), nn.Parameter(weights[f"{name}.bias"]), epsilon

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


def attend(qkv, heads, causal):
    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in qkv.chunk(3, -1))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)
    return out.reshape(*out.shape[:2], -1)


class GptLayer(nn.Module):
    def __init__(self, weights, name):
        super().__init__()
        self.ln_1, self.ln_2 = (Norm(weights, f"{name}.{part}", 1e-5) for part in ("ln_1", "ln_2"))
        self.qkv, self.proj, self.up, self.down = (Linear(weights, f"{name}.{part}")
                                                   for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"))

    def forward(self, x):
        x = x + self.proj(attend(self.qkv(self.ln_1(x)), 12, True))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.wte, self.wpe = nn.Parameter(weights["wte"]), nn.Parameter(weights["wpe"])
        self.layers = nn.ModuleList(GptLayer(weights, f"h.{i}") for i in range(12))
        self.ln_f = Norm(weights, "ln_f", 1e-5)

    def forward(self, ids, labels):
        x = F.embedding(ids, self.wte) + self.wpe[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.ln_f(x), self.wte)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class BertLayer(nn.Module):
    def __init__(self, weights, name):
        super().__init__()
        self.qkv = Linear(weights, *(f"{name}.{part}" for part in ("query", "key", "value")))
        self.out, self.up, self.down = (Linear(weights, f"{name}.{part}") for part in ("out", "up", "down"))
        self.norm1, self.norm2 = (Norm(weights, f"{name}.norm{i}", 1e-12) for i in (1, 2))

    def forward(self, x):
        x = self.norm1(self.out(attend(self.qkv(x), 12, False)) + x)
        return self.norm2(self.down(F.gelu(self.up(x))) + x)


class Bert(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.words, self.positions = (nn.Parameter(weights[f"{name}_embeddings"]) for name in ("word", "position"))
        self.norm = Norm(weights, "embeddings.norm", 1e-12)
        self.layers = nn.ModuleList(BertLayer(weights, f"layer.{i}") for i in range(12))
        self.pooler, self.classifier = (Linear(weights, name, columns=False) for name in ("pooler", "classifier"))

    def forward(self, ids, labels):
        x = self.norm(F.embedding(ids, self.words) + self.positions[:ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.classifier(torch.tanh(self.pooler(x[:, 0]))).float(), labels)


def main():
    kind, path, batch, length, threads, precision, how = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    weights = {name: torch.from_numpy(array.copy()) for name, array in np.load(path).items()}
    model = {"gpt": Gpt, "bert": Bert}[kind](weights)
    words, shape = len(weights["wte" if kind == "gpt" else "word_embeddings"]), (int(batch), int(length))
    ids = torch.randint(0, words, shape)
    labels = torch.randint(0, words, shape) if kind == "gpt" else torch.randint(0, 3, shape[:1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    loss_of = torch.compile(model) if how == "compiled" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(ids, labels)
        loss.backward()
        optimizer.step()

    for _ in range(2):
        step()
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append(1000 * (time.perf_counter() - start))
        print(json.dumps({"ms": times, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


if __name__ == "__main__":
    main()
