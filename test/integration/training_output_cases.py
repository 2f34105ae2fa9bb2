"""What ds-run train and lr-range show besides the log: event files, pages, lines on the terminal, a suggested rate. Read here by code of
our own, and held against the log."""
import contextlib
import json
import math
import re
import shutil
import struct
from html.parser import HTMLParser

import numpy as np

from kit import case, expect, tool
from programs import SEED
from training_runs import log_of, settings, small_data, small_package, train, write_config

FP16 = {"enabled": True, "initial_scale_power": 30, "loss_scale_window": 5, "hysteresis": 1}  # a scale that moves, and steps that overflow
TOP, BOTTOM, LEFT, RIGHT = 26, 206, 64, 708  # of the curves in a picture


def crc32c(content):
    """Bit by bit, of the Castagnoli polynomial."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records(path):
    """The contents of a file of TFRecords: length, its checksum, content, its checksum."""
    expect(crc32c(b"123456789") == 0xE3069283, "the checksum of the standard's example")
    content, place = path.read_bytes(), 0
    masked = lambda part: ((crc32c(part) >> 15 | crc32c(part) << 17) + 0xA282EAD8) & 0xFFFFFFFF
    while place < len(content):
        head = content[place:place + 12]
        size, checksum = struct.unpack("<QI", head)
        expect(checksum == masked(head[:8]), f"{path}: the checksum of a length at {place}")
        body = content[place + 12:place + 12 + size]
        expect(len(body) == size, f"{path} ends within a record")
        expect(struct.unpack("<I", content[place + 12 + size:place + 16 + size])[0] == masked(body), f"{path}: the checksum of a record at {place}")
        yield body
        place += 16 + size


def fields(message):
    """(number, value) of each field of a protobuf message; values are integers, or bytes where there is a length or a fixed size."""
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
            if byte < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        expect(place + size <= len(message), "a field is longer than its message")
        yield key >> 3, message[place:place + size]
        place += size


def scalars(path):
    """(tag, step, value, time) of each event after the first, which names the version."""
    first, *events = records(path)
    expect(dict(fields(first))[3] == b"brain.Event:2", "the first event is the version")
    for event in events:
        found = dict(fields(event))
        expect(set(found) == {1, 2, 5}, f"an event has {sorted(found)}")
        value = dict(fields(dict(fields(found[5]))[1]))
        yield value[1].decode(), found[2], struct.unpack("<f", value[2])[0], struct.unpack("<d", found[1])[0]


class Page(HTMLParser):
    """Tags, texts and the curves of a page, each curve with the title of its picture and its color."""

    def __init__(self, text):
        super().__init__()
        self.open, self.curves, self.texts, self.pictures, self.cells = [], [], [], [], []
        self.feed(text)
        self.close()
        expect(not self.open, f"never closed: {self.open}")
        # Offline: nothing is loaded, nothing runs.
        expect(not re.search(r"<(script|link|img|iframe|object)|https?:|url\(|@import|javascript:|\son\w+=", text), "the page loads or runs something")

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
        if tag == "svg":
            self.pictures.append([])
        if tag == "polyline":
            self.add(dict(attributes))

    def handle_startendtag(self, tag, attributes):
        if tag == "polyline":
            self.add(dict(attributes))

    def add(self, attributes):
        points = [tuple(map(float, point.split(","))) for point in attributes["points"].split()]
        self.curves.append((self.pictures[-1][0], attributes["stroke"], points))

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, f"</{tag}> closes another element")

    def handle_data(self, text):
        if self.open and self.open[-1] == "text":
            self.pictures[-1].append(text)
        if self.open and self.open[-1] == "td":
            self.cells.append(text)
        self.texts.append(text)


def same_curve(found, xs, ys, low, high, what, log_x=False, log_y=False, of=None):
    """The points of a curve lie where its numbers belong, in the range that all curves of the picture share; `of`: all xs."""
    of = xs if of is None else of
    kept = [(x, y) for x, y in zip(xs, ys) if y is not None and math.isfinite(y)]
    expect(len(found) == len(kept), f"{what}: {len(found)} points for {len(kept)} numbers")
    scaled = lambda value, is_log: math.log10(value) if is_log else value

    def place(value, bounds, start, end, is_log):
        first, last = (scaled(bound, is_log) for bound in bounds)
        return (start + end) / 2 if first == last else start + (scaled(value, is_log) - first) / (last - first) * (end - start)

    for point, (x, y) in zip(found, kept):
        expected = place(x, (min(of), max(of)), LEFT, RIGHT, log_x), place(y, (low, high), BOTTOM, TOP, log_y)
        expect(max(abs(a - b) for a, b in zip(point, expected)) <= 0.11, f"{what}: a point at {point}, expected at {expected} for {x}, {y}")


def smoothed(losses, keep):
    """The average of what was seen, later losses weighing more, without the bias towards 0 of its start."""
    found = []
    for i in range(len(losses)):
        weights = keep ** np.arange(i, -1, -1.0)
        found.append(float(np.sum(weights * losses[:i + 1]) / np.sum(weights)))
    return found


def trained(folder, package=None, steps=24, **config):
    """A run with all outputs; the log, the page, what the command said. The configuration is compiled, or given to `package`."""
    config = settings("AdamW", scheduler=("WarmupLR", {"warmup_max_lr": 0.01, "warmup_num_steps": 8}), **config)
    package, data = package or small_package(folder, config), small_data(folder, seed=SEED)
    said = train(package, data, f"--steps={steps}", f"--log={folder / 'log.jsonl'}", f"--html={folder / 'page.html'}", f"--eval-data={data}",
                 "--eval-interval=5", f"--config={write_config(folder, config)}").out
    return log_of(folder / "log.jsonl"), Page((folder / "page.html").read_text()), said


@case(seconds=2)
def events_for_tensorboard(folder):
    """Every number of the log is an event of its tag, at the count of samples."""
    rows, _, _ = trained(folder, tensorboard={"enabled": True, "output_path": str(folder / "curves"), "job_name": "first"}, fp16=FP16)
    path, = (folder / "curves/first").iterdir()
    expect(path.name.startswith("events.out.tfevents."), f"TensorBoard looks for another name than {path.name}")
    found, times = {}, []
    for tag, step, value, time in scalars(path):
        found.setdefault(tag, []).append((step, value))
        times.append(time)
    expect(times == sorted(times) and abs(times[-1] - path.stat().st_mtime) < 60, "times of events")
    tags = {"Train/Samples/train_loss": "loss", "Train/Samples/lr": "lr", "Train/Samples/grad_norm": "grad_norm", "Train/Samples/loss_scale": "loss_scale",
            "Eval/Samples/loss": "eval_loss"}
    expect(set(found) == set(tags), f"tags: {sorted(found)}")
    expect(any(row["overflow"] for row in rows) and not all(row["overflow"] for row in rows), "some steps should overflow")
    for tag, key in tags.items():
        wanted = [(row["samples"], row[key]) for row in rows if key in row]
        expect([step for step, _ in found[tag]] == [step for step, _ in wanted], f"{tag}: steps {[step for step, _ in found[tag]]}")
        for (step, value), (_, expected) in zip(found[tag], wanted):
            same = not math.isfinite(value) if expected is None else value == np.float32(expected)
            expect(same, f"{tag} at {step} is {value}, in the log {expected}")


@case
def events_where_nothing_is_said(folder):
    """Without a path or a name events go to ./DeepSpeedJobName; switched off there are none."""
    package, data = small_package(folder, settings("SGD")), small_data(folder)
    with contextlib.chdir(folder):
        for on in (False, True):
            train(package, data, "--steps=2", f"--config={write_config(folder, settings('SGD', tensorboard={'enabled': on}))}")
            expect((folder / "DeepSpeedJobName").exists() == on, f"enabled is {on}")
    path, = (folder / "DeepSpeedJobName").iterdir()
    expect(len(list(scalars(path))) == 6, "three numbers of each of two steps: without fp16 no loss is scaled")


@case(seconds=2)
def page_of_a_training(folder):
    """The page is whole by itself, and its curves are those of the log: as many points, each in its place."""
    rows, page, _ = trained(folder, fp16=FP16)
    titles = [texts[0] for texts in page.pictures]
    expect(titles == ["loss", "accuracy in evaluation", "learning rate", "gradient norm, before clipping", "loss scale"], f"pictures: {titles}")
    steps, good = [row["step"] for row in rows], [row for row in rows if not row["overflow"]]
    scores = [row for row in rows if "eval_loss" in row]
    expect(len(scores) == 5 and len(good) < len(rows), "evaluations and overflows")
    losses = ([row["loss"] for row in rows], smoothed(np.array([row["loss"] for row in good]), 0.95), [row["eval_loss"] for row in scores])
    numbers = [value for line in losses for value in line if value is not None]
    curves = {title: [(color, points) for name, color, points in page.curves if name == title] for title in titles}
    expect([len(curves[title]) for title in titles] == [3, 1, 1, 1, 1], f"curves: {[len(curves[title]) for title in titles]}")
    for (_, points), ys, xs in zip(curves["loss"], losses, (steps, [row["step"] for row in good], [row["step"] for row in scores])):
        # Axes are shared: ends that a curve does not reach are given by the first one.
        padded_x, padded_y = [*xs, steps[0], steps[-1]], [*ys, None, None]
        same_curve(points, padded_x, padded_y, min(numbers), max(numbers), "loss")
    for title, key in (("learning rate", "lr"), ("gradient norm, before clipping", "grad_norm"), ("loss scale", "loss_scale")):
        ys = [row[key] for row in rows]
        seen = [(x, y) for x, y in zip(steps, ys) if y is not None]
        same_curve(curves[title][0][1], *map(list, zip(*seen)), min(y for _, y in seen), max(y for _, y in seen), title, log_y=key == "loss_scale")
    accuracies = [row["accuracy"] for row in scores]
    same_curve(curves["accuracy in evaluation"][0][1], [row["step"] for row in scores], accuracies, min(accuracies), max(accuracies), "accuracy")
    cells = dict(zip(page.cells[::2], page.cells[1::2]))
    expect(cells["steps"] == "24" and cells["samples"] == str(rows[-1]["samples"]) and cells["skipped"] == str(rows[-1]["skipped"]), f"table: {cells}")
    expect(math.isclose(float(cells["last loss"]), rows[-1]["loss"], rel_tol=1e-5), f"table: {cells}")


@case(seconds=3)
def page_with_less(folder):
    """Without evaluations, overflows and a scale: three pictures, two lines of loss, which differ by the rounding of an average."""
    package, data = small_package(folder, settings("SGD")), small_data(folder)
    train(package, data, "--steps=1", f"--html={folder / '<b>&.html'}", memory_gib=2)
    page = Page((folder / "<b>&.html").read_text())
    expect([texts[0] for texts in page.pictures] == ["loss", "learning rate", "gradient norm, before clipping"], f"{page.pictures}")
    expect([len(points) for _, _, points in page.curves] == [1] * 4, f"a step is a point: {page.curves}")


def lines_of_steps(said, what):
    return [int(step) for step in re.findall(rf"^step (\d+): {what}", said, re.M)]


@case(seconds=3)
def lines_of_progress(folder):
    """Every so many steps, with the log's numbers; every evaluation; times of the parts only where they are asked for."""
    package = small_package(folder, settings("AdamW"))
    for every, is_timed in ((1, False), (5, True), (7, False), (100, True)):
        rows, _, said = trained(folder, package, steps=14, steps_per_print=every, wall_clock_breakdown=is_timed)
        expected = list(range(every - 1, 14, every))
        expect(lines_of_steps(said, "loss") == expected, f"steps_per_print {every}: lines of steps {lines_of_steps(said, 'loss')}")
        expect(lines_of_steps(said, "evaluation loss") == [4, 9, 13], f"evaluations: {said}")
        for step, loss, lr, norm in re.findall(r"^step (\d+): loss (\S+), lr (\S+), grad norm (\S+)$", said, re.M):
            row = rows[int(step)]
            expect(all(math.isclose(float(text), row[key], rel_tol=1e-5) for text, key in ((loss, "loss"), (lr, "lr"), (norm, "grad_norm"))),
                   f"step {step}: printed {loss}, {lr}, {norm}; {row}")
        times = re.findall(r"^step (\d+): data (\S+) ms, forward and backward (\S+) ms, update (\S+) ms$", said, re.M)
        expect([int(step) for step, *_ in times] == (expected if is_timed else []), f"times: {said}")
        for step, *parts in times:
            parts = list(map(float, parts))
            expect(min(parts) >= 0 and parts[1] > 0 and parts[2] > 0, f"times of step {step}: {parts}")
            # The log's time is that of the whole step; numbers here have six digits.
            expect(sum(parts) <= rows[int(step)]["step_ms"] * 1.001 + 1e-6, f"step {step}: {parts} of {rows[int(step)]['step_ms']} ms")
        expect(re.search(rf"^14 steps, {rows[-1]['samples']} samples, loss ", said, re.M), f"the last line: {said[-200:]}")


