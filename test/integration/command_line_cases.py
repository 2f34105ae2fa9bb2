"""A sample of what utils/check-command-lines does with a thousand command lines and fifty interrupts."""
import random
import shutil

import numpy as np

import command_lines
import generate
from kit import case, compile_model, expect, tool
from programs import SEED


def prepare(folder):
    model = generate.save(generate.small(), folder / "m.onnx")
    compile_model(model, folder, "--mcpu=x86-64-v3", name="m.dsp")
    compile_model(model, folder, "--mode=train", "--loss=mse", "--logits=y", "--labels=z", "--mcpu=x86-64-v3", name="t.dsp")
    np.savez(folder / "x.npz", x=np.ones((3, 4), np.float32))
    np.savez(folder / "t.npz", x=np.ones((3, 4), np.float32), z=np.ones((3, 8), np.float32))
    np.savez(folder / "empty.npz")
    (folder / "c.json").write_text('{"optimizer": {"type": "SGD", "params": {"lr": 0.1}}}')
    tool("ds-run", "bench", folder / "m.dsp", "--dim=n=3", "--iterations=1", "--json", folder / "bench.json")
    tool("ds-run", "train", folder / "t.dsp", "--data", folder / "t.npz", "--steps=1", "--checkpoint", folder / "ck")
    (folder / "text.txt").write_text("text\n")
    (folder / "empty").touch()


@case(seconds=12)
def random_command_lines(folder):
    prepare(folder)
    lines = command_lines.Lines(SEED)
    found = [command_lines.fault_of(folder, *lines.next()) for _ in range(40)]
    faults = [fault for fault, _ in found if fault]
    expect(not faults, "\n".join(faults))
    expect({code for _, code in found} >= {0, 2}, f"lines of one kind only: {found}")


@case(seconds=12)
def interrupts_leave_nothing_behind(folder):
    (folder / "models").mkdir()
    generate.save(generate.bert(layers=2, hidden=64, heads=2, vocabulary=200), folder / "models/bert.onnx")
    package = compile_model(folder / "models/bert.onnx", folder / "models", name="bert.dsp")
    compiling = ("ds-opt", ["models/bert.onnx", "-o", "out.dsp"])
    running = ("ds-run", ["bench", package, "--dim=batch=2", "--dim=sequence=64", "--json=out.json", "--duration=1"])
    chance, interrupted = random.Random(SEED), 0
    for tool, words in (compiling, running) * 4:
        fault, is_early = command_lines.interrupt(folder, tool, words, chance.uniform(0, 1.5), ("out.dsp", "out.json"))
        expect(not fault, fault)
        interrupted += is_early
        shutil.rmtree(folder / "out.dsp", ignore_errors=True)
        (folder / "out.json").unlink(missing_ok=True)
    expect(interrupted > 0, "every command had ended before it was interrupted")
