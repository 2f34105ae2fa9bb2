"""What ds-opt says of states in files, and what a run counted: the same, and what page, piece and buffer make of the model's own shapes.

The oracle knows shapes, ZeRO's shards (blocks of 64 elements), pages of 4,096 bytes and the config's own numbers."""
import numpy as np

from kit import case, expect
from ranks_plan_cases import ZERO, counted, planned
from ranks_runs import mlp, random, rows
from training_runs import settings, train_package, write_config

SHAPES = {"w0": (5, 130), "b0": (130,), "w1": (130, 115), "b1": (115,), "w2": (115, 4)}
LAYERS = (("w0", "b0"), ("w1", "b1"), ("w2",))
PAGE = 4096


def offload(folder, buffers, **more):
    return {"device": "nvme", "nvme_path": str(folder), "buffer_count": buffers, **more}


def shards(ranks):
    padded = [sum(-(-int(np.prod(SHAPES[name])) // 64) * 64 for name in layer) for layer in LAYERS]
    return [-(-elements // (64 * ranks)) * 64 for elements in padded]


def pieces(elements, width, group):
    """Bytes of each piece of a state in a file."""
    whole = -(-elements * width // PAGE) * PAGE
    piece = max(group * width // PAGE * PAGE, PAGE) if elements > group else whole
    return [min(piece, whole - begin) for begin in range(0, whole, piece)]


def most(sizes, buffers):
    largest = sorted(sizes, reverse=True)[:buffers]
    return len(largest), sum(largest)


def planned_files(parameters, optimizer):
    """Each: sizes of pieces, and buffers."""
    counts = [most(*kind) for kind in (parameters, optimizer)]
    return {"parameters": sum(parameters[0]), "optimizer": sum(optimizer[0]), "resident": sum(count for count, _ in counts),
            "resident_bytes": sum(total for _, total in counts)}


def agrees(plan, counters, expected, where, isExact):
    """Sizes are exact, and so is the most that was in memory where pieces are alike; else it is no more than planned, and no less than as many of the
    smallest."""
    expect(plan["files"] == expected, f"{where}: planned {plan['files']}, expected {expected}")
    for rank in counters["ranks"]:
        expect(rank["places"] == plan["places"], f"{where}, rank {rank['rank']}: {rank['places']}, planned {plan['places']}")
        found = {key: rank["files"][key] for key in expected}
        exact = expected if isExact else {**expected, "resident_bytes": found["resident_bytes"]}
        expect(found == exact and PAGE * expected["resident"] <= found["resident_bytes"] <= expected["resident_bytes"],
               f"{where}, rank {rank['rank']}: counted {found}, planned {expected}")


@case(seconds=9)
def files_of_stages(folder):
    """One to three ranks, each stage; few buffers and many, states as a whole and in pieces; parameters at stage 3."""
    data, g, all_of_it = rows(folder / "data.npz", random(71)), random(72), 10**9
    kinds = [(3, all_of_it), (4, 1024), (40, 2500)]
    for stage in range(4):
        package = train_package(folder, mlp(g, inner=130, more=115), settings(micro=2, zero_optimization=ZERO | {"stage": stage}), "--reference", logits="y")
        for ranks in (1, 2, 3):
            buffers, group = kinds[(stage + ranks) % 3]
            own = shards(ranks) if stage else [int(np.prod(shape)) for shape in SHAPES.values()]
            zero = ZERO | {"stage": stage, "sub_group_size": group, "offload_optimizer": offload(folder, buffers)}
            parameters = []
            if stage == 3:
                zero["offload_param"] = offload(folder, 2, max_in_cpu=0)
                parameters = [size for elements in own for size in pieces(elements, 4, all_of_it)]
            optimizer = [size for elements in own * 2 for size in pieces(elements, 4, group)]
            config = write_config(folder, settings(micro=2, zero_optimization=zero))
            plan, counters = planned(folder, ranks, "--logits=y", "--reference"), counted(folder, package, data, ranks, f"--config={config}")
            where = f"stage {stage}, {ranks} ranks, {buffers} buffers, groups of {group}"
            agrees(plan, counters, planned_files((parameters, 2), (optimizer, buffers)), where, isExact=stage < 3 and (group == 1024 or buffers >= len(optimizer)))
            in_files = 4 * sum(own) * (3 if stage == 3 else 2)
            total = sum(plan["bytes"][key] for key in ("parameters", "gradients", "optimizer", "others"))
            expect(plan["places"] == {"device": total - in_files, "host": 0, "file": in_files}, f"{where}: {plan['places']}, {in_files} bytes in files")


@case(seconds=7)
def files_of_some_states(folder):
    """Of parameters the first that fit stay in host memory; narrow ones have masters; a momentum of which a norm is taken is not cut; no files, none."""
    data, g = rows(folder / "data.npz", random(73)), random(74)
    model = mlp(g, inner=130, more=115)
    first, second, third = own = shards(2)
    for more, stage, of_parameter, how in (({}, 3, 2, ["--reference"]), ({"bf16": {"enabled": True}}, 2, 3, [])):
        config = settings(micro=2, zero_optimization=ZERO | {"stage": stage}, **more)
        package = train_package(folder, model, config, *how, logits="y")
        plain = planned(folder, 2, "--logits=y", *how)
        expect(plain["files"] == planned_files(([], 1), ([], 1)) and plain["places"]["file"] == 0, f"without files: {plain['files']}, {plain['places']}")
        zero = ZERO | {"stage": stage, "sub_group_size": 1024, "offload_optimizer": offload(folder, 6)}
        if stage == 3:
            zero["offload_param"] = offload(folder, 1, max_in_cpu=second)  # not beside the first
        write_config(folder, config | {"zero_optimization": zero})
        plan = planned(folder, 2, "--logits=y", *how)
        counters = counted(folder, package, data, 2, f"--config={folder / 'ds_config.json'}")
        optimizer = [size for elements in own * of_parameter for size in pieces(elements, 4, 1024)]
        parameters = pieces(second, 4, 10**9) if stage == 3 else []
        agrees(plan, counters, planned_files((parameters, 1), (optimizer, 6)), f"{more}, stage {stage}", isExact=True)
        host = 4 * (first + third) if stage == 3 else 0
        expect(plan["places"]["host"] == host, f"{plan['places']}, expected {host} bytes in host memory")
        # What is in memory of files is rounded up to pages, what would be in memory else to 64 bytes.
        saved, states = plain["bytes"]["peak"] - plan["bytes"]["peak"], plan["places"]["file"]
        expect(saved == states - plan["files"]["resident_bytes"], f"stage {stage}: files save {saved} bytes of {states}, {plan['files']}")

    config = settings(("OneBitLamb", {"freeze_step": 2}), micro=2, zero_optimization={"sub_group_size": 1024, "offload_optimizer": offload(folder, 4)})
    package = train_package(folder, model, config, "--reference", logits="y")
    plan, counters = planned(folder, 1, "--logits=y", "--reference"), counted(folder, package, data, 1)
    largest = 130 * 115 * 4  # of w1's momentum, the only state with more elements than a piece that something takes as a whole
    expect(plan["files"]["resident_bytes"] == -(-largest // PAGE) * PAGE + 3 * PAGE, f"{plan['files']}, expected a state of {largest} bytes and three pieces")
    rank, = counters["ranks"]
    expect(rank["places"] == plan["places"] and all(rank["files"][key] == size for key, size in plan["files"].items()), f"{rank}, planned {plan['files']}")
