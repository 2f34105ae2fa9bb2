"""Models that ONNX Runtime's optimizers and quantizers wrote: the com.microsoft operators as they come in real graphs."""
import logging
import shutil

import numpy as np

from kit import MINILM, Skip, case, compile_model, distance, expect, onnx_runtime, run_package, same_numbers
from model_cases import SENTENCES, shared, tokens


def optimized(model, folder):
    """The model as ONNX Runtime stores it after its extended graph optimizations."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    path = folder / f"optimized-{model.name}"
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return path


def agrees(model, folder, *inputs):
    model = optimized(model, folder)
    package = compile_model(model, folder)
    for values in inputs:
        same_numbers(package, model, values, folder)


@case(seconds=6)
def optimized_minilm(folder):
    agrees(MINILM, folder, *(tokens(batch, length, batch) for batch, length in ((1, 1), (2, 17), (5, 64))))


@case
def optimized_distilbert(folder):
    agrees(shared("tiny-distilbert"), folder, *(tokens(batch, length, batch) for batch, length in ((1, 9), (3, 40))))


@case
def optimized_mnist(folder):
    random = np.random.default_rng(0)
    agrees(shared("mnist-8"), folder, *({"Input3": random.random((1, 1, 28, 28), np.float32) * 255} for _ in range(3)))


@case(seconds=6)
def optimized_gpt2(folder):
    random = np.random.default_rng(0)
    shapes = ((1, 8), (2, 5))
    agrees(shared("gpt2-no-past"), folder, *({"input_ids": random.integers(0, 20, shape)} for shape in shapes))


@case(slow=True)
def fused_minilm(folder):
    """All that onnxruntime.transformers fuses for BERT: embeddings, attention, skip normalizations, biased GELU."""
    try:
        import sympy  # noqa: F401: the optimizer cannot do without
        from onnxruntime.transformers import optimizer
    except ImportError as error:
        raise Skip(f"onnxruntime.transformers is incomplete: {error}")
    model = folder / "fused.onnx"
    optimizer.optimize_model(str(MINILM), "bert", num_heads=12, hidden_size=384, opt_level=0).save_model_to_file(str(model))
    package = compile_model(model, folder)
    for batch, length in ((1, 9), (3, 20), (2, 64)):
        same_numbers(package, model, tokens(batch, length, batch), folder)


def quantization():
    logging.disable(logging.WARNING)  # a line for each value whose type the quantizer does not infer
    try:
        import onnxruntime.quantization
    except ImportError as error:
        raise Skip(f"no onnxruntime.quantization: {error}")
    return onnxruntime.quantization


def apart(ours, theirs):
    """The root mean square of the differences as a share of that of the values."""
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return np.inf
    return np.sqrt(np.mean((ours - theirs) ** 2) / np.mean(theirs**2))


def close(model, folder, *inputs, share=0.01):
    package = compile_model(model, folder)
    for values in inputs:
        ours, theirs = run_package(package, values, folder), onnx_runtime(model, values)
        for name, right in theirs.items():
            far = apart(ours[name], right)
            expect(far <= share, f"{model.name} output {name}: relative root mean square {far:.3g} from ONNX Runtime")


def sentences():
    return {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}


def dynamic(tools, folder, **options):
    model = folder / "dynamic.onnx"
    tools.quantize_dynamic(shutil.copy(MINILM, folder / "float.onnx"), model, **options)
    close(model, folder, sentences(), tokens(4, 33, 4))
    # Optimized, the same model holds DynamicQuantizeMatMul and MatMulIntegerToFloat.
    close(optimized(model, folder), folder, sentences(), tokens(4, 33, 4))


@case(seconds=9)
def dynamically_quantized_minilm(folder):
    tools = quantization()
    # With weights of 7 bits: on CPUs without VNNI, ONNX Runtime's sums of two u8 × i8 products saturate at 16 bits.
    dynamic(tools, folder, weight_type=tools.QuantType.QInt8, reduce_range=True)


@case(slow=True)
def dynamically_quantized_minilm_per_channel(folder):
    tools = quantization()
    dynamic(tools, folder, weight_type=tools.QuantType.QUInt8, per_channel=True)


def roundings_differ_by_one_step(model, folder, inputs):
    """The first quantized tensor that is not ONNX Runtime's is off by one step, at few places: a float between two
    steps. What the model makes of that later is no fault of a kernel's."""
    import onnx
    graph = onnx.load(model)
    stated = {output.name for output in graph.graph.output}
    names = [node.output[0] for node in graph.graph.node if node.op_type.startswith("QLinear") and node.output[0] not in stated]
    graph.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    path = folder / f"all-{model.name}"
    onnx.save(graph, path)
    ours, theirs = run_package(compile_model(path, folder), inputs, folder), onnx_runtime(path, inputs)
    expect(len(names) > 50, f"only {len(names)} operators")
    for name in names:
        steps = np.abs(ours[name].astype(int) - theirs[name].astype(int))
        if steps.any():
            expect(steps.max() == 1 and np.mean(steps) < 0.01, f"{name}: {steps.max()} steps, {np.mean(steps > 0):.3g} of the places")
            break


def static(tools, folder, share=0.01, **options):
    class Calibration(tools.CalibrationDataReader):
        def __init__(self):
            self.data = iter([sentences()])

        def get_next(self):
            return next(self.data, None)
    model = folder / "static.onnx"
    # 7 bits, as above. The quantizer writes beside the model that it reads.
    tools.quantize_static(shutil.copy(MINILM, folder / "float.onnx"), model, Calibration(), reduce_range=True, **options)
    close(model, folder, sentences(), share=share)
    close(optimized(model, folder), folder, sentences(), share=share)
    return model


@case(seconds=23)
def statically_quantized_minilm(folder):
    tools = quantization()
    static(tools, folder, quant_format=tools.QuantFormat.QDQ, op_types_to_quantize=["MatMul"])


@case(slow=True)
def statically_quantized_minilm_per_channel(folder):
    tools = quantization()
    static(tools, folder, quant_format=tools.QuantFormat.QDQ, op_types_to_quantize=["MatMul"], per_channel=True)


@case(slow=True)
def statically_quantized_minilm_operators(folder):
    tools = quantization()
    static(tools, folder, quant_format=tools.QuantFormat.QOperator, op_types_to_quantize=["MatMul"])


@case(slow=True)
def statically_quantized_minilm_everywhere(folder):
    tools = quantization()
    static(tools, folder, quant_format=tools.QuantFormat.QDQ)


@case(slow=True)
def statically_quantized_minilm_operators_everywhere(folder):
    tools = quantization()
    # Every sum of a residual has 8 bits here: one rounding in the second layer moves the third by some percents.
    model = static(tools, folder, share=0.2, quant_format=tools.QuantFormat.QOperator)
    roundings_differ_by_one_step(model, folder, sentences())
