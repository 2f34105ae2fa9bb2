"""Gradients that leave ranks in narrower floats: sums by NumPy, the same bits at every stage, bytes, steps that overflow on the way."""
import numpy as np
import onnx

from kit import case, compile_model, expect, tool
from programs import SEED
from ranks_plan_cases import counted, planned, same_sites
from ranks_runs import Stages, logical, mlp, moved, random, rows, same, with_weights
from training_runs import log_of, settings, write_config

KINDS = "bf16", "fp16"
WIDTH = 200  # four ranks own blocks of it, the last one of another size
DOT = f"""<ir_version: 9, opset_import: ["": 17]> m (float[n, {WIDTH}] x) => (float s) {{ p = Mul (x, w) s = ReduceSum <keepdims = 0> (p) }}"""


def rounded(array, kind):
    """To the nearest float of 16 bits, ties to even, and back."""
    if kind == "fp16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    bits = array.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def sum_of(parts, kind):
    """Each rank's part rounded, added in f32 in the order of ranks, the sum rounded."""
    total = rounded(parts[0], kind)
    for part in parts[1:]:
        total = total + rounded(part, kind)
    return rounded(total, kind)


def sum_of_micro_batches(x, ranks, stage, kind):
    """Of samples that ranks take in turn, kept in a narrow type: at stages 0 and 1 each rank adds up its own, before ranks are added up, behind it
    each micro-batch's sum of ranks is added to that of those before."""
    parts = (x * np.float32(1 / len(x))).reshape(-1, ranks, x.shape[1])
    added = [rounded(part, kind) if stage < 2 else sum_of(part, kind) if ranks > 1 else rounded(part[0], kind) for part in parts]
    kept = added[0]
    for part, own in zip(parts[1:], added[1:]):
        kept = rounded(kept + (part if stage < 2 else own), kind)
    return kept if stage >= 2 else sum_of(kept, kind) if ranks > 1 else kept[0]


def dot_package(folder, stage, **config):
    """The gradient of w is a sample; with a rate of 1 and w = 0 a step leaves its negative."""
    onnx.save(with_weights(DOT, {"w": np.zeros(WIDTH)}), folder / "dot.onnx")
    sharing = {"stage": stage, "stage3_param_persistence_threshold": 0}
    write_config(folder, settings(("SGD", {"lr": 1}), micro=1, zero_optimization=sharing, **config))
    return compile_model(folder / "dot.onnx", folder, "--mode=train", "--loss=s", f"--config={folder / 'ds_config.json'}", "--reference",
                         name=f"dot{stage}.dsp")


def step_of(folder, package, ranks, x, *options):
    np.savez(folder / "x.npz", x=x)
    out = folder / f"{package.stem}of{ranks}"
    tool("ds-run", f"--ranks={ranks}", "train", package, f"--data={folder / 'x.npz'}", "--steps=1", "--threads=1", "--shuffle=off",
         f"--checkpoint={out}", *options)
    return logical(out)["w"]


def spread(g, samples):
    return (g.standard_normal((samples, WIDTH)) * 2.0 ** g.integers(-12, 9, (samples, WIDTH))).astype(np.float32)


def judge(found, expected, what):
    off = np.flatnonzero(found != expected)
    expect(len(off) == 0, f"seed {SEED}: {what}: {len(off)} of {WIDTH} differ, [{off[:1]}] is {found[off[:1]]}, expected {expected[off[:1]]}")


@case
def sums_by_numpy(folder):
    """Of any kind at any stage; one rank rounds nothing."""
    g = random(401)
    kind = KINDS[SEED % 2]
    packages = [dot_package(folder, stage, communication_data_type=kind) for stage in range(4)]
    for ranks in (1, 2, 3, 4):
        x = spread(g, ranks)
        parts = x * np.float32(1 / ranks)
        expected = -(sum_of(parts, kind) if ranks > 1 else parts[0])
        expect(ranks == 1 or np.any(expected != -rounded(sum(parts), kind)), "the oracle does not tell whether parts are rounded")
        for package in packages if ranks in (1, 2 + SEED % 3) else g.choice(packages, 2, replace=False):
            judge(step_of(folder, package, ranks, x), expected, f"{package.name} in {kind} on {ranks} ranks")


