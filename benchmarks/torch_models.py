"""BERT, the step of GPT-2 and a product as PyTorch's users write them, with the weights of a generated ONNX model."""
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn


class Linear(nn.Module):
    def __init__(self, weights, *names):
        """The merged linear layers of those names: ONNX has [in, out], PyTorch [out, in]."""
        super().__init__()
        self.weight = nn.Parameter(torch.cat([weights[f"{name}.weight"].T for name in names]).contiguous(), False)
        self.bias = nn.Parameter(torch.cat([weights[f"{name}.bias"] for name in names]), False)

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    def __init__(self, weights, name, epsilon):
        super().__init__()
        self.weight, self.bias = (nn.Parameter(weights[f"{name}.{kind}"], False) for kind in ("weight", "bias"))
        self.epsilon = epsilon

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


def heads_of(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


class BertLayer(nn.Module):
    def __init__(self, weights, name, heads):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(weights, *(f"{name}.{part}" for part in ("query", "key", "value")))
        self.out, self.up, self.down = (Linear(weights, f"{name}.{part}") for part in ("out", "up", "down"))
        self.norm1, self.norm2 = (Norm(weights, f"{name}.norm{i}", 1e-12) for i in (1, 2))

    def forward(self, x, mask):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(x.shape)
        x = self.norm1(self.out(context) + x)
        return self.norm2(self.down(F.gelu(self.up(x))) + x)


class Bert(nn.Module):
    def __init__(self, weights, heads=12):
        super().__init__()
        self.words, self.positions = (nn.Parameter(weights[f"{name}_embeddings"], False) for name in ("word", "position"))
        self.norm = Norm(weights, "embeddings.norm", 1e-12)
        count = sum(name.endswith(".query.weight") for name in weights)
        self.layers = nn.ModuleList(BertLayer(weights, f"layer.{i}", heads) for i in range(count))

    def forward(self, inputs):
        ids = inputs["input_ids"]
        x = self.norm(F.embedding(ids, self.words) + self.positions[:ids.shape[1]])
        mask = inputs["attention_mask"][:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask)
        return [x]


class Gpt2Layer(nn.Module):
    def __init__(self, weights, name, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.up, self.down = (
            Linear(weights, f"{name}.{part}") for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"))
        self.norm1, self.norm2 = (Norm(weights, f"{name}.ln_{i}", 1e-5) for i in (1, 2))

    def forward(self, x, keys, values):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        context = F.scaled_dot_product_attention(q, torch.cat([keys, k], 2), torch.cat([values, v], 2))
        x = x + self.out(context.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), k, v


class Gpt2Step(nn.Module):
    def __init__(self, weights, heads=12):
        super().__init__()
        count = sum(name.endswith(".attn.c_attn.weight") for name in weights)
        self.layers = nn.ModuleList(Gpt2Layer(weights, f"h.{i}", heads) for i in range(count))
        self.norm = Norm(weights, "ln_f", 1e-5)
        self.head = nn.Parameter(weights["wte"], False)

    def forward(self, inputs):
        x, new = inputs["hidden"], []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, inputs[f"past.{i}.key"], inputs[f"past.{i}.value"])
            new += [key, value]
        return [F.linear(self.norm(x), self.head), *new]


class Product(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weight = nn.Parameter(weights["w"].T.contiguous(), False)

    def forward(self, inputs):
        return [F.linear(inputs["x"], self.weight)]


def load(path, kind):
    """The network of a generated model (test/integration/generate.py, benchmarks/products), its weights as `kind`."""
    weights = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in onnx.load(path).graph.initializer}
    weights = {name: tensor.to(kind) if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    return (Bert if "word_embeddings" in weights else Product if "w" in weights else Gpt2Step)(weights)
