"""The commands of the documents of training, run as they stand there: in order, in one folder, with the files that they name.

Each command must be known here with what it promises; one that is new in a document fails until it is.
"""
import contextlib
import json
import os
import re
import shlex
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

import training_models as models
from kit import BIN, ROOT, Skip, case, expect, tool
from programs import SEED
from training_runs import log_of, safetensors, settings, write_config

DOCUMENTS = ("training", "training-data", "config", "quantized-training", "layer-dropping", "profiling")
MODEL = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 6] x) => (float[n, 4] logits)
           { z = MatMul (x, w) a = Add (z, b) t = Tanh (a) logits = MatMul (t, v) }"""
# What the text leaves open.
MEANS = {"--steps=N": "--steps=5", "--data=…": "--data=train.npz"}


def blocks(text):
    """(language, lines) of the blocks between ```."""
    return [(language, body.splitlines()) for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


def is_call(words):
    """Whether the words of a sentence are to be run, as they have files; others name a tool, a subcommand or an option."""
    return words[0] in ("ds-opt", "ds-run") and any(re.fullmatch(r"[\w/]+\.\w+", word) for word in words[1:])


def commands(text):
    """All that is to be run, in the order of the text, whether it has a block or stands in a sentence."""
    found = []
    for number, part in enumerate(re.split(r"^```", text, flags=re.M)):
        if number % 2:  # a block
            language, *lines = part.split("\n")
            found += [line.split(" #")[0].strip() for line in lines if not language and line.startswith("ds-")]
        else:
            found += [span for span in re.findall(r"`([^`]+)`", part) if is_call(span.split())]
    return found


def prepare(folder):
    """What the documents take for given: a model with logits, data of two kinds, a configuration."""
    g = np.random.default_rng(SEED)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in (("w", (6, 8)), ("b", (8,)), ("v", (8, 4))):
        model.graph.initializer.append(numpy_helper.from_array(g.standard_normal(shape, np.float32), name))
    onnx.save(model, folder / "model.onnx")
    for name, samples in (("train", 44), ("test", 13), ("batch", 8)):
        x = g.standard_normal((samples, 6), np.float32)
        np.savez(folder / f"{name}.npz", x=x, labels=(x[:, 0] > 0) + 2 * (x[:, 1] > 0))
    write_config(folder, settings(("AdamW", {"lr": 0.02}), micro=8))
    for name, page in (("moq", "quantized-training"), ("pld", "layer-dropping")):
        text, = ("\n".join(lines) for language, lines in blocks(document(page)) if language == "json")
        (folder / f"{name}.json").write_text(text)
    onnx.save(models.gpt(layers=3, positions=8), folder / "gpt.onnx")
    ids = g.integers(0, 61, (40, 8))
    np.savez(folder / "text.npz", input_ids=ids, labels=ids)


def compiled(folder, out):
    found = json.loads((folder / "m.dsp/manifest.json").read_text())["training"]
    rate, = (key["value"] for key in found["config"]["keys"] if key["key"] == "optimizer.params.lr")
    expect(found["labels"] == "labels" and rate == 0.02, f"compiled for {found}")


def trained(folder, out):
    rows = log_of(folder / "run.jsonl")
    expect(len(rows) == 3 * 6 and rows[-1]["samples"] == 3 * 44, f"3 epochs of 44 samples in batches of 8 gave {len(rows)} steps")
    first, last = (np.mean([row["loss"] for row in part]) for part in (rows[:6], rows[-6:]))  # of the same samples
    expect(last < first and "eval_loss" in rows[-1], f"the loss went from {first} to {last}; the log ends with {rows[-1]}")
    expect((folder / "run/latest").read_text().strip() == "global_step18", "the checkpoint is another one")
    expect("<polyline" in (folder / "run.html").read_text(), "the page has no curves")