@case(seconds=8)
def memory_at_the_end(folder):
    """memory_breakdown prints the plan, whose parts are those of `inspect` for the data's batches, and the most that the log says."""
    for on in (True, False):
        rows, _, said = trained(folder, steps=2, memory_breakdown=on)
        lines = re.findall(r"^memory: planned (\S+) MiB \((.*)\) and (\S+) for each of (\d+) threads?, at most (\S+) MiB$", said, re.M)
        expect(len(lines) == on, f"memory_breakdown {on}: {said}")
    # The package of the last run has the same plan.
    rows, _, said = trained(folder, steps=2, memory_breakdown=True)
    package = next(folder.glob("*.dsp"))
    plan = json.loads(tool("ds-run", "inspect", package, "--json", "--dim=n=4").out)["variants"][0]["memory"]
    (total, parts, scratch, threads, most), = re.findall(r"^memory: planned (\S+) MiB \((.*)\) and (\S+) for each of (\d+) threads?, at most (\S+) MiB$", said, re.M)
    parts = {name: float(number) for name, number in (part.split() for part in parts.split(", "))}
    expect(set(parts) == {name for name, number in plan.items() if number and name not in ("total_bytes", "scratch_per_thread")}, f"{parts}, {plan}")
    for name, number in (*parts.items(), ("total_bytes", float(total)), ("scratch_per_thread", float(scratch))):
        expect(math.isclose(number, plan[name] / 2**20, rel_tol=1e-3, abs_tol=1e-6), f"{name}: {number} MiB, planned {plan[name]} bytes")
    expect(math.isclose(float(most), rows[-1]["peak_bytes"] / 2**20, rel_tol=0.1, abs_tol=1) and int(threads) > 0, f"at most {most}; {rows[-1]}")


