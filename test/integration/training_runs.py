"""What the cases of whole trainings share: packages of small models, runs, their logs and weights, the same runs by PyTorch."""
import json
import shutil

import numpy as np
import onnx

import torch_graph
from kit import compile_model, expect, tool
from training_cases import torch

KEYS = ["step", "samples", "loss", "lr", "momentum", "grad_norm", "loss_scale", "overflow", "skipped", "theta", "blocks", "keep_rates", "bits", "step_ms", "peak_bytes"]
OF_THE_MACHINE = "step_ms", "peak_bytes"  # what differs between runs of the same numbers
TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}
SMALL = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x) => (float[n, 4] y)
           <float[3, 6] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.1, 0.2, 0.3, -0.3, 0.5, -0.8, 0.2, 0.9, -0.4, 0.1, 0.35},
            float[6] b = {0.25, -1, 0.5, 0, 0.125, 1}, float[6, 4] v = {0.5, -0.3, 0.2, 0.1, 0.6, -0.7, 0.4, 0.3, -0.2, 0.8, 0.15, -0.45,
            0.3, 0.2, -0.6, 0.5, -0.1, 0.7, 0.2, -0.35, 0.65, -0.55, 0.1, 0.4}>
           { z = MatMul (x, w) a = Add (z, b) t = Tanh (a) y = MatMul (t, v) }"""


def settings(optimizer="AdamW", micro=4, accumulation=None, scheduler=None, **more):
    """A ds_config.json. Optimizer and scheduler: a name, or a name and numbers."""
    def section(value):
        kind, numbers = (value, {}) if isinstance(value, str) else value
        return {"type": kind, "params": numbers}
    config = {"train_micro_batch_size_per_gpu": micro, "optimizer": section(optimizer), **more}
    if accumulation:
        config["gradient_accumulation_steps"] = accumulation
    if scheduler:
        config["scheduler"] = section(scheduler)
    return config


def write_config(folder, config, name="ds_config.json"):
    (folder / name).write_text(json.dumps(config))
    return folder / name


def train_package(folder, model, config, *options, name="model.dsp", logits="logits", loss="cross_entropy"):
    path = folder / "model.onnx"
    onnx.save(model, path)
    write_config(folder, config)
    shutil.rmtree(folder / name, ignore_errors=True)
    return compile_model(path, folder, "--mode=train", f"--loss={loss}", f"--logits={logits}", "--labels=labels",
                         f"--config={folder / 'ds_config.json'}", *options, name=name)


def small_package(folder, config, *options, **keywords):
    return train_package(folder, onnx.parser.parse_model(SMALL), config, *options, logits="y", **keywords)


def small_data(folder, samples=22, seed=0, name="data.npz"):
    g = np.random.default_rng(seed)
    np.savez(folder / name, x=g.standard_normal((samples, 3), np.float32), labels=g.integers(0, 4, samples))
    return folder / name


def train(package, data, *options, **keywords):
    return tool("ds-run", "train", package, f"--data={data}", *options, **keywords)


def log_of(path):
    """The rows of a log: each has all keys, in order, and nothing but JSON."""
    def refuse(text):
        raise AssertionError(f"{path}: {text} is no JSON")
    rows = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    for row in rows:
        expect(list(row) in (KEYS, KEYS + ["eval_loss", "accuracy"]), f"keys of the log: {list(row)}")
    return rows


def bits(path):
    """The rows of a log, less what differs from run to run."""
    return [{key: value for key, value in row.items() if key not in OF_THE_MACHINE} for row in log_of(path)]


def column(rows, key):
    return np.array([np.nan if row[key] is None else row[key] for row in rows], float)


def safetensors(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8:8 + size]), content[8 + size:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(body[slice(*item["data_offsets"])], TYPES[item["dtype"]]).reshape(item["shape"])
            for name, item in header.items()}


def weights(checkpoint):
    """Parameters and running statistics of a checkpoint, as ds-run exports them."""
    path = checkpoint.with_name(checkpoint.name + ".safetensors")
    tool("ds-run", "checkpoint", "export", checkpoint, "-o", path)
    return safetensors(path)


def same_state(one, other, step):
    """Parameters, running statistics and optimizer of a step have the same bits in two folders of checkpoints, by our tool and by the files."""
    tool("ds-run", "checkpoint", "diff", one / f"global_step{step}", other / f"global_step{step}")
    for part in ("parameters", "statistics", "optimizer"):
        files = [folder / f"global_step{step}" / f"{part}.safetensors" for folder in (one, other)]
        if files[0].exists() or files[1].exists():
            found, expected = (safetensors(file) for file in files)
            expect(found.keys() == expected.keys(), f"{part}: {sorted(found.keys() ^ expected.keys())} on one side only")
            for name, array in found.items():
                expect(array.tobytes() == expected[name].tobytes(), f"{part}: {name} has other bits")


def by_torch(folder, data, loss, config, steps, **keywords):
    """The same training by PyTorch; the model is model.onnx of the folder."""
    torch_graph.write(folder / "model.onnx", folder / "graph.npz")
    run = {"graph": str(folder / "graph.npz"), "data": str(data), "out": str(folder / "torch.npz"), "loss": loss, "config": config,
           "steps": steps, "double": False, **keywords}
    (folder / "run.json").write_text(json.dumps(run))
    torch("torch_training.py", folder / "run.json")
    return dict(np.load(folder / "torch.npz"))
