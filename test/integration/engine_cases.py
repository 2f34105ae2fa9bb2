"""ds/engine.h, by a program of its own that brings the micro-batches which ds-run train would read: the same bits, alone and on ranks."""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx

import training_models as models
from kit import BIN, ROOT, case, expect, tool
from launch_runs import PATIENCE, launch
from programs import SEED
from ranks_runs import Stages, logical, mlp, random, rows, same, tokens
from training_runs import SMALL, log_of, settings, small_data, train_package, write_config

LOOP, LIBRARY = Path(__file__).with_name("engine_loop.py"), BIN.parent / "lib" / "libds_runtime.so"
SCHEDULE = ("WarmupDecayLR", {"warmup_max_lr": 0.02, "warmup_num_steps": 3, "total_num_steps": 9})


def loop(*arguments, ranks=1, code=0, says=()):
    """Standard output's lines of JSON, and standard error."""
    command = [sys.executable, str(LOOP), str(LIBRARY), *map(str, arguments)]
    if ranks > 1:
        out, err = launch(f"--ranks={ranks}", f"--transport={('shm', 'tcp')[SEED % 2]}", "--exec", *command, code=code, says=says)
    else:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        out, err = done.stdout, done.stderr
        expect(done.returncode == code, f"exit code {done.returncode}, expected {code}: {err}")
    for text in says:
        expect(text in err, f"expected '{text}': {err}")
    return [json.loads(line) for line in out.splitlines()], err


def as_train(steps, log, what):
    """What the engine says of its steps is what ds-run train has logged."""
    found = [row for row in steps if "step" in row]
    expected = log_of(log)
    expect(len(found) == len(expected) > 0, f"{what}: {len(found)} steps, expected {len(expected)}")
    for one, other in zip(found, expected):
        for name, key in (("loss", "loss"), ("learning_rate", "lr"), ("momentum", "momentum"), ("grad_norm", "grad_norm"), ("samples", "samples")):
            same_number = one[name] == other[key] or (other[key] is None and not np.isfinite(one[name]))
            expect(same_number, f"{what}: step {one['step']}: {name}: {one[name]}, ds-run train: {other[key]}")


@case(seconds=6)
def steps_of_one_process(folder):
    """Schedule, clipping, accumulation, dropout, a stop in the middle; in single and in half precision, whose scale falls and rises."""
    data = small_data(folder, samples=48, seed=SEED)
    model = onnx.parser.parse_model(SMALL.replace("y = MatMul (t, v)", "ratio = Constant <value_float = 0.3> () d = Dropout (t, ratio) y = MatMul (d, v)"))
    for more in ({"gradient_clipping": 0.4}, {"fp16": {"enabled": True, "initial_scale_power": 24, "loss_scale_window": 2, "hysteresis": 1}}):
        package = train_package(folder, model, settings(("AdamW", {"weight_decay": 0.1}), micro=2, accumulation=3, scheduler=SCHEDULE, **more), logits="y")
        runs = folder / f"engine{len(more)}{'fp16' in more}", folder / f"train{'fp16' in more}"
        tool("ds-run", "train", package, f"--data={data}", "--steps=8", "--shuffle=off", f"--checkpoint={runs[1]}", f"--log={runs[1]}.jsonl", "--threads=1",
             f"--seed={SEED}")
        steps, _ = loop(package, data, 8, runs[0], f"--seed={SEED}", "--stop=5")
        as_train(steps, runs[1].with_suffix(".jsonl"), f"{more}")
        same(logical(runs[0]), logical(runs[1]), f"{more}")
        expect("fp16" not in more or (any(row.get("is_skipped") for row in steps) and not steps[-2]["is_skipped"]), f"nothing was skipped: {steps}")
        # Each goes on from what the other has saved.
        tool("ds-run", "train", package, f"--data={data}", "--steps=9", "--shuffle=off", f"--checkpoint={runs[0]}", "--resume", "--threads=1", f"--seed={SEED}")


@case(seconds=6)
def dropped_layers(folder):
    model, data = models.gpt(hidden=16, heads=2, seed=SEED), tokens(folder / "data.npz", random(), samples=32)
    stages = Stages(folder, model, data, "--shift-labels", "--reference", stages=(0,), optimizer=("AdamW", {"lr": 0.01}),
                    progressive_layer_drop={"enabled": True, "theta": 0.5, "gamma": 0.1})
    run = stages.run(0, 2, "--shuffle=off", accumulation=2, steps=4)
    config = write_config(folder, settings(micro=2, accumulation=2, zero_optimization={"stage": 0}, **stages.config))
    steps, _ = loop(stages.packages[0], data, 4, folder / "engine", f"--config={config}", f"--seed={SEED}", ranks=2)
    as_train(steps, run.with_suffix(".jsonl"), "layers")
    same(logical(folder / "engine"), logical(run), "layers")


