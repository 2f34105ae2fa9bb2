"""Training by DeepSpeed's three calls: the bits of ds-run train, alone and on ranks; and inference by its call."""
import json
import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path

import numpy as np

import deepstride
from support import Case, MODELS

RUN = Path(deepstride.__file__).parent / "bin/ds-run"
MODEL = MODELS / "classifier.onnx"
LOSS = {"loss": "cross_entropy", "logits": "logits", "labels": "labels"}
CONFIG = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 0.5,
          "optimizer": {"type": "AdamW", "params": {"lr": 0.02, "weight_decay": 0.1}},
          "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 0.02, "warmup_num_steps": 2, "total_num_steps": 8}}}
# Rank r of N takes every N-th micro-batch, as ds-run train does.
PROGRAM = """
import json, sys
import numpy as np
import deepstride

data = dict(np.load("data.npz"))
with deepstride.initialize("train.dsp", seed=7, threads=1) as engine:
    rank, world = engine.global_rank, engine.world_size
    for at in range(rank, int(sys.argv[2]) * engine.gradient_accumulation_steps() * world, world):
        loss = engine({name: array[at * 4 % 96:at * 4 % 96 + 4] for name, array in data.items()})
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(sys.argv[1], client_state={"rank": 0})
    if rank == 0:
        print(json.dumps([engine.global_steps, engine.last_step.loss, world]))
"""


