"""What ds-opt says that ranks will take and move, and what they took and moved: the same, and what ZeRO's formulas say.

The oracle computes shards from the model's own shapes and the names of units, with ZeRO's table of bytes (1910.02054, section 5)."""
import json

import numpy as np
import onnx
from onnx import numpy_helper

import training_models as models
from kit import case, expect, tool
from ranks_runs import mlp, random, rows, tokens
from training_runs import settings, train_package, write_config

WIDTH, STEPS = 4, 3
ZERO = {"stage3_param_persistence_threshold": 0}


def planned(folder, ranks, *options):
    file = folder / f"plan{ranks}.json"
    tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--labels=labels", f"--config={folder / 'ds_config.json'}",
         f"--mesh=data={ranks}", f"--plan={file}", *options)
    return json.loads(file.read_text())


def counted(folder, package, data, ranks, *options):
    file = folder / f"counters{ranks}.json"
    tool("ds-run", "--ranks", ranks, "train", package, f"--data={data}", f"--steps={STEPS}", "--threads=1", f"--counters={file}", *options)
    return json.loads(file.read_text())


def same_sites(plan, counters, where):
    """Each site of micro-batches and updates, with its bytes, on every rank. Of parts of units, which are the first rank's or another's, ranks
    send as much together as the plan's first one."""
    expected = {site["site"]: (site["op"], STEPS * site["calls"], STEPS * site["sent"], STEPS * site["received"])
                for site in plan["sites"] if site["calls"]}
    totals = [sum(site[number] for site in expected.values()) for number in (2, 3)]
    isCut = any(", part " in name or name.endswith(", rest") for name in expected)
    for rank in counters["ranks"]:
        found = {site["site"]: (site["op"], site["calls"], site["sent"], site["received"]) for site in rank["sites"]}
        if isCut and rank["rank"] > 0:
            sums = [sum(site[number] for site in found.values()) for number in (2, 3)]
            expect(found.keys() == expected.keys() and sums == totals, f"{where}, rank {rank['rank']}: counted {found}, planned {expected}")
        else:
            expect(found == expected, f"{where}, rank {rank['rank']}: counted {found}, planned {expected}")
        held = {key: plan["bytes"][key] for key in ("parameters", "gradients", "optimizer", "others")}
        took = {key: rank["bytes"][key] for key in held}
        expect(took == held, f"{where}, rank {rank['rank']}: took {took}, planned {held}")


def zero_bytes(stage, ranks, shards):
    """parameters, gradients, optimizer of Adam in f32, and what gradients and parameters send in a step that reads each unit twice."""
    whole, part, total = ranks * sum(shards), sum(shards), 4
    held = {1: (whole, whole), 2: (whole, part), 3: (part, part)}[stage]
    sent = (ranks - 1) * part * total * (3 if stage == 3 else 2)
    return total * held[0], total * held[1], 2 * total * part, sent