@case(seconds=3)
def ranks_at_each_stage(folder):
    """Bits of ds-run train on as many ranks, whatever they share; a stop in the middle."""
    data = rows(folder / "data.npz", random(1), samples=96)
    stages = Stages(folder, mlp(random()), data, "--reference", logits="y", stages=(0, 1 + SEED % 2, 3), optimizer=("AdamW", {"lr": 0.01}),
                    scheduler=SCHEDULE)
    for stage in stages.packages:
        ranks, accumulation = 2 + (SEED + stage) % 2, 1 + (SEED + stage) // 2 % 2
        run = stages.run(stage, ranks, "--shuffle=off", accumulation=accumulation, steps=6)
        config = write_config(folder, settings(micro=2, accumulation=accumulation, zero_optimization=stages.sharing(stage), **stages.config))
        out = folder / f"engine{stage}"
        steps, _ = loop(stages.packages[stage], data, 6, out, f"--config={config}", f"--seed={SEED}", "--stop=4", ranks=ranks)
        as_train(steps, run.with_suffix(".jsonl"), f"stage {stage} on {ranks} ranks")
        same(logical(out), logical(run), f"stage {stage} on {ranks} ranks")


@case(seconds=3)
def faults(folder):
    """One line, and no rank waits for one that has failed."""
    data = rows(folder / "data.npz", random(1), samples=48)
    stages = Stages(folder, mlp(random()), data, "--reference", logits="y", stages=(1,), optimizer=("AdamW", {"lr": 0.01}))
    package = stages.packages[1]
    _, err = loop(package, data, 2, folder / "o", "--fault=early", code=1, says=["end of a step after 0 of its 2 micro-batches"])
    expect(err.count("\n") == 1, err)
    loop(package, data, 2, folder / "o", "--fault=late", code=1, says=["micro-batch 3 of a step of 2", "gradient_accumulation_steps"])
    loop(package, data, 2, folder / "o", "--fault=shape of rank 0", code=1, says=["'x'", "4", "5"])
    loop(package, data, 2, folder / "o", "--fault=shape of rank 1", code=1, ranks=2, says=["rank 1", "'x'"])
    loop(package, data, 2, folder / "o", "--fault=second", code=1, ranks=2, says=["has joined its ranks before"])
    config = write_config(folder, settings(("AdamW", {"weight_decay": 0.5}), micro=2, accumulation=2))
    loop(package, data, 2, folder / "o", f"--config={config}", code=1, says=["weight_decay", "compile again"])
    loop(package, data, 2, folder / "o", "--config=/nowhere.json", code=1, says=["/nowhere.json"])
    big = folder / "big.npz"
    arrays = dict(np.load(data))
    arrays["x"][5] = np.inf
    np.savez(big, **arrays)
    loop(package, big, 2, folder / "o", code=1, says=["step 1", "'x'", "inf"])


@case(seconds=6)
def header_for_cpp(folder):
    """ds/engine.hpp: the same bits, and exceptions."""
    data = rows(folder / "data.npz", random(1), samples=16)
    stages = Stages(folder, mlp(random()), data, "--reference", logits="y", stages=(0,), optimizer=("AdamW", {"lr": 0.01}))
    run = stages.run(0, 1, "--shuffle=off", accumulation=2, steps=4)
    arrays = np.load(data)
    numbers = lambda array: "{" + ", ".join(repr(value) for value in array.reshape(-1).tolist()) + "}"
    (folder / "loop.cpp").write_text(f"""#include "ds/engine.hpp"
#include <cstring>
#include <iostream>
static const float x[16][5] = {numbers(arrays["x"])};
static const std::int64_t labels[16] = {numbers(arrays["labels"])};
int main() try {{
  ds::Engine::Options options;
  options.threads = 1;
  options.seed = {SEED};
  ds::Engine engine(ds::Package("{stages.packages[0]}"), options);
  std::int64_t size = engine.microBatchSize(), at = 0;
  for (; engine.steps() < 4; engine.step())
    for (std::int64_t i = 0; i < engine.microBatches(); ++i, at += size)
      engine.microBatch({{{{"x", x[at % 16], {{size, 5}}}}, {{"labels", labels + at % 16, {{size}}}}}});
  engine.save("{folder / 'loop'}", "", "[1]");
  if (engine.load("{folder / 'loop'}") != "[1]" || engine.rank() != 0 || engine.world() != 1 || engine.inputs().size() != 2)
    return 2;
  engine.step(); // without micro-batches
}} catch (const ds::Error &error) {{
  std::cerr << error.what() << "\\n";
  return 7;
}}
""")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-missing-braces", f"-I{ROOT / 'runtime/include'}", "loop.cpp", f"-L{LIBRARY.parent}", "-lds_runtime"]
    built = subprocess.run(["clang++-22", *flags, f"-Wl,-rpath,{LIBRARY.parent}", "-o", "loop.bin"], cwd=folder, capture_output=True, text=True)
    expect(built.returncode == 0, built.stderr[-2000:])
    done = subprocess.run([folder / "loop.bin"], capture_output=True, text=True, timeout=PATIENCE)
    expect(done.returncode == 7 and "end of a step after 0 of its 2 micro-batches" in done.stderr, f"exit code {done.returncode}: {done.stderr}")
    same(logical(folder / "loop"), logical(run), "the C++ header")