@case(seconds=6)
def state_at_the_start(folder):
    """dump_state prints the configuration with each value's origin, the parameters and the optimizer's states; otherwise nothing of it."""
    for on in (True, False):
        package, data = small_package(folder, settings(("AdamW", {"lr": 0.003}), dump_state=on)), small_data(folder)
        said = train(package, data, "--steps=1", f"--checkpoint={folder / 'ck'}").out
        content = json.loads((folder / "ck/global_step1/checkpoint.json").read_text())
        for what, file in (("parameter", "parameters"), ("optimizer state", "optimizer")):
            names = [tensor["name"] for tensor in content["tensors"] if tensor["file"].startswith(file)]
            found = re.findall(rf"^{what} (.+)$", said, re.M)
            expect(sorted(found) == (sorted(names) if on else []), f"{what}: {found}, in the checkpoint {names}")
        line = re.search(r"^.*optimizer\.params\.lr.*$", said, re.M)
        expect(bool(line) == on and (not on or "0.003" in line.group()), f"the rate among {said[:2000]}")


@case(seconds=2)
def rates_of_a_range(folder):
    """Rates grow by one factor; the suggestion is where the smoothed loss falls most per power of ten before it is least."""
    package, data = small_package(folder, settings("AdamW", steps_per_print=1)), small_data(folder, 60, seed=SEED)
    for low, high, steps in ((1e-6, 1.0, 60), (1e-3, 30.0, 40)):
        options = [package, f"--data={data}", f"--min-lr={low}", f"--max-lr={high}", f"--steps={steps}"]
        found = json.loads(tool("ds-run", "lr-range", *options, f"--html={folder / 'page.html'}", "--json").out)
        rows = found["steps"]
        rates, smooth = [row["lr"] for row in rows], [row["smoothed"] for row in rows]
        expect(3 <= len(rows) <= steps, f"{len(rows)} steps of {steps}")
        np.testing.assert_allclose(rates, np.geomspace(low, high, steps)[:len(rows)], rtol=1e-9)
        np.testing.assert_allclose(smooth, smoothed(np.array([row["loss"] for row in rows]), 0.8), rtol=1e-9)
        if len(rows) < steps:  # it stops where the loss has left its least value far below
            expect(smooth[-1] > min(smooth) + 3 * max(min(smooth), 0.1), "it stopped without a reason")
        least = int(np.argmin(smooth))
        slopes = [(smooth[i + 1] - smooth[i - 1]) / math.log(rates[i + 1] / rates[i - 1]) for i in range(1, min(least + 1, len(rows) - 1))]
        wanted = rates[1 + int(np.argmin(slopes))] if slopes and min(slopes) < 0 else None
        expect(found["suggestion"] == wanted, f"suggested {found['suggestion']}, expected {wanted}")
        page = Page((folder / "page.html").read_text())
        both = [row["loss"] for row in rows] + smooth
        for (_, _, points), ys in zip(page.curves[:2], ([row["loss"] for row in rows], smooth), strict=True):
            same_curve(points, rates, ys, min(both), max(both), "loss by rate", log_x=True)
        expect(len(page.curves) == (3 if wanted else 2), f"{len(page.curves)} curves")
        if wanted:  # a line at the rate, from the least to the greatest loss
            same_curve(page.curves[2][2], [wanted, wanted], [min(both), max(both)], min(both), max(both), "the suggestion", log_x=True,
                       of=rates)
        suggested, = (text for text in page.texts if text.startswith("suggested: ") or text == "the loss fell nowhere")
        expect(wanted is None or math.isclose(float(suggested.split()[1]), wanted, rel_tol=1e-5), suggested)
        text = tool("ds-run", "lr-range", *options).out
        plotted = re.findall(r"^ *(\S+) +(\S+) ( *)\*$", text, re.M)
        stride = max(1, len(rows) // 40)
        expect(len(plotted) == len(rows[::stride]), f"{len(plotted)} lines of the plot for {len(rows)} steps")
        for (rate, loss, bar), row in zip(plotted, rows[::stride]):
            wide = 50 * (row["smoothed"] - min(smooth)) / (max(smooth) - min(smooth))
            expect(math.isclose(float(rate), row["lr"], rel_tol=6e-3) and math.isclose(float(loss), row["smoothed"], rel_tol=6e-4)
                   and abs(len(bar) - wide) <= 1, f"plotted {rate} {loss} {len(bar)} for {row}, {wide}")
        expect(("suggested learning rate: %.3g" % wanted if wanted else "fell nowhere") in text, text[-200:])


@case(seconds=3)
def a_range_of_a_checkpoint(folder):
    """From the states of a checkpoint, as a resumed run takes them, and without a trace in it; by the configured range test, too."""
    ranges = {"lr_range_test_min_lr": 0.001, "lr_range_test_step_size": 2, "lr_range_test_step_rate": 4.0, "lr_range_test_staircase": True}
    config = settings(("Adam", {"lr": 0.01}), micro=20, scheduler=("LRRangeTest", ranges))
    package, data, kept = small_package(folder, config), small_data(folder, 60, seed=SEED), folder / "ck"
    plain = write_config(folder, settings(("Adam", {"lr": 0.01}), micro=20), "plain.json")
    train(package, data, "--steps=3", f"--config={plain}", f"--checkpoint={kept}", "--seed=5")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(kept.rglob("*")) if path.is_file()}
    options = [package, f"--data={data}", f"--checkpoint={kept}", "--steps=8", "--json"]
    rows = json.loads(tool("ds-run", "lr-range", *options).out)["steps"]
    scheduled = [0.001 * (1 + 4 * ((step - 1 + 1) // 2 if step else 0)) for step in range(8)]
    np.testing.assert_allclose([row["lr"] for row in rows], scheduled[:len(rows)], rtol=1e-9)
    # The first loss is that of the parameters in the checkpoint, of the samples that come next.
    copy = folder / "copy"
    shutil.copytree(kept, copy)
    train(package, data, "--steps=4", f"--config={plain}", f"--checkpoint={copy}", "--resume", f"--log={folder / 'log'}")
    expect(rows[0]["loss"] == log_of(folder / "log")[-1]["loss"], f"{rows[0]}, resumed: {log_of(folder / 'log')[-1]}")
    chosen = json.loads(tool("ds-run", "lr-range", *options, "--min-lr=0.01", "--max-lr=0.1").out)["steps"]
    np.testing.assert_allclose([row["lr"] for row in chosen], np.geomspace(0.01, 0.1, 8)[:len(chosen)], rtol=1e-9)
    expect(chosen[0]["loss"] == rows[0]["loss"], f"{chosen[0]}, {rows[0]}")
    for option, ends in (("--min-lr=0.01", (0.01, 1)), ("--max-lr=0.1", (1e-7, 0.1))):  # one alone is enough to leave the scheduler's
        chosen = json.loads(tool("ds-run", "lr-range", *options, option).out)["steps"]
        np.testing.assert_allclose([row["lr"] for row in chosen], np.geomspace(*ends, 8)[:len(chosen)], rtol=1e-9)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(kept.rglob("*")) if path.is_file()}
    expect(before == after, "the checkpoint is not as it was")
    tool("ds-run", "lr-range", *options, "--tag=none", code=2, says="no checkpoint 'none'")
    tool("ds-run", "lr-range", package, f"--data={data}", "--tag=x", code=2, says="--tag is about checkpoints")
    tool("ds-run", "lr-range", package, f"--data={data}", "--min-lr=2", code=2, says="--max-lr: found 1, expected more than --min-lr, 2")


@case(seconds=6)
def what_a_range_refuses(folder):
    package, data = small_package(folder, settings("Adam", micro=4)), small_data(folder)
    common = ["lr-range", package, f"--data={data}"]
    for steps in (1, 2):
        tool("ds-run", *common, f"--steps={steps}", code=2, says=f"--steps: found {steps}, expected at least 3")
    tool("ds-run", *common, "--steps=3")
    for rate in ("0", "-1", "nan", "inf", "x"):
        for option in ("--min-lr", "--max-lr"):
            tool("ds-run", *common, f"{option}={rate}", code=2, says=f"{option}: expected a number above 0, found '{rate}'")
    tool("ds-run", *common, f"--html={folder / 'none' / 'x.html'}", f"--data={folder / 'none.npz'}", code=1, says="x.html: cannot create a file there")
    scaled = small_package(folder, settings("Adam", micro=4, fp16={"enabled": True, "initial_scale_power": 120, "hysteresis": 1}), name="scaled.dsp")
    tool("ds-run", "lr-range", scaled, f"--data={data}", "--steps=10", code=1,
         says="found 0 steps with finite losses and gradients, expected at least 3; 10 overflowed: more --steps or a smaller initial_scale_power may help")


@case(seconds=3)
def rates_are_those_used(folder):
    """The losses of lr-range are those of a training at these rates, made of runs of one step that go on from each other."""
    package, data = small_package(folder, settings("SGD", micro=60)), small_data(folder, 60, seed=SEED)
    low, high, steps = 0.01, 2.0, 8
    rows = json.loads(tool("ds-run", "lr-range", package, f"--data={data}", f"--min-lr={low}", f"--max-lr={high}", f"--steps={steps}", "--json").out)["steps"]
    for step in range(steps):  # one update each, at the rate of that step, from the checkpoint before
        config = write_config(folder, settings(("SGD", {"lr": rows[min(step, len(rows) - 1)]["lr"]}), micro=60))
        train(package, data, f"--steps={step + 1}", f"--config={config}", f"--checkpoint={folder / 'ck'}", f"--log={folder / 'log'}",
              *["--resume"] * (step > 0))
    losses = [row["loss"] for row in log_of(folder / "log")]
    expect(losses[:len(rows)] == [row["loss"] for row in rows], f"{losses}, by lr-range {[row['loss'] for row in rows]}")
