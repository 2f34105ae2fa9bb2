"""PyTorch's side: one rank that trains a GPT with DDP or FSDP over gloo, named by the variables that ds-run gives to ranks. Writes a row of
JSON for each step, as ds-run does, on rank 0.

usage: torch_ranks.py ddp|fsdp WEIGHTS.npz DATA.npz BATCH STEPS LOG
"""
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training-step"))
from torch_step import Gpt


def main():
    kind, weights, data, batch, steps, log = sys.argv[1:]
    rank, world = int(os.environ["DS_RANK"]), int(os.environ["DS_WORLD"])
    address, port = os.environ["DS_RENDEZVOUS"].split(":")
    os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=rank, world_size=world)
    model = Gpt({name: torch.from_numpy(array.copy()) for name, array in np.load(weights).items()})
    if kind == "ddp":
        model = DistributedDataParallel(model)
    else: # each block a unit, embeddings and head the last one, as ours
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    arrays = np.load(data)
    ids, labels = torch.from_numpy(arrays["input_ids"]), torch.from_numpy(arrays["labels"])
    rows = []
    for step in range(int(steps)):
        start = time.perf_counter()
        at = (step * world + rank) * int(batch) % len(ids)
        optimizer.zero_grad(set_to_none=True)
        loss = model(ids[at:at + int(batch)], labels[at:at + int(batch)])
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        rows.append({"step": step, "loss": float(total) / world, "step_ms": 1000 * (time.perf_counter() - start)})
    if rank == 0:
        rows.append({"version": torch.__version__, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
        Path(log).write_text("".join(json.dumps(row) + "\n" for row in rows))
    dist.barrier()
    dist.destroy_process_group()


main()
