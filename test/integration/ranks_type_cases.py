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


def dot_package(folder, stage, **config):
    """The gradient of w is a sample; with a rate of 1 and w = 0 a step leaves its negative."""
    onnx.save(with_weights(DOT, {"w": np.zeros(WIDTH)}), folder / "dot.onnx")
    sharing = {"stage": stage, "stage3_param_persistence_threshold": 0}
    write_config(folder, settings(("SGD", {"lr": 1}), micro=1, zero_optimization=sharing, **config))
    return compile_model(folder / "dot.onnx", folder, "--mode=train", "--loss=s", f"--config={folder / 'ds_config.json'}", "--reference",
                         name=f"dot{stage}.dsp")


def step_of(folder, package, ranks, x):
    np.savez(folder / "x.npz", x=x)
    out = folder / f"{package.stem}of{ranks}"
    tool("ds-run", *[f"--ranks={ranks}"] * (ranks > 1), "train", package, f"--data={folder / 'x.npz'}", "--steps=1", "--threads=1", "--shuffle=off",
         f"--checkpoint={out}", "--tag=end")
    return logical(out)["w"]


@case
def sums_by_numpy(folder):
    """Of any kind at any stage; one rank rounds nothing."""
    g = random(401)
    kind = KINDS[SEED % 2]
    packages = [dot_package(folder, stage, communication_data_type=kind) for stage in range(4)]
    for ranks in (1, 2, 3, 4):
        x = (g.standard_normal((ranks, WIDTH)) * 2.0 ** g.integers(-12, 9, (ranks, WIDTH))).astype(np.float32)
        parts = x * np.float32(1 / ranks)
        expected = -(sum_of(parts, kind) if ranks > 1 else parts[0])
        expect(ranks == 1 or np.any(expected != -rounded(sum(parts), kind)), "the oracle does not tell whether parts are rounded")
        for package in packages if ranks in (1, 2 + SEED % 3) else g.choice(packages, 2, replace=False):
            found = step_of(folder, package, ranks, x)
            off = np.flatnonzero(found != expected)
            expect(len(off) == 0, f"seed {SEED}: {package.name} in {kind} on {ranks} ranks: {len(off)} of {WIDTH} differ, [{off[:1]}] is "
                   f"{found[off[:1]]}, expected {expected[off[:1]]}")


@case(turns=2)
def stages_have_the_same_bits(folder):
    """With what acts on gradients besides: clipping, predivision, buckets, rules that need norms; half the bytes, as planned."""
    kind, more = KINDS[SEED // 2 % 2], ({"gradient_predivide_factor": 3.0}, {"prescale_gradients": True})[SEED // 4 % 2]
    model, data = mlp(random()), rows(folder / "data.npz", random(1))
    optimizer = (("AdamW", {"lr": 0.02}), ("Lamb", {"lr": 0.05}))[SEED // 8 % 2]
    states = {}
    for asked in (kind, "fp32"):
        (folder / asked).mkdir()
        stages = Stages(folder / asked, model, data, "--reference", logits="y", optimizer=optimizer, communication_data_type=asked,
                        zero={"reduce_bucket_size": 1 + SEED % 100}, **more)
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


@case
def bytes_of_narrower_gradients(folder):
    """Gradients take half of what they take else, parameters and norms the same; as planned, and as counted."""
    model, data = mlp(random(411)), rows(folder / "data.npz", random(412))
    stage, ranks = SEED % 4, 2 + SEED % 3
    sent = {}
    for asked in ("fp32", KINDS[SEED % 2]):
        config = settings(micro=2, zero_optimization={"stage": stage, "stage3_param_persistence_threshold": 0}, communication_data_type=asked)
        write_config(folder, config)
        onnx.save(model, folder / "model.onnx")
        package = compile_model(folder / "model.onnx", folder, "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels", "--reference",
                                f"--config={folder / 'ds_config.json'}", name=f"{asked}.dsp")
        plan = planned(folder, ranks, "--logits=y", "--reference")
        same_sites(plan, counted(folder, package, data, ranks), f"stage {stage}, {ranks} ranks, {asked}")
        sent[asked] = {site["site"]: site["sent"] for site in plan["sites"]}
    for (name, wide), narrow in zip(sent["fp32"].items(), sent[KINDS[SEED % 2]].values(), strict=True):
        expect(narrow * (2 if name.startswith("gradients/") else 1) == wide, f"{name}: {wide} bytes, {narrow} in {KINDS[SEED % 2]}")


@case
def what_overflows_on_the_way(folder):
    """A sum that fp16 cannot hold is an overflow on all ranks, at every stage; what bf16 holds is none."""
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
        train(dot_package(folder, stage, communication_data_type=kind, fp16=fp16), scale / 4)
        row = log_of(log)[0]
        expect([row["overflow"], row["loss_scale"]] == [isOver, 2 if isOver else 4], f"stage {stage} on {ranks} ranks: {50000 * scale} in {kind}: {row}")
    result = train(dot_package(folder, stage, communication_data_type="fp16"), 1.5, code=1)
    expect("gradients travel as f16 (communication_data_type), which ends at 65504" in result.err, f"no cause: {result}")
