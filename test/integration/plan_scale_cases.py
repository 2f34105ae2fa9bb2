"""Plans of models of published sizes, of which there are shapes and no weights (utils/shape-model).

Parameters are counted by the dimensions in the papers, and what ranks hold by ZeRO's table of bytes (1910.02054, section 5)."""
import json
import subprocess
import sys

import numpy as np
import onnx

from kit import BIN, ROOT, case, expect, tool
from programs import SEED

ADAM = {"type": "Adam", "params": {"lr": 1e-4}}


def shape_model(*arguments, code=0):
    done = subprocess.run([ROOT / "utils/shape-model", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    expect(done.returncode == code, f"shape-model {arguments}: exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


def norm(width): return 2 * width
def dense(rows, columns): return rows * columns + columns


def gpt_count(layers, d, positions, vocabulary=50257):
    """GPT-2 and GPT-3: four products of width d with biases, the inner one four times as wide; the head is the table."""
    block = 2 * norm(d) + dense(d, 3 * d) + dense(d, d) + dense(d, 4 * d) + dense(4 * d, d)
    return (vocabulary + positions) * d + layers * block + norm(d)


def bert_count(layers, d, vocabulary=30522):
    """With the head of masked tokens: a product, a norm, a bias of the vocabulary."""
    block = 2 * norm(d) + 4 * dense(d, d) + dense(d, 4 * d) + dense(4 * d, d)
    return (vocabulary + 512 + 2) * d + norm(d) + layers * block + dense(d, d) + norm(d) + vocabulary


def llama_count(layers, d, inner, vocabulary=32000):
    return 2 * vocabulary * d + layers * (4 * d * d + 3 * d * inner + 2 * d) + d


# What is said of the released models, and by the papers' dimensions.
PUBLISHED = {"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
             "llama-7b": 6_738_415_616, "llama-13b": 13_015_864_320, "bert-base": 109_482_240 + 2 * 768 + 30522, "bert-large": bert_count(24, 1024),
             "gpt3-125m": gpt_count(12, 768, 2048), "gpt3-350m": gpt_count(24, 1024, 2048), "gpt3-760m": gpt_count(24, 1536, 2048),
             "gpt3-1.3b": gpt_count(24, 2048, 2048), "gpt3-2.7b": gpt_count(32, 2560, 2048), "gpt3-6.7b": gpt_count(32, 4096, 2048),
             "gpt3-13b": gpt_count(40, 5120, 2048), "gpt3-175b": gpt_count(96, 12288, 2048)}


@case(seconds=23)
def published_sizes(folder):
    for formula, name in ((gpt_count(48, 1600, 1024), "gpt2-xl"), (bert_count(12, 768), "bert-base"), (llama_count(40, 5120, 13824), "llama-13b")):
        expect(formula == PUBLISHED[name], f"{name}: the formula of this test says {formula}")
    listed = [line.split()[0] for line in shape_model("--list").splitlines()]
    expect(sorted(listed) == sorted(PUBLISHED), f"listed {listed}")
    for name, count in PUBLISHED.items():
        file = folder / f"{name}.onnx"
        said = shape_model(name, "-o", file)
        stored = sum(int(np.prod(tensor.dims)) for tensor in onnx.load(file, load_external_data=False).graph.initializer if tensor.external_data)
        expect(stored == count and f"{count:,} parameters" in said, f"{name}: {stored} parameters, expected {count}: {said}")
        data = file.with_name(file.name + ".data").stat()
        expect(data.st_size >= 4 * count and data.st_blocks * 512 <= 1 << 20, f"{name}: {data.st_size} bytes that take {data.st_blocks * 512}")


@case(seconds=4)
def wrong_sizes(folder):
    """A line each, with what would be legal."""
    file = folder / "m.onnx"
    for arguments, code, says in ((("gpt5", "-o", file), 2, "found 'gpt5', expected one of bert-base, bert-large, gpt2,"),
                                  (("gpt2",), 2, "expected -o FILE.onnx"), ((), 2, "expected NAME"),
                                  (("gpt2", "-o", file, "--layers=0"), 2, "argument --layers: expected a number from 1 to"),
                                  (("gpt2", "-o", file, "--width=100"), 2, "--width: found 100 for 12 heads, expected a multiple"),
                                  (("gpt2", "-o", file, "--length=a-b"), 2, "--length: expected a number or a name, found 'a-b'"),
                                  (("gpt2", "-o", folder / "none/m.onnx"), 1, "No such file or directory")):
        err = shape_model(*arguments, code=code)
        expect(err.startswith("shape-model: error: ") and says in err and err.count("\n") == 1, f"{arguments}: {err}")
    expect("usage: utils/shape-model NAME -o FILE.onnx" in shape_model("--help"), "no help")
    shape_model("gpt2", "-o", file, "--length=seq", "--layers=1")
    plan = planned(folder, file, 0, 4)
    expect(plan["bytes"].get("peak_depends_on") == "seq", f"an open length: {plan['bytes']}")
    expect("peak" in planned(folder, file, 0, 4, "--dim=seq=64")["bytes"], "a length that --dim gives")


def planned(folder, model, stage, ranks, *options, seconds=None, mib=None):
    config = folder / "plan_config.json"
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "optimizer": ADAM, "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0}}))
    file = folder / "plan.json"
    result = tool("ds-opt", model, "--mode=train", f"--config={config}", f"--mesh=data={ranks}", f"--plan={file}", *options)
    expect(seconds is None or result.seconds <= seconds, f"planned in {result.seconds} s, at most {seconds} expected")
    expect(mib is None or result.peak_mib <= mib, f"planned in {result.peak_mib} MiB, at most {mib} expected")
    return json.loads(file.read_text())


def check(plan, count, stage, ranks, where):
    """Shards of what the units have, and the bytes of ZeRO's table; padding is less than a block for each tensor and rank."""
    units = plan["units"]
    elements = sum(unit["elements"] for unit in units)
    expect(count <= elements < count * 1.0001, f"{where}: units have {elements} elements of {count}")
    part = sum(-(-unit["elements"] // (64 * ranks)) * 64 for unit in units)
    expect(part == sum(unit["shard"] for unit in units), f"{where}: shards of {units}")
    whole = ranks * part
    expected = {"parameters": whole if stage < 3 else part, "gradients": whole if stage < 2 else part, "optimizer": 2 * part}
    found = {key: plan["bytes"][key] for key in expected}
    expect(found == {key: 4 * size for key, size in expected.items()}, f"{where}: planned {found}, expected 4 times {expected}")


@case
def shapes_alone(folder):
    """Weights are not read: what is in the file makes no difference, neither to the plan nor to what planning takes."""
    file, data = folder / "m.onnx", folder / "m.onnx.data"
    g = np.random.default_rng([SEED, 91])
    layers, ranks = int(g.integers(3, 7)), int(g.integers(2, 4097))
    shape_model("gpt2-medium", f"--layers={layers}", "-o", file)
    plans = {stage: planned(folder, file, stage, ranks, mib=400) for stage in (1, 2, 3)}
    for stage, plan in plans.items():
        check(plan, gpt_count(layers, 1024, 1024), stage, ranks, f"{layers} layers, stage {stage}, {ranks} ranks")
        names = [unit["name"] for unit in plan["units"]]
        expect(names == ["embeddings", *(f"block {i}" for i in range(layers)), "head"], f"units {names}")
    with open(data, "r+b") as stream: # the table, and what comes behind it
        stream.write(g.standard_normal(1 << 24, np.float32).tobytes())
    expect(planned(folder, file, 3, ranks, mib=400) == plans[3], "another plan where weights are there")


@case(seconds=8)
def largest_published_model(folder):
    file = folder / "m.onnx"
    shape_model("gpt3-175b", "-o", file)
    plan = planned(folder, file, 3, 4096, "--shift-labels", seconds=120, mib=4096)
    check(plan, PUBLISHED["gpt3-175b"], 3, 4096, "GPT-3")
    block = 4 * 4096 * max(unit["shard"] for unit in plan["units"])
    expect(plan["bytes"]["gathered"] <= 2 * block, f"gathers {plan['bytes']['gathered']} bytes at a time, a block has {block}")


def peak_of(*command):
    """MiB, by a small process: what starts another one hands down its own most."""
    text = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", text, *map(str, command)], capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout) / 1024


def filled_model(folder):
    """46 MiB of weights, and tokens to train on."""
    file, data = folder / "m.onnx", folder / "m.onnx.data"
    g = np.random.default_rng([SEED, 92])
    shape_model("gpt2", "--layers=3", "--width=512", "--heads=8", "--vocabulary=4000", "--length=16", "-o", file)
    with open(data, "r+b") as stream:
        stream.write((g.standard_normal(data.stat().st_size // 4, np.float32) / 50).tobytes())
    ids = g.integers(0, 4000, (16, 16))
    np.savez(folder / "data.npz", ids=ids, labels=ids)
    return file, data


def compiled(folder, file, stage):
    """As the last plan says."""
    package = folder / f"{stage}.dsp"
    tool("ds-opt", file, "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", f"--config={folder / 'plan_config.json'}", "-o", package)
    return package


@case(seconds=10)
def trained_under_a_cap(folder):
    """Four ranks of stage 3 train with what their plan says and 48 MiB; one process cannot, and says so."""
    file, _ = filled_model(folder)
    cap = (planned(folder, file, 3, 4)["bytes"]["peak"] >> 10) + (48 << 10)
    expect(planned(folder, file, 3, 1)["bytes"]["peak"] >> 10 > cap, "the cap is none for one process")
    train = ["train", compiled(folder, file, 3), f"--data={folder / 'data.npz'}", "--steps=2", "--threads=1"]
    for ranks, code in ((["--ranks=4"], 0), ([], 1)):
        command = ["sh", "-c", f'ulimit -d {cap}; exec "$@"', "sh", BIN / "ds-run", *ranks, *train]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)
        expect(done.returncode == code, f"{ranks}: exit code {done.returncode}, expected {code}: {done.stderr}")
    expect("cannot allocate" in done.stderr and done.stderr.count("error:") == 1, done.stderr)


@case(seconds=23)
def memory_of_ranks(folder):
    """What a rank has besides its plan is what any process has, whatever the package holds: nobody keeps the file of weights."""
    mib, besides, ranks = 1 << 20, 24, 2
    file, data = filled_model(folder)
    for stage in (1, 3):
        plan = planned(folder, file, stage, ranks)["bytes"]
        package, log = compiled(folder, file, stage), folder / f"{stage}.jsonl"
        tool("ds-run", "--ranks", ranks, "train", package, f"--data={folder / 'data.npz'}", "--steps=2", "--threads=1", f"--log={log}")
        taken = json.loads(log.read_text().splitlines()[-1])["peak_bytes"]
        expect(0.98 * plan["peak"] <= taken <= 1.05 * plan["peak"] + besides * mib,
               f"stage {stage}: took {taken / mib:.1f} MiB, planned {plan['peak'] / mib:.1f}, weights have {data.stat().st_size / mib:.1f}")
        said = json.loads(tool("ds-run", "inspect", package, "--json", "--dim=batch=1").out)["variants"][0]["memory"]["total_bytes"]
        alone = planned(folder, file, stage, 1)["bytes"]["peak"]
        expect(said == alone, f"stage {stage}: ds-run inspect says {said} bytes of one rank, the plan {alone}")
    plain, verified = (peak_of(BIN / "ds-run", "inspect", package, *options) for options in (["--no-verify"], []))
    weights = (package / "weights.bin").stat().st_size / mib
    expect(weights > 40 and verified < plain + weights / 2, f"verifying {weights:.1f} MiB took {verified - plain:.1f} MiB of memory")
