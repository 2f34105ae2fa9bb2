"""The eigenvalues of greatest magnitude of each layer's Hessian, by PyTorch in float64, in a process of its own: Debian's python3-torch
runs it.

    /usr/bin/python3 torch_curvature.py RUN.json

RUN.json has `graph`, `data`, `loss` and `out` as of torch_training.py, `layers` (starts of names), `bits` of each layer and of the rest
(0: as they are) and `dense`: from the whole matrix, with all that come within 10 % of the greatest, else by 300 steps of power iteration.
Writes layer0, layer1, ..., the greatest first.
"""
import json
import sys

import numpy as np
import torch

import moq
import torch_oracle


def main():
    run = json.loads(open(sys.argv[1]).read())
    graph, values, parameters = torch_oracle.load(run["graph"], True)
    data = {name: torch.from_numpy(array) for name, array in np.load(run["data"]).items()}
    data = {name: x.double() if x.is_floating_point() else x for name, x in data.items()}
    layers = [[name for name in sorted(parameters) if name.startswith(start)] for start in run["layers"]]
    for name, x in parameters.items():
        bits = run["bits"][next((i for i, names in enumerate(layers) if name in names), -1)]
        if x.dim() > 1 and bits:
            with torch.no_grad():
                x.copy_(torch.from_numpy(moq.image(x.detach().numpy().astype(np.float32), bits)))
    loss = torch_oracle.loss_of(torch_oracle.run(graph, {**values, **data}), run["loss"])
    eigenvalues = []
    for names in layers:
        block = [parameters[name] for name in names]
        gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, block, create_graph=True)])

        def product(v):
            parts = torch.autograd.grad(gradient, block, v, retain_graph=True, allow_unused=True)
            return torch.cat([(torch.zeros_like(x) if g is None else g).reshape(-1) for g, x in zip(parts, block)])
        if run["dense"]:
            rows = torch.stack([product(row) for row in torch.eye(len(gradient), dtype=torch.float64)])
            found = torch.linalg.eigvalsh((rows + rows.T) / 2)
            greatest = found[found.abs().argsort(descending=True)]
            eigenvalues.append(greatest[greatest.abs() > 0.9 * greatest[0].abs()].tolist())
            continue
        v, value = torch.randn(len(gradient), dtype=torch.float64, generator=torch.Generator().manual_seed(0)), 0.0
        for _ in range(300):
            v = v / v.norm()
            after = product(v)
            value, v = (v @ after).item(), after
        eigenvalues.append([value])
    np.savez(run["out"], **{f"layer{i}": np.array(values) for i, values in enumerate(eigenvalues)})


if __name__ == "__main__":
    main()
