"""The trained voice activity detector of the PyPI package silero-vad (MIT licence): LSTM, Conv, If inside If, state in
and out. utils/check-models installs it."""
import numpy as np

from kit import case, compile_model, distance, expect, onnx_runtime, run_package
from trained_cases import package

# File, what to pin, inputs besides the sound and its length. The rate is pinned where branches depend on it: they give
# values of different rank, and with it the program has no input 'sr'.
STATE = {"state": (2, -1, 128)}
MODELS = [
    ("silero_vad", {"sr": 16000, "input_d1": 576}, (2, 576), STATE),
    ("silero_vad", {"sr": 8000, "input_d1": 288}, (3, 288), STATE),
    ("silero_vad_op18_ifless", {}, (2, 576), {**STATE, "sr": 16000}),
    ("silero_vad_op18_ifless", {}, (1, 288), {**STATE, "sr": 8000}),
    ("silero_vad_16k_op15", {"sequence": 576}, (2, 576), {**STATE, "sr": 16000}),
    ("silero_vad_openvino_16k", {}, (1, 576), STATE),
    ("silero_vad_half", {"sequence": 576}, (2, 576), STATE),
    ("silero_vad_16k_sequence", {}, (7, 576), {"h": (1, 1, 128), "c": (1, 1, 128)}),
]


@case(slow=True)
def voice_activity(folder):
    """The f32 tolerance; two calls in a row, the second with the state of the first."""
    random = np.random.default_rng()
    for number, (name, pins, shape, others) in enumerate(MODELS):
        model = package(f"silero_vad/data/{name}.onnx")
        options = [f"--dim={dim}={size}" for dim, size in pins.items()]
        compiled = compile_model(model, folder, *options, name=f"{number}.dsp")
        states = {state: np.zeros([shape[0] if size < 0 else size for size in sizes], np.float32)
                  for state, sizes in others.items() if isinstance(sizes, tuple)}
        rate = {"sr": np.array(others["sr"])} if "sr" in others else {}
        for _ in range(2):
            inputs = {"input": 0.3 * random.standard_normal(shape, np.float32), **states, **rate}
            ours = run_package(compiled, inputs, folder)
            theirs = onnx_runtime(model, inputs | ({"sr": np.array(pins["sr"])} if "sr" in pins else {}))
            expect(set(ours) == set(theirs), f"{name}: expected outputs {sorted(theirs)}, found {sorted(ours)}")
            for output in theirs:
                far = distance(ours[output], theirs[output])
                expect(far <= 1e-4, f"{name} {pins}: output {output} is {far:.3g} from ONNX Runtime")
            states = {state: next(ours[output] for output in ours if output.startswith(state) and output != "output")
                      for state in states}