@case
def kept_by_numpy(folder):
    """Gradients that are kept in a narrow type: of micro-batches and ranks, at any stage."""
    g, kind, micros = random(402), KINDS[SEED // 2 % 2], 3
    for stage in range(4):
        package = dot_package(folder, stage, data_types={"grad_accum_dtype": kind}, gradient_accumulation_steps=micros)
        for ranks in (1, 2 + (SEED + stage) % 3):
            x = spread(g, ranks * micros)
            judge(step_of(folder, package, ranks, x), -sum_of_micro_batches(x, ranks, stage, kind), f"stage {stage} in {kind} on {ranks} ranks")


@case(seconds=12)
def stages_have_the_same_bits(folder):
    """With what acts on gradients besides: clipping, predivision, buckets, rules that need norms. Travelling in a type, or kept in it."""
    kind, more = KINDS[SEED // 2 % 2], ({"gradient_predivide_factor": 3.0}, {"prescale_gradients": True})[SEED // 4 % 2]
    model, data = mlp(random()), rows(folder / "data.npz", random(1))
    optimizer = (("AdamW", {"lr": 0.02}), ("Lamb", {"lr": 0.05}))[SEED // 8 % 2]
    states = {}
    for asked in (kind, "fp32"):
        (folder / asked).mkdir()
        types = {"communication_data_type": asked} if SEED // 16 % 2 else {"data_types": {"grad_accum_dtype": asked}}
        stages = Stages(folder / asked, model, data, "--reference", logits="y", optimizer=optimizer, zero={"reduce_bucket_size": 1 + SEED % 100},
                        **types, **more)
        for ranks in (2, 3, 4) if asked == kind else (3,):
            runs = [stages.run(stage, ranks, transport=("shm", "tcp")[(SEED + stage) % 2]) for stage in stages.packages]
            for stage, run in enumerate(runs):
                same(logical(run), logical(runs[0]), f"stage {stage} on {ranks} ranks in {asked}")
                stages.clips(run)
            states[asked, ranks] = logical(runs[0])
            moved(states[asked, ranks], model)
    narrow, wide = states[kind, 3], states["fp32", 3]
    off = max(np.max(np.abs(narrow[name].astype(float) - wide[name])) / np.max(np.abs(wide[name])) for name in ("w0", "w1", "w2"))
    expect(0 < off < 0.2, f"seed {SEED}: {kind} moves parameters by {off:.3g} of those of fp32")


@case(seconds=6)
def bytes_of_narrower_gradients(folder):
    """Gradients take half of what they take else, on the way or in memory, too, parameters and norms the same; as planned, and as counted. What is
    kept in a type has been rounded to it on the way, and nothing else: parameters have the same bits."""
    model, data = mlp(random(411)), rows(folder / "data.npz", random(412))
    stage, ranks = SEED % 4, 2 + SEED % 3
    kind, plans, states = KINDS[SEED % 2], [], []
    for asked in ({}, {"communication_data_type": kind}, {"data_types": {"grad_accum_dtype": kind}}):
        write_config(folder, settings(micro=2, zero_optimization={"stage": stage, "stage3_param_persistence_threshold": 0}, **asked))
        onnx.save(model, folder / "model.onnx")
        package = compile_model(folder / "model.onnx", folder, "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels", "--reference",
                                f"--config={folder / 'ds_config.json'}", name=f"{len(plans)}.dsp")
        plans.append(planned(folder, ranks, "--logits=y", "--reference"))
        out = folder / f"run{len(plans)}"
        same_sites(plans[-1], counted(folder, package, data, ranks, f"--checkpoint={out}"), f"stage {stage}, {ranks} ranks, {asked}")
        states.append(logical(out))
    same(states[2], states[1], f"stage {stage}, {ranks} ranks, kept in {kind}, beside what travels in it")
    for plan, held in zip(plans[1:], (1, 2)):
        for wide, narrow in zip(plans[0]["sites"], plan["sites"], strict=True):
            factor = 2 if wide["site"].startswith("gradients/") else 1
            expect(narrow["sent"] * factor == wide["sent"], f"{wide}, in {kind} {narrow}")
        bytes = [[plan["bytes"][key] for key in ("gradients", "parameters", "optimizer")] for plan in (plans[0], plan)]
        expect([bytes[1][0] * held, *bytes[1][1:]] == bytes[0], f"{bytes[1]} bytes in {kind}, {bytes[0]} in fp32")


@case(seconds=3)
def what_overflows_on_the_way(folder):
    """A sum that fp16 cannot hold is an overflow on all ranks, at every stage, on the way or where it is kept; what bf16 holds is none."""
    stage, ranks, g = SEED % 4, 2 + SEED % 3, random(421)
    x = np.zeros((ranks, WIDTH), np.float32)
    shares = 1 + g.random(ranks)
    x[:, SEED % WIDTH] = 50000 * ranks * shares / shares.sum()  # each rank's part is below 50000, so is their sum
    log = folder / "log.jsonl"

    def train(package, scale, **keywords):
        np.savez(folder / "x.npz", x=x * np.float32(scale))
        return tool("ds-run", f"--ranks={ranks}", "train", package, f"--data={folder / 'x.npz'}", "--steps=1", "--threads=1", f"--log={log}", **keywords)
    fp16 = {"enabled": True, "initial_scale_power": 2, "hysteresis": 1}
    for kind, scale, isOver in (("fp16", 1, False), ("fp16", 1.5, True), ("bf16", 1.5, False)):
        for types in {"communication_data_type": kind}, {"data_types": {"grad_accum_dtype": kind}}:
            train(dot_package(folder, stage, fp16=fp16, **types), scale / 4)
            row = log_of(log)[0]
            expect([row["overflow"], row["loss_scale"]] == [isOver, 2 if isOver else 4], f"stage {stage} on {ranks} ranks: {50000 * scale}, {types}: {row}")
    for types, cause in (({"communication_data_type": "fp16"}, "gradients travel as f16 (communication_data_type), which ends at 65504"),
                         ({"data_types": {"grad_accum_dtype": "fp16"}}, "gradients are kept as f16 (data_types.grad_accum_dtype), which ends at 65504")):
        result = train(dot_package(folder, stage, **types), 1.5, code=1)
        expect(cause in result.err, f"stage {stage} on {ranks} ranks: no cause: {result}")