def exported(folder, out):
    before, after = (onnx.load(folder / f"{name}.onnx") for name in ("model", "trained"))
    onnx.checker.check_model(after)
    expect([n.SerializeToString() for n in before.graph.node] == [n.SerializeToString() for n in after.graph.node], "the graph is another one")
    stored, moved = ({t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in (before, after))
    expect(stored.keys() == moved.keys() and all(stored[name].shape == moved[name].shape for name in stored), f"parameters: {sorted(moved)}")
    expect(not any(np.array_equal(stored[name], moved[name]) for name in stored), "a parameter did not move")


def exported_tensors(folder, out):
    expect(set(safetensors(folder / "trained.safetensors")) == {"w", "b", "v"}, "other tensors than the parameters")


def inspected(folder, out):
    expect("global_step18" in out and "132" in out and all(re.search(rf"\b{name}\b", out) for name in "wbv"), f"inspect says {out}")


def verified(folder, out):
    expect(out.strip(), "verify says nothing")


def make_two(folder):
    for tag, steps in (("a", 19), ("b", 20)):
        tool("ds-run", "train", "m.dsp", "--data=train.npz", f"--steps={steps}", "--checkpoint=run", "--resume", f"--tag={tag}")


def told_apart(folder, out):
    expect(re.search(r"\bstep\b", out) and all(re.search(rf"\b{name}\b", out) for name in "wbv"), f"diff says {out}")


def scheduled(folder, out):
    expect(re.findall(r"^ *(\d+)  lr 0.02 +momentum 0.9$|^.+$", out, re.M) == list("01234"), f"the schedule is {out}")


def tried(folder, out):
    expect(re.search(r"^suggested learning rate: \S+$|^the loss fell nowhere", out, re.M) and out.count("*") > 10, f"lr-range says {out}")


def differentiated(folder, out):
    with np.load(folder / "g.npz") as found:
        expect(set(found) == {"loss", "w", "b", "v"} and all(np.any(found[name]) for name in found), f"gradients: {sorted(found)}")


def scheduled_widths(folder, out):
    widths = [int(bits or 0) for bits in re.findall(r"weights (?:in (\d+) bits|not rounded)$", out, re.M)]
    expect(len(widths) == 200 and [step + 1 for step in range(1, 200) if widths[step] != widths[step - 1]] == [20, 40, 60, 100, 180], f"widths are {widths}")


def trained_on_images(folder, out):
    rows = log_of(folder / "moq.jsonl")
    expect(len(rows) == 200 and rows[-1]["bits"] == 8 and rows[-1]["loss"] < rows[0]["loss"] / 2, f"{rows[0]}, {rows[-1]}")


def scheduled_theta(folder, out):
    theta = [float(number) for number in re.findall(r"theta (\S+)$", out, re.M)]
    expect(len(theta) == 100 and theta[:2] == [1, 1] and abs(theta[21] - (0.5 + 0.5 * np.exp(-1))) < 1e-5, f"theta is {theta[:3]} and so on")


def dropped(folder, out):
    rows, page = log_of(folder / "pld.jsonl"), (folder / "pld.html").read_text()
    expect(len(rows) == 40 and any(row["blocks"] < 6 for row in rows) and "blocks that ran" in page, f"the log ends with {rows[-1]}")
    expect(rows[-1]["loss"] < rows[0]["loss"] and rows[-1]["keep_rates"][0] == 1, f"{rows[0]}, {rows[-1]}")


def exported_codes(folder, out):
    proto = onnx.load(folder / "quantized.onnx")
    onnx.checker.check_model(proto)
    expect(sum(t.data_type == onnx.TensorProto.INT8 for t in proto.graph.initializer) == 2, "w and v have codes of 8 bits")


def compiled_codes(folder, out):
    test = dict(np.load(folder / "test.npz"))
    np.savez(folder / "x.npz", x=test["x"])
    tool("ds-run", "inference.dsp", "--inputs=x.npz", "--output=y.npz")
    accuracy = np.mean(np.load(folder / "y.npz")["logits"].argmax(1) == test["labels"])
    expect(accuracy == log_of(folder / "moq.jsonl")[-1]["accuracy"], f"the package has accuracy {accuracy}")


def make_model(folder):
    tool("ds-opt", "model.onnx", "-o", "model.dsp")
    with np.load(folder / "batch.npz") as batch:
        np.savez(folder / "x.npz", x=batch["x"])


def call_profiled(folder, out):
    report, page = json.loads((folder / "call.json").read_text()), (folder / "call.html").read_text()
    expect(report["profile"]["total"]["macs"]["forward"] == 8 * (6 * 8 + 8 * 4), f"{report['profile']['total']}")
    expect("Perfetto" not in page and "<details" in page and json.loads((folder / "trace.json").read_text())["traceEvents"], "page and trace")


def step_profiled(folder, out):
    expect(re.search(r"^batch size per rank: +8, 1 micro-batches, 8 samples in the step$", out, re.M) and "update latency" in out, f"profile says {out}")
    expect((folder / "step.html").exists(), "no page")


FIRST = "ds-opt model.onnx --mode=train --config=ds_config.json --loss=cross_entropy --logits=logits --labels=labels -o m.dsp"
# The command, and what it must leave; then, where it needs them, its exit code and what goes before.
KNOWN = {
    FIRST: (compiled,),
    "ds-run train m.dsp --data=train.npz --epochs=3 --eval-data=test.npz --checkpoint=run --log=run.jsonl --html=run.html": (trained,),
    "ds-run checkpoint export run --package=m.dsp -o trained.onnx": (exported,),
    "ds-run schedule m.dsp --steps=N": (scheduled,),
    "ds-run lr-range m.dsp --data=…": (tried,),
    "ds-run checkpoint inspect run": (inspected,),
    "ds-run checkpoint verify run": (verified,),
    "ds-run checkpoint diff run/a run/b": (told_apart, 1, make_two),
    "ds-run checkpoint export run -o trained.safetensors": (exported_tensors,),
    FIRST.replace("ds_config", "moq").replace("m.dsp", "q.dsp"): (lambda folder, out: None,),
    "ds-run schedule q.dsp --steps=200": (scheduled_widths,),
    "ds-run train q.dsp --data=train.npz --steps=200 --eval-data=test.npz --checkpoint=moq --log=moq.jsonl": (trained_on_images,),
    "ds-run checkpoint export moq --package=q.dsp --quantized -o quantized.onnx": (exported_codes,),
    "ds-opt quantized.onnx -o inference.dsp": (compiled_codes,),
    FIRST.replace("ds_config", "pld").replace("m.dsp", "p.dsp").replace("model.onnx", "gpt.onnx"): (lambda folder, out: None,),
    "ds-run schedule p.dsp --steps=100": (scheduled_theta,),
    "ds-run train p.dsp --data=text.npz --steps=40 --log=pld.jsonl --html=pld.html": (dropped,),
    "ds-run gradients m.dsp --inputs=batch.npz --output=g.npz": (differentiated,),
    "ds-run profile model.dsp --inputs=x.npz --html=call.html --json=call.json --trace=trace.json": (call_profiled, 0, make_model),
    "ds-run profile m.dsp --inputs=batch.npz --module-depth=2 --top-modules=3 --html=step.html": (step_profiled,),
}


def document(name):
    return (ROOT / f"docs/{name}.md").read_text()


@case(seconds=20)
def commands_of_the_documents(folder):
    prepare(folder)
    found = [command for name in DOCUMENTS for command in commands(document(name))]
    expect(set(found) == set(KNOWN), f"without a check here, or no more in the documents: {sorted(set(found) ^ set(KNOWN))}")
    with contextlib.chdir(folder):
        for command in found:
            check, code, before = KNOWN[command] if len(KNOWN[command]) == 3 else (*KNOWN[command], 0, None)
            if before:
                before(folder)
            ran = tool(*(MEANS.get(word, word) for word in shlex.split(command)), code=code)
            expect(ran.err == "", f"{command} warns: {ran.err}")
            check(folder, ran.out)


@case
def names_of_tools_and_options(folder):
    """What sentences name, the tools have: subcommands, and options for one of them."""
    options = tool("ds-opt", "--help").out + tool("ds-opt", "--help-hidden").out
    commands_of = re.findall(r"^  ([a-z-]+) ", tool("ds-run", "--help").out.split("Subcommands:")[1], re.M)
    options += tool("ds-run", "--help").out + "".join(tool("ds-run", command, "--help").out for command in commands_of)
    known, faults = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", options)), []
    for name in DOCUMENTS:
        text = re.sub(r"<!-- keys.*?end of keys -->", "", document(name), flags=re.S)
        for span in re.findall(r"`([^`\n]+)`", text) + [line for _, lines in blocks(text) for line in lines]:
            words = span.split(" #")[0].split()
            faults += [f"{name}: {word}" for word in words if word.startswith("--") and word.split("=")[0] not in known]
            words = [word for word in words if not word.startswith("--ranks=")]
            if words and words[0] == "ds-run" and len(words) > 1 and words[1] not in commands_of:
                faults.append(f"{name}: ds-run {words[1]}")
    expect(not faults, f"no tool has {faults}")


@case(seconds=13)
def blocks_of_the_documents(folder):
    """Each block is commands, the loop in C, a part of a configuration, or the folder of a checkpoint."""
    prepare(folder)

    def configures(language, lines):
        if language != "json":
            return False
        config = json.loads("".join(lines))
        write_config(folder, config if "optimizer" in config else settings(("AdamW", {"lr": 0.02}), micro=8, **config))
        with contextlib.chdir(folder):
            first = FIRST.replace("model.onnx", "gpt.onnx") if "progressive_layer_drop" in config else FIRST
            return tool(*first.split(), "--print-config").err == ""

    for name in DOCUMENTS:
        for language, lines in blocks(document(name)):
            kinds = {"c": language == "c", "commands": not language and all(line.startswith(("ds-opt ", "ds-run ")) for line in lines if line),
                     "configuration": configures(language, lines),
                     "folder": not language and all(line.startswith("DIR/") for line in lines)}
            expect(sum(kinds.values()) == 1, f"{name}: no test runs the block that begins with {lines[:1]}")


@case(seconds=3)
def loop_in_c(folder):
    """The loops of the document, with declarations around them, compile, train and save."""
    if "SANITIZED" in os.environ:
        raise Skip("a library with sanitizers is not for programs without")
    prepare(folder)
    snippets = ["\n".join(lines) for language, lines in blocks(document("training")) if language == "c"]
    expect([snippet.split("_create")[0] for snippet in snippets] == ["ds_engine", "ds_trainer"], f"{snippets}")
    x = np.load(folder / "batch.npz")
    numbers = lambda array: "{" + ", ".join(repr(v) for v in array.reshape(-1).tolist()) + "}"
    for kind, snippet, judged in (("engine", snippets[0], "record.step != 3 || record.is_skipped || !(record.grad_norm > 0)"),
                                  ("trainer", snippets[1], "!is_finite || !(norm > 0)")):
        (folder / f"{kind}.c").write_text(f"""#include "ds/{kind}.h"
#include <stddef.h>
static float x[] = {numbers(x["x"])};
static int64_t labels[] = {numbers(x["labels"])};
static int64_t xShape[] = {{8, 6}}, labelShape[] = {{8}};
static ds_tensor inputs[] = {{{{sizeof(ds_tensor), "x", DS_F32, 2, xShape, x}}, {{sizeof(ds_tensor), "labels", DS_I64, 1, labelShape, labels}}}};
ds_tensor *next_batch(void);
ds_tensor *next_batch(void) {{ return inputs; }}
int main(void) {{
  int64_t steps = 4;
  int n = 2, is_finite = 0;
  double loss = 0, norm = 0, rate = 0.02;
  size_t count = 2;
  ds_package *package = NULL;
  ds_{kind} *{kind} = NULL;
  ds_tensor *batch[] = {{inputs, inputs}};
  {"ds_step record = {sizeof(ds_step)};" if kind == "engine" else ""}
  (void)n, (void)is_finite, (void)norm, (void)rate, (void)batch;
  if (ds_package_load("m.dsp", NULL, &package))
    return 1;
{snippet}
  int wrong = ds_{kind}_steps({kind}) != 4 || !(loss > 0) || {judged};
  ds_{kind}_free({kind});
  ds_package_free(package);
  return wrong;
}}
""")
    with contextlib.chdir(folder):
        tool(*FIRST.split())
        for kind in ("engine", "trainer"):
            for command in (["clang-22", "-std=c11", "-Wall", "-Werror", "-Wno-unused-result", f"-I{ROOT / 'runtime/include'}", f"{kind}.c", f"-L{BIN.parent / 'lib'}",
                             "-lds_runtime", f"-Wl,-rpath,{BIN.parent / 'lib'}", "-o", kind], [f"./{kind}"]):
                found = subprocess.run(command, capture_output=True, text=True)
                expect(found.returncode == 0, f"{command[0]} ended with {found.returncode}: {found.stderr[-2000:]}")
        content = json.loads((folder / "run" / (folder / "run/latest").read_text().strip() / "checkpoint.json").read_text())
        expect(content["client_state"] == {"epoch": 3} and content["step"] == 4, f"saved: {content['step']}, {content['client_state']}")


@case(seconds=4)
def checkpoints_of_the_document(folder):
    """The files and members that training-data.md lists are those that a run writes."""
    prepare(folder)
    with contextlib.chdir(folder):
        tool(*FIRST.split())
        tool("ds-run", "train", "m.dsp", "--data=train.npz", "--steps=3", "--checkpoint=run", "--client-state=ds_config.json")
    text = document("training-data")
    listed, = ({line.split()[0].replace("DIR", "run").replace("global_step100", "global_step3") for line in lines}
               for _, lines in blocks(text) if lines[0].startswith("DIR/"))
    found = {str(path.relative_to(folder)) for path in (folder / "run").rglob("*") if path.is_file()}
    expect(listed == found, f"files of one side only: {sorted(listed ^ found)}")
    content = json.loads((folder / "run/global_step3/checkpoint.json").read_text())
    rows = re.search(r"^\| member of `checkpoint.json`.*?\n\n", text, re.M | re.S).group().strip().splitlines()[2:]
    members = set()
    for row in rows:
        for part in row.split("|")[1].split(";"):
            first, _, inner = part.partition(":")
            names = re.findall(r"`(\w+)`", first)
            members |= set(names)
            below = re.findall(r"`(\w+)`", inner)
            for name in names if below else ():
                where = content[name][0] if isinstance(content[name], list) else content[name]
                expect(set(where) == set(below), f"members of {name}: {sorted(set(where) ^ set(below))} on one side only")
    expect(members == set(content), f"members of one side only: {sorted(members ^ set(content))}")
    expect(list(content)[-1] == "sha256", "the checksum is not the last member")