class Training(Case):
    def setUp(self):
        super().setUp()
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        g = np.random.default_rng(5)
        self.data = {"x": g.standard_normal((96, 8), np.float32), "labels": g.integers(0, 3, 96)}
        np.savez("data.npz", **self.data)
        Path("ds_config.json").write_text(json.dumps(CONFIG))

    def batch(self, number):
        return {name: array[number * 4 % 96:number * 4 % 96 + 4] for name, array in self.data.items()}

    def engine(self, **changes):
        return deepstride.initialize(MODEL, {**CONFIG, **changes}, threads=1, **LOSS)

    def run_tool(self, *arguments):
        done = subprocess.run([str(RUN), *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def files(self, folder):
        return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("global_step6/*.safetensors"))}

    def test_bits_of_the_command_line(self):
        deepstride.compile(MODEL, "train.dsp", mode="train", config="ds_config.json", **LOSS)
        Path("loop.py").write_text(PROGRAM)
        for ranks in (1, 2):
            launch = [f"--ranks={ranks}"] if ranks > 1 else []
            self.run_tool(*launch, "train", "train.dsp", "--data=data.npz", "--steps=6", "--shuffle=off", "--seed=7", "--threads=1",
                          f"--checkpoint=tool{ranks}")
            command = [sys.executable, "loop.py", f"loop{ranks}", "6"]
            out = self.run_tool(*launch, "--exec", *command) if ranks > 1 else subprocess.check_output(command, text=True)
            steps, loss, world = json.loads(out)
            self.assertEqual((steps, world), (6, ranks))
            self.assertTrue(np.isfinite(loss))
            found = self.files(f"loop{ranks}")
            self.assertEqual(found, self.files(f"tool{ranks}"))
            self.assertGreaterEqual(len(found), 2)

    def test_steps_at_the_boundary(self):
        with self.engine() as engine:
            self.assertEqual((engine.train_batch_size(), engine.train_micro_batch_size_per_gpu()), (8, 4))
            self.assertEqual([(info.name, info.shape) for info in engine.inputs], [("x", ("batch", 8)), ("labels", ("batch",))])
            for number in range(4):
                loss = engine(**self.batch(number))
                engine.backward(loss)
                self.assertEqual(engine.is_gradient_accumulation_boundary(), number % 2 == 1)
                engine.step()
                self.assertEqual(engine.global_steps, (number + 1) // 2)
                self.assertEqual(engine.micro_steps, number + 1)
            self.assertEqual(engine.get_lr(), [0.02])
            self.assertGreater(engine.get_global_grad_norm(), 0)
            self.assertEqual(engine.last_step.samples, 16)

    def test_loss_is_that_of_numpy(self):
        with self.engine() as engine:
            batch = self.batch(0)
            logits = deepstride.init_inference(MODEL)(batch["x"]).astype(np.float64)
            chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            expected = -np.log(chances[np.arange(4), batch["labels"]]).mean()
            self.assertAlmostEqual(float(engine(batch)), expected, places=5)  # f32 against f64
            engine.eval()
            found = engine(batch["x"], batch["labels"])
            self.assertAlmostEqual(found.loss, expected, places=5)
            self.assertEqual((found.counted, found.correct), (4, int((logits.argmax(1) == batch["labels"]).sum())))

    def test_a_loss_that_nobody_reads_changes_nothing(self):
        found = []
        for reads in (False, True):
            with self.engine() as engine:
                for number in range(2):
                    if reads:
                        engine(self.batch(number + 5))
                    loss = engine(self.batch(number))
                    engine.backward(loss)
                    engine.step()
                found.append(engine.last_step)
        self.assertEqual(found[0], found[1])

    def test_what_the_caller_fills_again(self):
        """Loaders have one buffer for all batches."""
        found = []
        for shares in (False, True):
            with self.engine() as engine:
                buffer = {name: array.copy() for name, array in self.batch(0).items()}
                for number in range(2):
                    for name, array in self.batch(number).items():
                        buffer[name][...] = array
                    loss = engine(buffer if shares else self.batch(number))
                    for array in buffer.values():
                        array[...] = 0
                    engine.backward(loss)
                    engine.step()
                found.append(engine.last_step)
        self.assertEqual(found[0], found[1])

    def test_forks(self):
        """A child has none of the threads: it is told so, and ends."""
        with self.engine() as engine:
            loss = engine(self.batch(0))
            program = os.fork()
            if program == 0:
                try:
                    engine(self.batch(1))
                except deepstride.InvalidArgumentError as error:
                    engine.close()
                    del engine, loss
                    os._exit(7 if "fork" in str(error) else 1)
                os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]), 7)
            engine.backward(loss)

    def test_checkpoints(self):
        with self.engine() as engine:
            for number in range(4):
                engine.backward(engine(self.batch(number)))
                engine.step()
            engine.save_checkpoint("run", tag="best", client_state={"epoch": 3})
            engine.eval()
            before = engine(self.batch(0)).loss
        with self.engine() as engine:
            path, state = engine.load_checkpoint("run")
            self.assertEqual((path, state, engine.global_steps, engine.last_step), ("run/best", {"epoch": 3}, 2, None))
            self.refuses(deepstride.InvalidArgumentError, "tag", engine.save_checkpoint, "run", "a\0b")
            engine.eval()
            self.assertEqual(engine(self.batch(0)).loss, before)
            self.refuses(deepstride.Error, "nowhere", engine.load_checkpoint, "nowhere")
            self.refuses(deepstride.InvalidArgumentError, "client_state", engine.save_checkpoint, "run", client_state={"x": object()})

    def test_trained_models_run(self):
        deepstride.compile(MODEL, "train.dsp", mode="train", config="ds_config.json", **LOSS)
        with deepstride.initialize("train.dsp", threads=1) as engine:
            for number in range(10):  # the first two steps are before the warm-up
                engine.backward(engine(self.batch(number)))
                engine.step()
            engine.save_checkpoint("run")
        x = self.data["x"][:4]
        fresh, trained = deepstride.init_inference(MODEL)(x), deepstride.init_inference("train.dsp", checkpoint="run")(x)
        self.assertGreater(np.abs(fresh - trained).max(), 1e-3)
        half = deepstride.init_inference("train.dsp", checkpoint="run", dtype=np.float16)(x)
        np.testing.assert_allclose(half, trained, rtol=0.02, atol=0.02)  # f16 has 11 bits

    def test_refusals(self):
        with self.engine() as engine:
            kind = deepstride.InvalidArgumentError
            self.refuses(kind, "input 'labels' is missing", engine, x=self.data["x"][:4])
            self.refuses(kind, "no input 'y'", engine, y=1)
            self.refuses(kind, "expected a loss of this engine", engine.backward, 0.5)
            self.refuses(deepstride.ShapeMismatchError, "'x'", lambda: engine(self.data["x"][:4, 1:], self.data["labels"][:4]).item())
            wrong = engine(self.data["x"][:4, 1:], self.data["labels"][:4])
            for _ in range(2):  # says the same when it is asked again
                self.refuses(deepstride.ShapeMismatchError, "'x'", wrong.item)
            loss = engine(self.batch(0))
            self.assertTrue(float(loss) > 0)
            self.refuses(kind, "backward(loss) was not called", engine, self.batch(1))
            self.refuses(kind, "not given to backward", engine.step)
            engine.backward(loss)
            self.refuses(kind, "has not seen yet", engine.backward, loss)
        self.refuses(kind, "closed", engine.step)
        self.refuses(deepstride.Error, ": optimiser: unknown key", self.engine, optimiser={})
        self.refuses(kind, "seed", deepstride.initialize, MODEL, CONFIG, seed=-1)
        self.refuses(kind, "mp_size: found 2, expected 1", deepstride.init_inference, MODEL, mp_size=2)
        self.refuses(kind, "dtype: found 'f8'", deepstride.init_inference, MODEL, dtype="f8")
        self.refuses(kind, "checkpoint: expected model to be the package", deepstride.init_inference, MODEL, checkpoint="run")

    def test_notes_are_warnings(self):
        deepstride.compile(MODEL, "train.dsp", mode="train", config="ds_config.json", **LOSS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            deepstride.initialize("train.dsp", {**CONFIG, "gradient_accumulation_steps": 4}).close()
        self.assertTrue(any("gradient_accumulation_steps: compiled with 2, given 4" in str(one.message) for one in caught), caught)


if __name__ == "__main__":
    unittest.main()
