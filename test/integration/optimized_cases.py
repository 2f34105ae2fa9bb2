"""Models that ONNX Runtime's optimizers and quantizers wrote: the com.microsoft operators as they come in real graphs."""
import numpy as np

from kit import MINILM, case, compile_model, same_numbers
from model_cases import shared, tokens


def optimized(model, folder):
    """The model as ONNX Runtime stores it after its extended graph optimizations."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return folder / "optimized.onnx"


def agrees(model, folder, *inputs):
    model = optimized(model, folder)
    package = compile_model(model, folder)
    for values in inputs:
        same_numbers(package, model, values, folder)


@case
def optimized_minilm(folder):
    agrees(MINILM, folder, *(tokens(batch, length, batch) for batch, length in ((1, 1), (2, 17), (5, 64))))


@case
def optimized_distilbert(folder):
    agrees(shared("tiny-distilbert"), folder, *(tokens(batch, length, batch) for batch, length in ((1, 9), (3, 40))))


@case
def optimized_mnist(folder):
    random = np.random.default_rng(0)
    agrees(shared("mnist-8"), folder, *({"Input3": random.random((1, 1, 28, 28), np.float32) * 255} for _ in range(3)))


@case
def optimized_gpt2(folder):
    random = np.random.default_rng(0)
    shapes = ((1, 8), (2, 5))
    agrees(shared("gpt2-no-past"), folder, *({"input_ids": random.integers(0, 20, shape)} for shape in shapes))
