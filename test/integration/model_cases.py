"""Trained and exported models: right numbers at any size from one package."""
import json

import numpy as np
from onnx import numpy_helper, load_tensor

import generate
from kit import MINILM, MODELS, Skip, case, compile_model, distance, expect, onnx_runtime, run_package, same_numbers, tool

# "A man is eating food.", "Somebody is having a meal.", "The stock market fell sharply today.", "Shares dropped on the
# exchange.", through the uncased BERT tokenizer. What their similarities are was found with ONNX Runtime.
SENTENCES = np.array([[101, 1037, 2158, 2003, 5983, 2833, 1012, 102, 0], [101, 8307, 2003, 2383, 1037, 7954, 1012, 102, 0],
                      [101, 1996, 4518, 3006, 3062, 9249, 2651, 1012, 102],
                      [101, 6661, 3333, 2006, 1996, 3863, 1012, 102, 0]])
COSINES = {(0, 1): 0.498, (0, 2): 0.051, (0, 3): 0.013, (1, 2): -0.056, (1, 3): -0.051, (2, 3): 0.357}


def tokens(batch, length, seed):
    random = np.random.default_rng(seed)
    mask = (np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int64)
    return {"input_ids": random.integers(0, 30522, (batch, length)), "attention_mask": mask}


def shared(name):
    path = MODELS / name / "model.onnx"
    if not path.exists():
        raise Skip(f"no ../shared/models/{name}")
    return path


@case
def minilm_cosines(folder):
    inputs = {"input_ids": SENTENCES, "attention_mask": (SENTENCES != 0).astype(np.int64)}
    vectors = run_package(compile_model(MINILM, folder), inputs, folder)["461"]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for (i, j), expected in COSINES.items():
        found = float(vectors[i] @ vectors[j])
        expect(f"{found:.3f}" == f"{expected:.3f}", f"cosine {i + 1}·{j + 1}: expected {expected}, found {found:.4f}")


@case(seconds=6)
def minilm_random_inputs(folder):
    package = compile_model(MINILM, folder)
    for seed, (batch, length) in enumerate([(1, 1), (1, 128), (2, 17), (5, 64), (16, 9)]):
        same_numbers(package, MINILM, tokens(batch, length, seed), folder)


@case(seconds=5)
def minilm_f64_reference(folder):
    inputs = tokens(2, 12, 5)
    theirs = onnx_runtime(MINILM, inputs)
    for option in ("--reference", "--reference=f64"):
        ours = run_package(compile_model(MINILM, folder, option), inputs, folder)
        for name in theirs:
            far = distance(ours[name], theirs[name])
            expect(far <= 1e-4, f"{option}: output {name} is {far:.3g} from ONNX Runtime")


@case(seconds=5)
def minilm_same_bits(folder):
    """Threads and batch size change no bit; a second compilation changes no byte."""
    package = compile_model(MINILM, folder)
    again = compile_model(MINILM, folder, name="again.dsp")
    for file in sorted(package.iterdir()):
        expect(file.read_bytes() == (again / file.name).read_bytes(), f"{file.name} differs between two compilations")
    inputs = tokens(4, 33, 1)
    inputs["attention_mask"][:] = 1
    one = run_package(package, inputs, folder, "--threads=1")["461"]
    two = run_package(package, inputs, folder, "--threads=2")["461"]
    expect(np.array_equal(one, two), "1 and 2 threads give different bits")
    row = run_package(package, {name: array[2:3] for name, array in inputs.items()}, folder)["461"]
    expect(np.array_equal(row[0], one[2]), "a row has different bits in a batch of 1 and of 4")


@case(seconds=3)
def tiny_distilbert(folder):
    model = shared("tiny-distilbert")
    package = compile_model(model, folder)
    for seed, (batch, length) in enumerate([(1, 1), (1, 128), (3, 20), (8, 64), (2, 511)]):
        same_numbers(package, model, tokens(batch, length, seed), folder)


@case
def mnist(folder):
    model = shared("mnist-8")
    package = compile_model(model, folder)
    for data in sorted(model.parent.glob("test_data_set_*")):
        tool("ds-run", "compare", package, data)
    for seed in range(5):
        image = np.random.default_rng(seed).random((1, 1, 28, 28), np.float32) * 255
        same_numbers(package, model, {"Input3": image}, folder)


@case(seconds=3)
def gpt2_without_past(folder):
    model = shared("gpt2-no-past")
    package = compile_model(model, folder)
    for data in sorted(model.parent.glob("test_data_set_*")):
        ids = numpy_helper.to_array(load_tensor(str(data / "input_0.pb")))
        tool("ds-run", "compare", package, data)
        same_numbers(package, model, {"input_ids": ids}, folder)


@case
def bert_shape(folder):
    """Our own BERT in small: the pattern of the exporter with a hidden size that no vector width divides."""
    model = generate.save(generate.bert(layers=2, hidden=36, heads=3, vocabulary=30522), folder / "bert.onnx")
    package = compile_model(model, folder)
    for seed, (batch, length) in enumerate([(1, 7), (3, 40)]):
        same_numbers(package, model, tokens(batch, length, seed), folder)


@case(seconds=17)
def mcpu_levels(folder):
    """Code for other levels gives the same numbers; code for features that the machine lacks is refused by name."""
    model = generate.save(generate.bert(layers=1, hidden=32, heads=2), folder / "bert.onnx")
    same_numbers(compile_model(model, folder, "--mcpu=x86-64-v3"), model, tokens(2, 9, 0), folder)
    package = compile_model(model, folder, "--mcpu=x86-64-v4,x86-64-v3")
    same_numbers(package, model, tokens(2, 9, 1), folder)
    manifest = json.loads((package / "manifest.json").read_text())
    expect(len(manifest["variants"]) == 2, f"expected a variant per level, found {len(manifest['variants'])}")
    tool("ds-opt", model, "-o", folder / "twice.dsp", "--mcpu=x86-64-v3,x86-64-v4,x86-64-v3", code=2,
         says=["--mcpu=x86-64-v3,x86-64-v4,x86-64-v3: 'x86-64-v3' is named twice"])
    # Bytes are multiplied by the instruction that goes with the vectors, where the processor that is named has it.
    bytes_by = {"znver3": set(), "alderlake": {"avx_vnni"}, "skylake-avx512": set(), "cascadelake": {"avx512_vnni"}}
    for cpu, found in bytes_by.items():
        other = json.loads((compile_model(model, folder, f"--mcpu={cpu}", name=f"{cpu}.dsp") / "manifest.json").read_text())
        features = {name for name in other["variants"][0]["features"] if "vnni" in name}
        expect(features == found, f"--mcpu={cpu} needs {features}, expected {found}")
    other = compile_model(model, folder, "--mcpu=sapphirerapids", name="sapphirerapids.dsp")
    features = json.loads((other / "manifest.json").read_text())["variants"][0]["features"]
    expect({"avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"} <= set(features), f"--mcpu=sapphirerapids needs {features}")
    for variant in manifest["variants"]:
        variant["features"].append("feature-of-tomorrow")
    (package / "manifest.json").write_text(json.dumps(manifest))
    tool("ds-run", package, "--no-verify", "--dim", "batch=1", "--dim", "sequence=4", code=1, says="feature-of-tomorrow")
