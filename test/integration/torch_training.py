"""Trains an ONNX model by PyTorch, in a process of its own: Debian's python3-torch runs it.

    /usr/bin/python3 torch_training.py RUN.json

RUN.json has `graph` (what torch_graph.py writes), `data` (.npz), `out` (.npz), `loss` as of torch_oracle.py, `config` (a
ds_config.json), `steps`, `double`, `threads`, `frozen` and `no_decay` (parts of names), `epochs`. Samples come in order, a last batch
of an epoch may be smaller. Writes loss, grad_norm, lr and momentum of each step, and the weights after it. Schedules and LAMB are written down here, from their
formulas; Adagrad and LAMB are NumPy in float64, the other rules are torch.optim. Shares no code with the compiler.
"""
import itertools
import json
import math
import sys

import numpy as np
import torch

import torch_oracle


def cycle(p, done):
    """(rate, momentum) of OneCycle after `done` updates: the scheduler counts them from 1."""
    first = p.get("cycle_first_step_size", 2000)
    second = p.get("cycle_second_step_size", first)
    low, high = p["cycle_min_lr"], p["cycle_max_lr"]
    low_momentum, high_momentum = p.get("cycle_min_mom", 0.8), p.get("cycle_max_mom", 0.9)
    if done <= first + second:
        up = done / first if done <= first else (first + second - done) / second
        return low + (high - low) * up, high_momentum - (high_momentum - low_momentum) * up
    past = (done - first - second) / p["decay_step_size"] if p.get("decay_step_size") else 0
    return low / (1 + p.get("decay_lr_rate", 0) * past), high_momentum * (1 + p.get("decay_mom_rate", 0) * past)


def rates(config, k):
    """(rate, momentum) of the update after k others. `it` is what a scheduler that was advanced k times has."""
    optimizer, scheduler = config["optimizer"].get("params", {}), config.get("scheduler")
    lr = optimizer.get("lr", 0.01 if config["optimizer"]["type"] == "Adagrad" else 1e-3)
    momentum = optimizer.get("betas", [0.9])[0] if config["optimizer"]["type"] in ("Adam", "AdamW", "Lamb") else \
        optimizer.get("momentum", 0.0)
    if not scheduler:
        return lr, momentum
    p, it, kind = scheduler["params"], k - 1, scheduler["type"]
    if kind == "OneCycle":
        lr, cycled = cycle(p, k)
        return lr, cycled if p.get("cycle_momentum", True) else momentum
    if kind == "LRRangeTest":
        u = (it + 1) / p.get("lr_range_test_step_size", 2000)
        u = math.floor(u) if p.get("lr_range_test_staircase") else u
        return p.get("lr_range_test_min_lr", 1e-3) * (1 + p.get("lr_range_test_step_rate", 1.0) * u), momentum
    steps, it = max(2, p.get("warmup_num_steps", 1000)), max(it, 0)
    share = 1.0
    if it < steps:
        share = it / steps if p.get("warmup_type") == "linear" else math.log(it + 1) / math.log(steps)
    if kind == "WarmupCosineLR":
        total, least = p["total_num_steps"], p.get("cos_min_ratio", 1e-4)
        if it < steps:
            least_ratio = p.get("warmup_min_ratio", 0.0)
            return lr * (least_ratio + (1 - least_ratio) * share), momentum
        way = min(1.0, (it - steps + 1) / max(1, total - steps))
        return lr * (least + (1 - least) * (1 + math.cos(math.pi * way)) / 2), momentum
    if kind == "WarmupDecayLR" and it >= steps:
        total = p["total_num_steps"]
        share = max(0.0, (total - it) / max(1, total - steps))
    low, high = p.get("warmup_min_lr", 0.0), p.get("warmup_max_lr", 1e-3)
    return low + (high - low) * share, momentum


class Adagrad:
    def __init__(self, parameters, p):
        self.parameters, self.p = parameters, p
        self.sums = [np.full(x.shape, p.get("initial_accumulator_value", 0.0)) for x in parameters]
        self.steps = 0

    def step(self, lr, momentum):
        for x, total in zip(self.parameters, self.sums):
            g = x.grad.numpy().astype(np.float64) + self.p.get("weight_decay", 0.0) * x.detach().numpy()
            total += g * g
            slowed = lr / (1 + self.steps * self.p.get("lr_decay", 0.0))
            with torch.no_grad():
                x -= torch.from_numpy(slowed * g / (np.sqrt(total) + self.p.get("eps", 1e-10))).to(x.dtype)
        self.steps += 1


