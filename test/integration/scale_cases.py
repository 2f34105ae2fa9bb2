"""Large models: time and memory of compilation, time to the first result. All slow: utils/check-models runs them."""
import numpy as np

import generate
from kit import case, compile_model, expect, onnx_runtime, distance, run_package, same_numbers, tool


def compiles_within(folder, model, seconds, gib):
    path = generate.save(model, folder / "model.onnx")
    result = tool("ds-opt", path, "-o", folder / "model.dsp", timeout=4 * seconds, memory_gib=20)
    print(f"  compiled {len(model.graph.node)} nodes in {result.seconds:.1f} s with {result.peak_mib:.0f} MiB", flush=True)
    expect(result.seconds <= seconds, f"compiled in {result.seconds:.1f} s, expected at most {seconds} s")
    expect(result.peak_mib <= gib * 1024, f"took {result.peak_mib:.0f} MiB, expected at most {gib} GiB")
    return path, folder / "model.dsp"


@case(slow=True)
def ten_thousand_nodes_in_a_row(folder):
    model, package = compiles_within(folder, generate.chain(9100), 60, 4)
    same_numbers(package, model, {"x": np.random.default_rng(0).standard_normal((5, 16), np.float32)}, folder)


@case(slow=True)
def ten_thousand_nodes_of_layers(folder):
    model, package = compiles_within(folder, generate.bert(layers=218, hidden=32, heads=2, vocabulary=100), 60, 4)
    inputs = {"input_ids": np.arange(14).reshape(2, 7), "attention_mask": np.ones((2, 7), np.int64)}
    same_numbers(package, model, inputs, folder, tolerance=1e-3)


@case(slow=True)
def bert_base(folder):
    """12 layers of 768 with 440 MB of weights: compiled in 15 s, and 1 s from the start of ds-run to its result."""
    model, package = compiles_within(folder, generate.bert(), 15, 4)
    random = np.random.default_rng(0)
    inputs = {"input_ids": random.integers(0, 30522, (1, 128)), "attention_mask": np.ones((1, 128), np.int64)}
    ours = run_package(package, inputs, folder)["last_hidden_state"]
    far = distance(ours, onnx_runtime(model, inputs)["last_hidden_state"])
    expect(far <= 1e-4, f"{far:.3g} from ONNX Runtime")
    seconds = min(tool("ds-run", package, "--dim=batch=1", "--dim=sequence=8").seconds for _ in range(3))
    print(f"  first result after {seconds:.2f} s", flush=True)
    expect(seconds <= 1, f"first result after {seconds:.2f} s, expected at most 1 s with the file in the page cache")
