"""Gradients of tables that travel by rows: the bits of whole ones, bytes by the formula from the data that each rank reads, steps where the
whole is less, ranks that touch nothing; plans bound what is counted; what falls back, and why."""
import json

import numpy as np

from kit import case, expect, tool
from programs import SEED
from ranks_runs import logical, moved, random, replace_manifest, same, with_weights
from training_runs import settings, train_package, write_config

MICRO, ACCUMULATION, STEPS = 2, 2, 10
ROWS, WIDTH, LENGTH = 60, 8, 40
HEAD = """<ir_version: 9, opset_import: ["": 17]> m (int64[n, 40] ids, float[n, 40, 1] mask) => (float[n, c] y)
          { e = Gather (table, ids) k = Mul (e, mask) s = ReduceMean <axes = [1], keepdims = 0> (k) t = Tanh (s) """
APART, TIED = HEAD + "z = MatMul (t, w) y = Add (z, b) }", HEAD + "w = Transpose <perm = [1, 0]> (table) y = MatMul (t, w) }"
SITE = "gradients/table"


def model(g):
    return with_weights(APART, {"table": g.standard_normal((ROWS, WIDTH)), "w": g.standard_normal((WIDTH, 4)), "b": g.standard_normal(4)})


def micro_batches(ranks, rank, step):
    """The first samples of those that a rank reads in a step, without shuffling."""
    return [(step * ranks * ACCUMULATION + k) * MICRO for k in range(rank, ranks * ACCUMULATION, ranks)]


def samples(path, g, ranks):
    """Steps in which ranks touch nearly all rows, few ones, or one rank none at all. A masked token has no gradient."""
    count = STEPS * ranks * ACCUMULATION * MICRO
    ids, mask = g.integers(0, ROWS, (count, LENGTH)), np.zeros((count, LENGTH, 1), np.float32)
    for step in range(STEPS):
        for rank in range(ranks):
            share = 1 if step % 3 == 1 else 0 if step % 3 == 2 and rank == step % ranks else 0.04
            for first in micro_batches(ranks, rank, step):
                mask[first:first + MICRO] = g.random((MICRO, LENGTH, 1)) < share
    np.savez(path, ids=ids, mask=mask, labels=g.integers(0, 4, count))
    return path


def touched(data, ranks, rank, step):
    """How many rows: those of any micro-batch, each once."""
    rows = set()
    for first in micro_batches(ranks, rank, step):
        seen = slice(first, first + MICRO)
        rows |= set(data["ids"][seen][data["mask"][seen, :, 0] != 0].tolist())
    return len(rows)


def expected_bytes(data, ranks, stage=0, size=4):
    """Of each rank, [sent, received]; and in how many steps rows were sent, and by a rank that had none. At stage 1 the table lies in a unit, of blocks
    of 64 elements, and sums do not come back."""
    total, sparse, silent = np.zeros((ranks, 2), int), 0, 0
    block, ways = (64, 1) if stage else (1, 2)
    shard = -(-ROWS * WIDTH // (ranks * block)) * block
    row = 8 + WIDTH * size
    for step in range(STEPS):
        counts = np.array([touched(data, ranks, rank, step) for rank in range(ranks)])
        total += 8 * (ranks - 1)
        if counts.sum() * row < ways * shard * ranks * size:
            sparse, silent = sparse + 1, silent + int((counts == 0).any())
            total[:, 0] += (ranks - 1) * counts * row
            total[:, 1] += (counts.sum() - counts) * row
        else:
            total += ways * (ranks - 1) * shard * size
    return total, sparse, silent


def configuration(isSparse, **more):
    return settings(micro=MICRO, accumulation=ACCUMULATION, gradient_clipping=0.5, sparse_gradients=isSparse, **more)


def train(package, data, ranks, out, transport, *options):
    launch = [f"--ranks={ranks}", f"--transport={transport}"] if ranks > 1 else []
    tool("ds-run", *launch, "train", package, f"--data={data}", f"--steps={STEPS}", "--threads=1", "--shuffle=off", f"--checkpoint={out}",
         f"--counters={out}.json", *options)
    return logical(out)


def plan_of(folder, ranks):
    tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
         f"--config={folder / 'ds_config.json'}", f"--mesh=data={ranks}", f"--plan={folder / 'plan.json'}")
    return {site["site"]: site for site in json.loads((folder / "plan.json").read_text())["sites"]}


def judge_bytes(path, plan, expected, ranks):
    for number, rank in enumerate(json.loads(path.read_text())["ranks"]):
        sites = {site["site"]: site for site in rank["sites"]}
        expect(sites.keys() == plan.keys(), f"sites {sorted(sites)}, planned {sorted(plan)}")
        found = sites[SITE]
        sent = [found["sent"], found["received"]]
        expect(found["calls"] == STEPS and sent == expected[number].tolist(),
               f"seed {SEED}: rank {number} of {ranks}: {found['calls']} calls moved {sent}, expected {expected[number]}")
        for name, site in sites.items():
            for key in ("sent", "received"):
                most = STEPS * plan[name][key]
                expect(site[key] <= most if name == SITE else site[key] == most, f"{name}: {key} {site[key]}, planned {most}")