class Lamb:
    """As facts of DeepSpeed's fused kernel: the ratio is that of the uncorrected update, the correction multiplies all of it."""

    def __init__(self, parameters, p):
        self.parameters, self.p, self.steps = parameters, p, 0
        self.m, self.v = [np.zeros(x.shape) for x in parameters], [np.zeros(x.shape) for x in parameters]

    def step(self, lr, momentum):
        p, beta2 = self.p, self.p.get("betas", [0.9, 0.999])[1]
        self.steps += 1
        if p.get("bias_correction", True):
            lr = lr * math.sqrt(1 - beta2 ** self.steps) / (1 - momentum ** self.steps)
        for i, x in enumerate(self.parameters):
            g, w = x.grad.numpy().astype(np.float64), x.detach().numpy().astype(np.float64)
            self.m[i] = momentum * self.m[i] + (1 - momentum) * g
            self.v[i] = beta2 * self.v[i] + (1 - beta2) * g * g
            eps = p.get("eps", 1e-8)
            root = np.sqrt(self.v[i] + eps) if p.get("eps_inside_sqrt") else np.sqrt(self.v[i]) + eps
            u = self.m[i] / root + p.get("weight_decay", 0.0) * w
            size, other = np.linalg.norm(w), np.linalg.norm(u)
            trust = np.clip(size / other, p.get("min_coeff", 0.01), p.get("max_coeff", 10.0)) if size > 0 and other > 0 else 1.0
            with torch.no_grad():
                x -= torch.from_numpy(lr * trust * u).to(x.dtype)


class Torch:
    """A rule of torch.optim; the rate and the momentum are set before each step."""

    def __init__(self, parameters, kind, p, spared):
        decay = p.get("weight_decay", 0.0)
        groups = [{"params": [x for x in parameters if id(x) not in spared], "weight_decay": decay},
                  {"params": [x for x in parameters if id(x) in spared], "weight_decay": 0.0}]
        if kind == "SGD":
            self.rule = torch.optim.SGD(groups, lr=1.0, momentum=p.get("momentum", 0.0), dampening=p.get("dampening", 0.0),
                                        nesterov=p.get("nesterov", False))
        else:
            rule = torch.optim.AdamW if kind == "AdamW" or p.get("adam_w_mode", True) else torch.optim.Adam
            self.rule = rule(groups, lr=1.0, betas=p.get("betas", [0.9, 0.999]), eps=p.get("eps", 1e-8))
        self.kind = kind

    def step(self, lr, momentum):
        for group in self.rule.param_groups:
            group["lr"] = lr
            if self.kind == "SGD":
                group["momentum"] = momentum
            else:
                group["betas"] = momentum, group["betas"][1]
        self.rule.step()


def optimizer(parameters, config, spared):
    """`spared`: ids of parameters without decay."""
    kind, p = config["optimizer"]["type"], config["optimizer"].get("params", {})
    return {"Adagrad": Adagrad, "Lamb": Lamb}[kind](parameters, p) if kind in ("Adagrad", "Lamb") else Torch(parameters, kind, p, spared)


def batches(samples, size, epochs):
    """Ranges of samples, epoch after epoch."""
    for _ in range(epochs):
        for start in range(0, samples, size):
            yield slice(start, min(start + size, samples))


def main():
    run = json.loads(open(sys.argv[1]).read())
    config = run["config"]
    torch.set_num_threads(run.get("threads", 1))
    graph, values, parameters = torch_oracle.load(run["graph"], run["double"])
    parameters = {name: x for name, x in parameters.items() if not any(part in name for part in run.get("frozen", []))}
    data = {name: torch.from_numpy(array) for name, array in np.load(run["data"]).items()}
    if run["double"]:
        data = {name: x.double() if x.is_floating_point() else x for name, x in data.items()}
    spared = {id(x) for name, x in parameters.items() if any(part in name for part in run.get("no_decay", []))}
    rule = optimizer(list(parameters.values()), config, spared)
    order = batches(len(next(iter(data.values()))), config["train_micro_batch_size_per_gpu"], run.get("epochs", 1 << 30))
    accumulation = config.get("gradient_accumulation_steps", 1)
    log = {"loss": [], "grad_norm": [], "lr": [], "momentum": []}
    for step in range(run["steps"]):
        for x in parameters.values():
            x.grad = torch.zeros_like(x)
        losses, sizes, ranges = [], [], list(itertools.islice(order, accumulation))
        for rows in ranges:
            found = torch_oracle.run(graph, {**values, **{name: x[rows] for name, x in data.items()}})
            loss = torch_oracle.loss_of(found, run["loss"])
            (loss / len(ranges)).backward()
            losses.append(loss.item())
            sizes.append(rows.stop - rows.start)
        norm = torch.sqrt(sum((x.grad.double() ** 2).sum() for x in parameters.values())).item()
        if config.get("gradient_clipping"):
            torch.nn.utils.clip_grad_norm_(list(parameters.values()), config["gradient_clipping"])
        lr, momentum = rates(config, step)
        rule.step(lr, momentum)
        for name, value in (("loss", np.average(losses, weights=sizes)), ("grad_norm", norm), ("lr", lr), ("momentum", momentum)):
            log[name].append(value)
    np.savez(run["out"], **{name: np.array(column) for name, column in log.items()},
             **{"weight/" + name: x.detach().numpy() for name, x in parameters.items()})


if __name__ == "__main__":
    main()
