"""PyTorch's side of a run, in a process of its own: Debian's python3-torch runs it.

    /usr/bin/python3 torch_run.py RUN.json

RUN.json has `modules` (the folder of torch_oracle.py), `graph` (the model before training, as torch_graph.py writes it), `trained` (names),
`train` and `test` (.npz), `loss`, `config` (a ds_config.json), `steps`, `seed` (of the order of samples), `threads`, `out` (.json).
The model is the same graph, node by node in torch's functions; gradients and updates are torch's own.
"""
import json
import sys

import numpy as np
import torch

BATCH = 200  # of the test data: their losses do not depend on it


def samples(path):
    """Bytes are pixels of 0 to 1."""
    arrays = {name: torch.from_numpy(array) for name, array in np.load(path).items()}
    return {name: x.long() if name == "labels" else x.float() / 255 if x.dtype == torch.uint8 else x for name, x in arrays.items()}


def orders(count, seed):
    """Numbers of samples, a new order in each epoch."""
    g = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randperm(count, generator=g)


def batches(count, size, seed):
    for order in orders(count, seed):
        yield from order.split(size)


def main():
    run = json.loads(open(sys.argv[1]).read())
    sys.path.insert(0, run["modules"])
    import torch_oracle
    import torch_training
    torch.set_num_threads(run["threads"])
    config, logits = run["config"], run["loss"].split("|")[1]
    graph, values, parameters = torch_oracle.load(run["graph"], False)
    for name in parameters.keys() - set(run["trained"]):
        parameters.pop(name).requires_grad_(False)
    assert parameters.keys() == set(run["trained"]), parameters.keys() ^ set(run["trained"])
    train, test = samples(run["train"]), samples(run["test"])

    def forward(data, rows):
        return torch_oracle.run(graph, {**values, **{name: x[rows] for name, x in data.items()}})

    rule, losses = torch_training.optimizer(list(parameters.values()), config, set()), []
    order = batches(len(train["labels"]), config["train_micro_batch_size_per_gpu"], run["seed"])
    for step in range(run["steps"]):
        for x in parameters.values():
            x.grad = None
        loss = torch_oracle.loss_of(forward(train, next(order)), run["loss"])
        loss.backward()
        if config.get("gradient_clipping"):
            torch.nn.utils.clip_grad_norm_(list(parameters.values()), config["gradient_clipping"])
        rule.step(*torch_training.rates(config, step))
        losses.append(loss.item())
    total, correct, counted = 0.0, 0, 0
    with torch.no_grad():
        for rows in torch.arange(len(test["labels"])).split(BATCH):
            found = forward(test, rows)
            labels = test["labels"][rows]
            total += torch_oracle.loss_of(found, run["loss"]).item() * labels.numel()
            correct += (found[logits].argmax(-1) == labels).sum().item()
            counted += labels.numel()
    with open(run["out"], "w") as file:
        json.dump({"version": torch.__version__, "losses": losses, "loss": total / counted, "accuracy": correct / counted}, file)


main()
