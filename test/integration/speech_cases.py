"""The trained voice activity detector of the PyPI package silero-vad (MIT licence): LSTM, Conv, If inside If, state in
and out. utils/check-models installs it."""
import numpy as np

from kit import case, compile_model, distance, expect, onnx_runtime, run_package, tool
from programs import SEED
from trained_cases import package

# File, calls (the sound's shape and, where the model has that input, the rate), and the state's inputs. Branches of
# different rank depend on the rate and on the sound's length; nothing is pinned.
STATE = {"state": (2, -1, 128)}
MODELS = [
    ("silero_vad", [((2, 576), 16000), ((3, 288), 8000), ((1, 640), 16000), ((1, 96), 8000)], STATE),
    ("silero_vad_op18_ifless", [((2, 576), 16000), ((1, 288), 8000), ((2, 1000), 8000)], STATE),
    ("silero_vad_16k_op15", [((2, 576), 16000)], STATE),
    ("silero_vad_openvino_16k", [((1, 576), None)], STATE),
    ("silero_vad_half", [((2, 576), None), ((1, 200), None)], STATE),
    ("silero_vad_16k_sequence", [((7, 576), None)], {"h": (1, 1, 128), "c": (1, 1, 128)}),
]


def detects(compiled, model, shape, rate, others, folder, pinned=()):
    """The f32 tolerance; two calls in a row, the second with the state of the first."""
    random = np.random.default_rng(SEED)
    states = {state: np.zeros([shape[0] if size < 0 else size for size in sizes], np.float32)
              for state, sizes in others.items()}
    for _ in range(2):
        inputs = {"input": 0.3 * random.standard_normal(shape, np.float32), **states}
        inputs |= {} if rate is None else {"sr": np.array(rate)}
        ours = run_package(compiled, {name: value for name, value in inputs.items() if name not in pinned}, folder)
        theirs = onnx_runtime(model, inputs)
        expect(set(ours) == set(theirs), f"{model.name}: expected outputs {sorted(theirs)}, found {sorted(ours)}")
        for output in theirs:
            far = distance(ours[output], theirs[output])
            expect(far <= 1e-4, f"seed {SEED}: {model.name} {shape} {rate}: output {output} is {far:.3g} from ONNX Runtime")
        states = {state: next(ours[output] for output in ours if output.startswith(state) and output != "output")
                  for state in states}


@case(slow=True)
def voice_activity(folder):
    for number, (name, calls, others) in enumerate(MODELS):
        model = package(f"silero_vad/data/{name}.onnx")
        compiled = compile_model(model, folder, name=f"{number}.dsp")
        for shape, rate in calls:
            detects(compiled, model, shape, rate, others, folder)


@case(slow=True)
def voice_activity_of_one_rate(folder):
    """Pinned, the branches fold; the program has no input of the rate."""
    model = package("silero_vad/data/silero_vad.onnx")
    for rate, length in ((16000, 576), (8000, 288)):
        compiled = compile_model(model, folder, "--dim", f"sr={rate}", name=f"{rate}.dsp")
        detects(compiled, model, (2, length), rate, STATE, folder, pinned=("sr",))
        compiled = compile_model(model, folder, "--dim", f"sr={rate}", "--dim", f"input_d1={length}",
                                 name=f"{rate}.dsp")
        detects(compiled, model, (2, length), rate, STATE, folder, pinned=("sr",))


@case(slow=True)
def voice_activity_of_other_lengths(folder):
    """What ONNX Runtime refuses, since an LSTM gets an axis too many, is refused with the length."""
    model = package("silero_vad/data/silero_vad.onnx")
    compiled = compile_model(model, folder)
    for rate, length in ((16000, 1200), (8000, 576)):
        inputs = {"input": np.zeros((1, length), np.float32), "state": np.zeros((2, 1, 128), np.float32),
                  "sr": np.array(rate)}
        try:
            onnx_runtime(model, inputs)
        except Exception:
            np.savez(folder / "inputs.npz", **inputs)
            tool("ds-run", compiled, "--inputs", folder / "inputs.npz", code=1,
                 says=["compiled for other sizes and inputs: found ", f"input_d1 = {length}", f"sr[0] = {rate}"])
        else:
            raise AssertionError(f"ONNX Runtime takes {length} samples at {rate} Hz; choose another length")
