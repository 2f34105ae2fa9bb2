"""The peers of the benchmarks, each in a process of its own: ONNX Runtime, and from an environment of their own (`utils/setup
peers`) OpenVINO, IREE, PyTorch as it is and compiled. A process loads a model, then waits between its turns."""
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = {"onnxruntime": ROOT / "build/venv/bin/python"}  # else:
PEERS = ROOT / "build/venv-peers/bin/python"
PAUSE = 0.1  # seconds before another's turn: threads that wait in a loop have given up by then
KINDS = ("onnxruntime", "openvino", "iree", "torch", "torch-compiled")


class Refused(Exception):
    """A peer does not take the model; the text says why."""


class Peer:
    """A model in a peer. `precision` is f32 (that of the model), bf16, or for OpenVINO int8 and int4 (weights alone, int4 in
    groups of 32), int8-dynamic (rows, too, by the numbers that they have) and int8-static (after a calibration)."""

    def __init__(self, kind, model, inputs, threads, precision="f32"):
        python = PYTHON.get(kind, PEERS)
        if not python.exists():
            raise Refused("not installed; utils/setup peers")
        command = [python, Path(__file__).resolve(), kind, model, inputs, str(threads), precision]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.name = f"{kind} {precision}"
        start = time.perf_counter()
        self.version = self.ask(None)["version"]
        self.load_s = time.perf_counter() - start

    def ask(self, request):
        if request is not None:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}
        if "error" in answer:
            self.close()
            raise Refused(answer["error"])
        return answer

    def measure(self, seconds):
        """The ms of every call in that time."""
        times = self.ask({"seconds": seconds})["ms"]
        time.sleep(PAUSE)
        return times

    def outputs(self, path):
        """Writes the outputs of a call to an .npz file, in the model's order as 0, 1, ..."""
        self.ask({"save": str(path)})

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


# What follows runs in the peer's environment.


def with_fixed_sizes(model, inputs):
    """The model with the shapes of the inputs, which peers make faster code for."""
    import onnx
    loaded = onnx.load(model)
    for value in loaded.graph.input:
        for axis, size in zip(value.type.tensor_type.shape.dim, inputs[value.name].shape):
            axis.dim_value = size
    for value in loaded.graph.output:
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.Clear()  # named no more
    return loaded


def onnxruntime(model, inputs, threads, precision):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    # Threads that wait in a loop beyond the end of a call would take the processors from the other side.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return ort.__version__, lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def openvino(model, inputs, threads, precision):
    import openvino as ov
    core = ov.Core()
    graph = core.read_model(model)
    graph.reshape({name: list(array.shape) for name, array in inputs.items()})
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False,
               "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32"}
    if precision in ("int8", "int4"):
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    if precision == "int8-static":
        import nncf
        graph = nncf.quantize(graph, nncf.Dataset([inputs]), model_type=nncf.ModelType.TRANSFORMER, subset_size=1)
    elif precision.startswith("int"):
        import nncf
        mode = nncf.CompressWeightsMode.INT4_SYM if precision == "int4" else nncf.CompressWeightsMode.INT8_SYM
        kind = {"group_size": 32, "ratio": 1.0, "all_layers": True} if precision == "int4" else {}
        graph = nncf.compress_weights(graph, mode=mode, **kind)
    request = core.compile_model(graph, "CPU", options).create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, ov.Tensor(array, shared_memory=True))
    return ov.__version__.split("-")[0], request.infer, lambda: [
        request.get_output_tensor(i).data for i in range(len(graph.outputs))]


def iree(model, inputs, threads, precision):
    import importlib.metadata
    import tempfile

    import onnx
    from iree import compiler, runtime
    if precision != "f32":
        raise Refused("only f32 is asked of IREE")
    with tempfile.TemporaryDirectory() as folder:
        fixed, program = Path(folder, "fixed.onnx"), Path(folder, "program.mlir")
        loaded = with_fixed_sizes(model, inputs)
        onnx.save(loaded, fixed)
        subprocess.run([Path(sys.executable).parent / "iree-import-onnx", fixed, "-o", program], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Its norms want more stack than it allows by default.
        code = compiler.compile_file(str(program), target_backends=["llvm-cpu"], input_type="onnx", extra_args=[
            "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-llvmcpu-stack-allocation-limit=1mib"])
    runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    config = runtime.Config("local-task")
    module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, code), config)
    arrays = [runtime.asdevicearray(config.device, inputs[value.name]) for value in loaded.graph.input]
    last = []

    def call():
        found = module.main(*arrays)
        last[:] = found if isinstance(found, (list, tuple)) else [found]

    return importlib.metadata.version("iree-base-compiler"), call, lambda: [array.to_host() for array in last]


def torch(model, inputs, threads, precision, compiled=False):
    import torch as t

    import torch_models
    t.set_num_threads(threads)
    kind = t.bfloat16 if precision == "bf16" else t.float32
    if precision not in ("f32", "bf16"):
        raise Refused("only f32 and bf16 are asked of PyTorch")
    with t.inference_mode():
        network = torch_models.load(model, kind).eval()
        run = t.compile(network) if compiled else network
        given = {name: t.from_numpy(array) for name, array in inputs.items()}
        given = {name: tensor.to(kind) if tensor.is_floating_point() else tensor for name, tensor in given.items()}
    last = {}

    def call():
        with t.inference_mode():
            last["results"] = run(given)

    return t.__version__, call, lambda: [tensor.float().numpy() for tensor in last["results"]]


def serve(kind, model, inputs, threads, precision):
    import numpy as np
    given = {name: np.ascontiguousarray(array) for name, array in np.load(inputs).items()}
    make = {"onnxruntime": onnxruntime, "openvino": openvino, "iree": iree, "torch": torch,
            "torch-compiled": lambda *all: torch(*all, compiled=True)}[kind]
    version, call, results = make(model, given, int(threads), precision)
    for _ in range(3):
        call()
    yield {"version": version}
    for line in sys.stdin:
        request = json.loads(line)
        if "save" in request:
            call()
            np.savez(request["save"], **{str(i): np.asarray(array) for i, array in enumerate(results())})
            yield {}
            continue
        times, end = [], time.perf_counter() + request["seconds"]
        call()
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(1000 * (time.perf_counter() - start))
        yield {"ms": times}


if __name__ == "__main__":
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a peer prints is no answer
    try:
        for answer in serve(*sys.argv[1:]):
            print(json.dumps(answer), file=answers, flush=True)
    except Exception as error:
        print(json.dumps({"error": (str(error).strip() or type(error).__name__).splitlines()[0][:200]}), file=answers, flush=True)