def check_formula(plan, elements, stage, ranks, where):
    units = {unit["name"]: unit for unit in plan["units"]}
    expect(sum(unit["elements"] for unit in units.values()) == elements, f"{where}: units have {units}, expected {elements} elements together")
    shards = [-(-unit["elements"] // (64 * ranks)) * 64 for unit in units.values()]
    expect(shards == [unit["shard"] for unit in units.values()], f"{where}: shards of {units}, expected {shards}")
    *held, sent = zero_bytes(stage, ranks, shards)
    found = [plan["bytes"][key] for key in ("parameters", "gradients", "optimizer")]
    expect(found == held, f"{where}: planned {found}, expected {held}")
    moved = sum(site["sent"] for site in plan["sites"] if site["calls"] and not site["site"].startswith("norm"))
    return moved, sent


def padded_elements(path):
    return sum(-(-int(np.prod(numpy_helper.to_array(tensor).shape)) // 64) * 64 for tensor in onnx.load(path).graph.initializer)


@case(seconds=4)
def what_is_planned_is_taken_and_moved(folder):
    g = random(81)
    data = rows(folder / "data.npz", g)
    for stage in range(4):
        config = settings(micro=2, accumulation=2 if stage == 2 else 1, gradient_clipping=0.5, zero_optimization=ZERO | {"stage": stage})
        package = train_package(folder, mlp(g, inner=130, more=65), config, "--reference", logits="y", name=f"{stage}.dsp")
        for ranks in (2, 3):
            where = f"stage {stage}, {ranks} ranks"
            plan = planned(folder, ranks, "--logits=y", "--reference")
            same_sites(plan, counted(folder, package, data, ranks), where)
            if stage:
                moved, sent = check_formula(plan, padded_elements(folder / "model.onnx"), stage, ranks, where)
                if stage == 2: # gradients leave with each of two micro-batches
                    sent += sent // 2
                # What is read on the way there alone is gathered once: the last layer's bias has no gradient to pass on.
                expect(moved == sent if stage < 3 else moved <= sent, f"{where}: sends {moved}, expected {sent}")


@case(seconds=3)
def messages_of_so_many_elements(folder):
    """No message has more elements than its key allows, but where one tensor has; gathers ahead take what may be there; small tensors stay."""
    g = random(86)
    data = rows(folder / "data.npz", g)
    sizes = {"w0": 5 * 130, "b0": 130, "w1": 130 * 65, "b1": 65, "w2": 65 * 4}
    padded = {name: -(-size // 64) * 64 for name, size in sizes.items()}
    for stage, keys in ((1, {"allgather_bucket_size": 700}), (2, {"overlap_comm": True}), (3, {**ZERO, "stage3_prefetch_bucket_size": 8600}),
                        (3, {"stage3_param_persistence_threshold": 131, "stage3_model_persistence_threshold": 200, "reduce_bucket_size": 1})):
        config = settings(micro=2, zero_optimization={"stage": stage, "reduce_bucket_size": 200, **keys})
        package = train_package(folder, mlp(g, inner=130, more=65), config, "--reference", logits="y")
        plan = planned(folder, 2, "--logits=y", "--reference")
        same_sites(plan, counted(folder, package, data, 2), f"stage {stage}, {keys}")
        sites = {site["site"]: site["elements"] for site in plan["sites"] if site["calls"] and not site["site"].startswith("norm")}
        gradients = {name: count for name, count in sites.items() if name.startswith("gradients")}
        # The space of a unit ends behind its tensors: where a rank has more, at the last message.
        expect(all(count <= 200 or any(size <= count <= size + 64 for size in padded.values()) for count in gradients.values()), f"{gradients}")
        if stage == 1:
            expect("parameters/layer 0, part 2" in sites and "parameters/layer 1, part 2" in sites and "parameters/layer 2" in sites, f"{sites}")
        whole = [unit["name"] for unit in plan["units"] if unit["name"].endswith(", whole")]
        if "stage3_prefetch_bucket_size" in keys:
            expect("micro/layer 1, rest" in sites and sites["micro/layer 1"] == padded["w1"], f"{sites}")
        elif stage == 3: # b0 and b1 are small, and together they have 195 elements
            expect(whole == ["layer 0, whole", "layer 1, whole"], f"units {plan['units']}")
            expect("parameters/layer 0, whole" in sites and "micro/layer 0" in sites, f"{sites}")
        expect(stage == 3 or not whole, f"{whole}")


@case(seconds=5)
def units_that_are_read_again_soon(folder):
    """Behind fewer elements of others than stage3_max_reuse_distance a unit stays, where stage3_max_live_parameters allows."""
    g = random(87)
    data = rows(folder / "data.npz", g)
    model = mlp(g, inner=130, more=65)
    elements = {0: 704 + 192, 1: 8512 + 128, 2: 320}  # padded: layer 2 is read twice between both times of layer 1, and the first once
    shards = {layer: -(-count // 128) * 64 for layer, count in elements.items()}
    live = elements[1] + elements[2]
    for keys, again in (({}, (2, 1)), ({"stage3_max_reuse_distance": 0}, (2, 1)), ({"stage3_max_reuse_distance": 640}, (1,)),
                        ({"stage3_max_reuse_distance": 641}, ()), ({"stage3_max_reuse_distance": 641, "stage3_max_live_parameters": live - 1}, (1,)),
                        ({"stage3_max_reuse_distance": 641, "stage3_max_live_parameters": live, "stage3_prefetch_bucket_size": 0}, ())):
        package = train_package(folder, model, settings(micro=2, zero_optimization={"stage": 3, **ZERO, **keys}), "--reference", logits="y")
        plan = planned(folder, 2, "--logits=y", "--reference")
        same_sites(plan, counted(folder, package, data, 2), f"{keys}")
        sent = {site["site"]: site["sent"] for site in plan["sites"] if site["calls"] and site["site"].startswith("micro/")}
        back = {name.removesuffix(", rest") for name in sent if name.startswith("micro/backward/")}
        expect(back == {f"micro/backward/layer {layer}" for layer in again}, f"{keys}: gathers again {sorted(sent)}, expected layers {again}")
        total = 4 * (sum(shards.values()) + sum(shards[layer] for layer in again))
        expect(sum(sent.values()) == total, f"{keys}: gathers {sent}, expected {total} bytes together")


@case
def units_that_stay_beside_others(folder):
    """What stays is there: all blocks of a transformer, or as many as stage3_max_live_parameters allows, the last ones first."""
    onnx.save(models.gpt(layers=4), folder / "model.onnx")
    sharing = ZERO | {"stage": 3, "stage3_max_reuse_distance": 10**9, "stage3_prefetch_bucket_size": 0}
    block, table, head = 12928, 3008, 128
    # Between both times of block i lie all later ones twice, the head twice, and the table, which the end of the model reads, too.
    for live, stay in ((10**9, 4), (4 * block + table + head, 4), (4 * block + table + head - 1, 3), (2 * block + table + head, 2), (block, 0)):
        write_config(folder, settings(micro=2, zero_optimization=sharing | {"stage3_max_live_parameters": live}))
        plan = planned(folder, 2, "--logits=logits", "--shift-labels", "--dim", "length=6")
        elements = {unit["name"]: unit["elements"] for unit in plan["units"]}
        expect((elements["block 3"], elements["embeddings"], elements["head"]) == (block, table, head), f"units {elements}")
        sites = [site["site"] for site in plan["sites"] if site["calls"] and site["site"].startswith("micro/")]
        expected = ["micro/embeddings", *(f"micro/block {i}" for i in range(4)), "micro/head", *["micro/embeddings (2)"] * (stay == 0),
                    *(f"micro/backward/block {i}" for i in reversed(range(4 - stay)))]
        expect(sites == expected, f"at most {live}: gathers {sites}, expected {expected}")
        gathered = 4 * max(stay * block + 128 * -(-table // 128) + head, block)  # in blocks of 64 on each of two ranks
        expect(plan["bytes"]["gathered"] == gathered, f"at most {live}: gathers {plan['bytes']['gathered']} bytes at a time, expected {gathered}")


@case(seconds=12)
def units_of_a_transformer(folder):
    """Blocks by structure; never more than two units beside what a rank owns."""
    g = random(82)
    data = tokens(folder / "data.npz", g)
    package = train_package(folder, models.gpt(layers=4), settings(micro=2, zero_optimization=ZERO | {"stage": 3}), "--shift-labels")
    plan = planned(folder, 4, "--logits=logits", "--shift-labels", "--dim", "length=6")
    names = [unit["name"] for unit in plan["units"]]
    expect(names == ["embeddings", "block 0", "block 1", "block 2", "block 3", "head"], f"units {names}")
    sizes = sorted((4 * 4 * unit["shard"] for unit in plan["units"]), reverse=True)
    expect(plan["bytes"]["gathered"] <= sizes[0] + sizes[1], f"gathers {plan['bytes']['gathered']} bytes at a time, units have {sizes}")
    same_sites(plan, counted(folder, package, data, 4), "GPT, stage 3, 4 ranks")


@case
def a_package_for_so_many_ranks(folder):
    g = random(83)
    data = rows(folder / "data.npz", g)
    package = train_package(folder, mlp(g), settings(micro=2), "--reference", "--mesh=data=2", logits="y")
    train = ["train", package, f"--data={data}", "--steps=1", "--threads=1"]
    tool("ds-run", "--ranks", 2, *train)
    for start, found in (((), "1 rank"), (("--ranks", 3), "3 ranks")):
        result = tool("ds-run", *start, *train, code=2)
        expect(f"was compiled with --mesh=data=2, found {found}" in result.err, f"expected the mesh by name: {result}")
    write_config(folder, {"train_batch_size": 7})
    result = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
                  f"--config={folder / 'ds_config.json'}", "--mesh=data=2", "--plan", code=1)
    expect("found 7, expected a multiple of 2 ranks (--mesh=data=2)" in result.err, f"expected where the ranks come from: {result}")
    for text in ("data=0", "tensor=2", "data=5000"):
        result = tool("ds-opt", folder / "model.onnx", "--mode=train", f"--mesh={text}", code=2)
        expect(f"--mesh expects data=N with N from 1 to 4096, or data, found '{text}'" in result.err, f"expected what is legal: {result}")


@case(seconds=6)
def keys_that_ranks_do_not_have(folder):
    """What would change messages is refused; one rank has nothing to do with it."""
    data = rows(folder / "data.npz", random(84))
    model = mlp(random(85))
    refused = [(dict(optimizer="ZeroOneAdam"), "optimizer.type: found ZeroOneAdam")]
    for config, says in refused:
        package = train_package(folder, model, settings(micro=2, **config), "--reference", logits="y")
        train = ["train", package, f"--data={data}", "--steps=3", "--threads=1"]
        tool("ds-run", *train)
        result = tool("ds-run", "--ranks", 2, *train, code=2)
        expect(says in result.err and "on 2 ranks" in result.err, f"expected {says}: {result}")
    sharing = {"stage": 3, "stage3_max_reuse_distance": 5, "reduce_bucket_size": 7}
    package = train_package(folder, model, settings(micro=2, zero_optimization=sharing), "--reference", logits="y")
    result = tool("ds-run", "--ranks", 2, "train", package, f"--data={data}", "--steps=1", "--threads=1")
    expect(not any(key in result.err for key in ("reduce_bucket_size", "max_reuse_distance")), f"told of a key that acts: {result}")


@case
def norms_for_lamb(folder):
    """Two f32 for each block of 64 elements that a rank owns: of its parameters, and of what they are changed by."""
    g = random(82)
    data = rows(folder / "data.npz", g)
    config = settings("Lamb", micro=2, zero_optimization={"stage": 2})
    package = train_package(folder, mlp(g, inner=130, more=65), config, "--reference", logits="y", name="lamb.dsp")
    plan = planned(folder, 3, "--logits=y", "--reference")
    same_sites(plan, counted(folder, package, data, 3), "Lamb on 3 ranks")
    trust = [site for site in plan["sites"] if site["site"] == "trust"]
    blocks = sum(-(-unit["elements"] // (64 * 3)) for unit in plan["units"])
    expect([(site["op"], site["sent"]) for site in trust] == [("all_gather", 2 * 2 * 4 * blocks)], f"planned {trust}, expected {blocks} blocks")