@case(seconds=14)
def bits_and_bytes(folder):
    """Beside a package whose tables travel whole, with the same data: at both stages, and in a narrower type, or kept in it."""
    proto = model(random(301))
    for stage, kind in ((SEED % 2, "fp32"), (1 - SEED % 2, ("bf16", "fp16")[SEED // 2 % 2])):
        types = ({"communication_data_type": kind}, {"data_types": {"grad_accum_dtype": kind}})[SEED // 4 % 2]
        asked = {"zero_optimization": {"stage": stage}, **types}
        packages = {isSparse: train_package(folder, proto, configuration(isSparse, **asked), logits="y", name=f"{isSparse}.dsp") for isSparse in (False, True)}
        for ranks in (1, 2, 3) if stage == SEED % 2 else (2, 3):
            what = f"{ranks} ranks, stage {stage}, {kind}"
            path = samples(folder / f"data{ranks}.npz", random(302, ranks), ranks)
            dense = train(packages[False], path, ranks, folder / f"dense{stage}{kind}{ranks}", "shm")
            moved(dense, proto)
            expected, sparse, silent = expected_bytes(np.load(path), ranks, stage, 4 if kind == "fp32" else 2)
            expect(ranks == 1 or (0 < silent < sparse < STEPS), f"{what}: {sparse} steps by rows, {silent} with a silent rank: no judge of both")
            for transport in ("shm", "tcp")[:ranks] if stage == 0 else ("shm",):
                out = folder / f"{transport}{stage}{kind}{ranks}"
                same(train(packages[True], path, ranks, out, transport), dense, f"{what}, {transport}")
                if ranks > 1:
                    plan = plan_of(folder, ranks)
                    expect([plan[SITE]["codec"], plan[SITE]["calls"]] == ["sparse_rows", 1], f"plan: {plan[SITE]}")
                    judge_bytes(out.with_name(out.name + ".json"), plan, expected, ranks)


@case(seconds=4)
def more_than_the_whole(folder):
    """Where other ranks have no rows, one with all of them sends more than the whole would be, and one without receives more of two that have
    many; all together send less. No plan is below that."""
    proto, ranks, g = model(random(311)), 3, random(312)
    package = train_package(folder, proto, configuration(True), logits="y")
    plan = plan_of(folder, ranks)
    most = [8 * (ranks - 1) + (ranks - 1) * ROWS * (8 + WIDTH * 4), 8 * (ranks - 1) + 2 * ROWS * WIDTH * 4]
    expect([plan[SITE]["sent"], plan[SITE]["received"]] == most, f"plans {plan[SITE]}, expected {most}")
    for active, rows in (((1,), ROWS), ((1, 2), ROWS * 2 // 3)):
        path = samples(folder / "data.npz", g, ranks)
        data = dict(np.load(path))
        data["mask"][:] = 0
        for step in range(STEPS):
            for rank in active:
                for first in micro_batches(ranks, rank, step):
                    data["mask"][first:first + MICRO] = 1
                    data["ids"][first:first + MICRO] = g.permutation(MICRO * LENGTH).reshape(MICRO, LENGTH) % rows
        np.savez(path, **data)
        train(package, path, ranks, folder / f"run{rows}", "shm")
        expected, sparse, _ = expected_bytes(data, ranks)
        whole = STEPS * (8 * (ranks - 1) + 2 * (ranks - 1) * ROWS * WIDTH // ranks * 4)
        expect(sparse == STEPS and (expected.max(0) > whole).any(), f"{sparse} of {STEPS} steps by rows, {expected} bytes, {whole} of the whole")
        judge_bytes(folder / f"run{rows}.json", plan, expected, ranks)


@case(seconds=6)
def what_falls_back(folder):
    """A tied table and shared gradients: why, once for each table, and the bits of a package that was not asked."""
    g = random(321)
    tied = with_weights(TIED, {"table": g.standard_normal((ROWS, WIDTH))})
    path = samples(folder / "data.npz", random(322), 2)
    for proto, stage, reason in ((tied, SEED % 2, "reads the table, too, and may touch all rows"),
                                 (model(g), 2, "at zero_optimization.stage 2 ranks own parts of it")):
        states = []
        for isSparse in (False, True):
            config = configuration(isSparse, zero_optimization={"stage": stage})
            states.append(train(train_package(folder, proto, config, logits="y"), path, 2, folder / f"run{stage}{isSparse}", "shm"))
        same(states[1], states[0], reason)
        write_config(folder, configuration(True, zero_optimization={"stage": stage}))
        result = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
                      f"--config={folder / 'ds_config.json'}", "--mesh=data=2", f"--plan={folder / 'plan.json'}")
        expect(result.err.count("warning: sparse_gradients: the gradient of 'table' travels as a whole: ") == 1 and reason in result.err,
               f"expected once: {reason}\n{result}")
        sites = json.loads((folder / "plan.json").read_text())["sites"]
        expect(all(site["codec"] == "none" for site in sites), f"sites {sites}")


@case(seconds=6)
def a_package_that_lies(folder):
    """Rows that do not divide the table are said before anything is sent, also where nothing would be."""
    package, path = train_package(folder, model(random(331)), configuration(True), "--reference", logits="y"), samples(folder / "data.npz", random(332), 2)
    manifest = json.loads((package / "manifest.json").read_text())
    entry = next(entry for entry in manifest["variants"][0]["entries"] if entry["name"] == "micro")
    part = next(collective for collective in entry["collectives"] if collective["site"] == SITE)["parts"][0]
    expect(part["row_length"] == WIDTH, f"part {part}")
    part["row_length"] = 7
    replace_manifest(package, manifest)
    for ranks in (1, 2):
        tool("ds-run", *([f"--ranks={ranks}"] if ranks > 1 else []), "train", package, f"--data={path}", "--steps=1", "--threads=1", code=1,
             says=f"a tensor of {ROWS * WIDTH} elements in rows of 7, expected a divisor of that")
