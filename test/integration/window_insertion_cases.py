"""Values that are put into a part of a tensor where they are computed, beside windows that are read of it: programs that update
states and loops against NumPy's exact numbers, recurrent operators against ONNX Runtime."""
import itertools
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epilogue_cases import CPUS
from kit import case, compile_model, expect, run_package, same_numbers, tool
from products import CODES
from programs import SEED
from state_cases import BINARY, check_program
from window_region_cases import FAR, LENGTHS


class StateProgram:
    """A program that reads windows of states, and puts what it computes of them into windows of the same states, which
    overlap; as MLIR and as Python functions of an environment."""

    def __init__(self, seed):
        self.random, self.count, self.lines, self.steps = np.random.default_rng(seed), 0, [], []
        pick = lambda *values: int(self.random.choice(values))
        self.rows, self.columns = pick(4, 9, 40), pick(20, 33, 50)
        self.part = pick(1, 2, self.rows - 2), pick(1, 5, 16, 17, self.columns, self.columns)
        self.states, self.trips = [f"s{i}" for i in range(pick(1, 2, 3))], pick(0, 0, 3)
        inside = ["%c" + state[1:] for state in self.states] if self.trips else ["%" + state for state in self.states]
        self.fulls, self.parts = ["%x", *inside, *inside], []
        for _ in range(pick(4, 6, 9)):
            self.parts.append(getattr(self, str(self.random.choice(["pair", "pair", "pair", "neg", "product"])))())
            if self.random.random() < 0.6:
                self.fulls.append(self.put())
            if self.random.random() < 0.15:
                self.fulls.append(self.op(f"ds.binary sub {{}}, {{}} : ({self.type()}, {self.type()}) -> {self.type()}", np.subtract,
                                          self.full(), self.full()))
        self.fulls.append(self.put())
        self.results = [self.fulls[-1], *(self.full() for _ in self.states[1:])]
        if len(self.states) > 1 and self.random.random() < 0.5:
            self.results.reverse()
        self.text = self.program()

    def type(self, *dims):
        return f"tensor<{''.join(f'{dim}x' for dim in dims or (self.rows, self.columns))}f32>"

    def op(self, text, value, *operands):
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {text.format(*operands)}")
        self.steps.append(lambda env: env.__setitem__(name, value(*(env[operand] for operand in operands))))
        return name

    def full(self):
        return self.fulls[-1 - min(int(self.random.exponential(2)), len(self.fulls) - 1)]

    def place(self, step=1):
        return [int(self.random.integers(0, whole - (part - 1) * step)) for whole, part in zip((self.rows, self.columns), self.part)]

    def window(self):
        if self.parts and self.random.random() < 0.4:
            return self.parts[-1 - min(int(self.random.exponential(1)), len(self.parts) - 1)]
        starts, steps, at = self.place(), [1, 1], []
        for axis, size in enumerate(self.part):
            if self.random.random() < 0.2:
                starts[axis], steps[axis] = starts[axis] + size - 1, -1
            indices = starts[axis] + steps[axis] * np.arange(size)
            at.append(indices)
        kind = f"({self.type()}) -> {self.type(*self.part)}"
        return self.op(f"ds.slice {{}} starts {starts} sizes {list(self.part)} steps {steps} : {kind}",
                       lambda x: x[np.ix_(*at)], self.full())

    def binary(self, kind, one, two):
        small = self.type(*self.part)
        other = small if two[1] == "v" else "tensor<f32>"
        return self.op(f"ds.binary {kind} {{}}, {{}} : ({small}, {other}) -> {small}", BINARY[kind], one, two)

    def pair(self):
        return self.binary(str(self.random.choice(list(BINARY))), self.window(), self.window())

    def neg(self):
        return self.op(f"ds.unary neg {{}} : ({self.type(*self.part)}) -> {self.type(*self.part)}", np.negative, self.window())

    def product(self):
        """A window times weights, with windows behind it, which may be those that it reads."""
        small, square = self.type(*self.part), self.type(self.part[1], self.part[1])
        source = self.binary("min", self.binary("max", self.window(), "%low"), "%high")
        text = f"ds.linear {{}}, {{}} : ({small}, {square}) -> {small}"
        return self.binary(str(self.random.choice(["add", "sub"])), self.op(text, np.matmul, source, "%w"), self.window())

    def put(self):
        part = self.parts[-1 - min(int(self.random.exponential(1)), len(self.parts) - 1)]
        into, small, (row, column) = self.full(), self.type(*self.part), self.place()

        def value(update, whole):
            whole = whole.copy()
            whole.reshape(self.rows, self.columns)[row:row + self.part[0], column:column + self.part[1]] = update
            return whole
        if self.random.random() < 0.7:
            return self.op(f"ds.insert {{}} into {{}} starts [{row}, {column}] : ({small}, {self.type()}) -> {self.type()}",
                           value, part, into)
        update, whole = (1, *self.part), (1, self.rows, self.columns)
        part = self.op(f"ds.reshape {{}} {list(update)} : ({small}) -> {self.type(*update)}", lambda x: x, part)
        into = self.op(f"ds.reshape {{}} {list(whole)} : ({self.type()}) -> {self.type(*whole)}", lambda x: x, into)
        kinds = f"({self.type(*update)}, {self.type(*whole)}) -> {self.type(*whole)}"
        new = self.op(f"ds.insert {{}} into {{}} starts [0, {row}, {column}] : {kinds}", value, part, into)
        return self.op(f"ds.reshape {{}} {[self.rows, self.columns]} : ({self.type(*whole)}) -> {self.type()}", lambda x: x, new)

    def program(self):
        dims, square = f"ds.dims = [{self.rows}, {self.columns}]", self.part[1]
        arguments = [f'%x: {self.type()} {{ds.name = "x", {dims}}}',
                     f'%w: {self.type(square, square)} {{ds.name = "w", ds.dims = [{square}, {square}]}}',
                     *(f'%{s}: {self.type()} {{ds.name = "{s}", {dims}, ds.state = "{s}"}}' for s in self.states)]
        results = ", ".join(f'{self.type()} {{ds.state = "{s}"}}' for s in self.states)
        types, body = ", ".join([self.type()] * len(self.states)), "\n  ".join(self.lines)
        values = ", ".join(self.results)
        if self.trips:
            inside, pairs = ", ".join(f"%c{s[1:]}" for s in self.states), ", ".join(f"%c{s[1:]} = %{s}" for s in self.states)
            named = ", ".join(f"%c{s[1:]}: {self.type()}" for s in self.states)
            body = f"""%n = ds.size {self.trips}
  %r:{len(self.states) + 1} = scf.while (%i = %zero, {pairs}) : (i64, {types}) -> (i64, {types}) {{
  %go = arith.cmpi slt, %i, %n : i64
  scf.condition(%go) %i, {inside} : i64, {types}
  }} do {{
  ^bb0(%i: i64, {named}):
  {body}
  %j = arith.addi %i, %one : i64
  scf.yield %j, {values} : i64, {types}
  }}"""
            values = ", ".join(f"%r#{i + 1}" for i in range(len(self.states)))
        return (f"func.func @main({', '.join(arguments)}) -> ({results}) attributes {{ds.entry}} {{\n  "
                "%zero = arith.constant 0 : i64\n  %one = arith.constant 1 : i64\n  "
                "%low = ds.constant dense<-900.0> : tensor<f32>\n  %high = ds.constant dense<900.0> : tensor<f32>\n  "
                f"{body}\n  return {values} : {types}\n}}\n")

    def inputs(self):
        return {"x": self.random.integers(-1000, 1001, (self.rows, self.columns)).astype(np.float32),
                "w": self.random.integers(-1, 2, (self.part[1], self.part[1])).astype(np.float32)}

    def run(self, inputs, states):
        env = {"%" + name: array for name, array in {**inputs, **states}.items()}
        env.update({"%low": np.float32(-900), "%high": np.float32(900)})
        values = list(states.values())
        for _ in range(self.trips or 1):
            env.update({("%c" if self.trips else "%s") + name[1:]: value for name, value in zip(states, values)})
            for step in self.steps:
                step(env)
            values = [env[name] for name in self.results]
        return {}, dict(zip(states, values))


@case(seconds=6)
def states_that_windows_of_them_update(folder):
    for number, fusion in enumerate(itertools.chain(["specialized"] * 8, ["generic"] * 4)):
        seed = SEED + number
        try:
            check_program(StateProgram(seed), folder, f"StateProgram({seed})", 2, [f"--fusion={fusion}", f"--mcpu={CPUS[number % 2]}"])
        except AssertionError as error:
            raise AssertionError(f"StateProgram({seed}) --fusion={fusion}: {error}") from error


class Body:
    """The body of a Scan or Loop, and the same as Python functions: values of one size from two states, a row and windows of
    a wide row, next states and outputs."""

    def __init__(self, random, element, n):
        self.random, self.element, self.n = random, element, n
        self.kind = np.float64 if element == "f64" else np.float32 if element == "f32" else np.int32
        self.nodes, self.steps, self.weights, self.values = [], [], [], ["a", "b", "row"]

    def constant(self, array):
        name = f"k{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, operands, value, constants=(), **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*operands, *map(self.constant, constants)], [name], **attributes))
        self.steps.append(lambda env: env.__setitem__(name, value(*(env[operand] for operand in operands))))
        return name

    def slice(self, name, start, end, step=1, axis=1):
        at = (slice(None),) * axis + (slice(start, end, step),)
        end = end if end is not None else FAR if step > 0 else -FAR
        return self.op("Slice", [name], lambda x: x[at], [np.array([k], np.int64) for k in (start, end, axis, step)])

    def value(self):
        return self.values[-1 - min(int(self.random.exponential(2)), len(self.values) - 1)]

    def window(self):
        """A part of the wide row, a state or another value that is turned or rolled, or one column of it."""
        kind, start = self.random.integers(6), int(self.random.integers(0, 2 * self.n + 1))
        if kind <= 1:
            return self.slice("wide", start, start + self.n)
        if kind == 2:
            return self.slice(self.value(), -1, None, -1, int(self.random.integers(2)))
        if kind == 3 and self.n > 1:
            name, start = self.value(), 1 + start % (self.n - 1)
            parts = [self.slice(name, start, None), self.slice(name, 0, start)]
            return self.op("Concat", parts, lambda x, y: np.concatenate([x, y], 1), axis=1)
        if kind == 4:
            return self.slice(self.value(), start % self.n, start % self.n + 1)
        return self.value()

    def tamed(self, name, most):
        high = self.op("Min", [name], lambda x: np.minimum(x, self.kind(most)), [self.kind(most)])
        return self.op("Max", [high], lambda x: np.maximum(x, self.kind(-most)), [self.kind(-most)])

    def step(self):
        kind, one = self.random.integers(6), self.value()
        if kind <= 3:
            op, value = (("Add", np.add), ("Sub", np.subtract), ("Max", np.maximum), ("Sub", np.subtract))[kind]
            return self.op(op, [one, self.window()], value)
        if kind == 4:
            flag = self.op("Less", [one, self.window()], np.less)
            return self.op("Where", [flag, self.value(), one], np.where)
        weight = self.random.integers(-1, 2, (self.n, self.n)).astype(self.kind)
        total = self.op("MatMul", [self.tamed(one, 50)], lambda x: x @ weight, [weight])
        return self.op("Add", [total, self.window()], np.add)

    def build(self, count):
        for _ in range(count):
            self.values.append(self.step())
        ends = [self.value() for _ in range(2)]
        self.states = [self.tamed(name, 100) for name in ends]
        self.outputs = [self.op("Neg", [self.value()], np.negative), self.op("Add", [self.value(), self.window()], np.add)]
        product = [node.output[0] for node in self.nodes if node.op_type == "MatMul"]
        if product:
            self.outputs.append(self.op("Sub", [product[-1], self.window()], np.subtract))
        return self


def loop_model(random, path):
    """A Scan in any directions and along any axes, or a Loop that gathers its rows; returns the inputs' dims and an oracle."""
    element, isScan, n = str(random.choice(["f32", "f32", "f64", "i32"])), random.random() < 0.7, int(random.choice(LENGTHS))
    batch, body = ["b", 1, 3][random.integers(3)], Body(random, element, n)
    flips = [int(k) if isScan else 0 for k in random.integers(0, 2, 8)]
    axes = [int(k) if isScan else 0 for k in random.integers(0, 3, 3)]
    body.build(int(random.integers(3, 9)))
    count, code = len(body.outputs), CODES[element]
    info = lambda name, *dims: helper.make_tensor_value_info(name, code, dims)
    dims = {"a0": (batch, n), "b0": (batch, n), "x": ("t", batch, n), "y": ("t", batch, 3 * n)}
    carried, outs = [info("a", batch, n), info("b", batch, n)], [info(name, batch, n) for name in [*body.states, *body.outputs]]
    names, nodes = ["last_a", "last_b", *(f"o{i}" for i in range(count))], []
    if isScan:
        graph = helper.make_graph(body.nodes, "body", [*carried, info("row", batch, n), info("wide", batch, 3 * n)], outs)
        nodes.append(helper.make_node("Scan", ["a0", "b0", "x", "y"], names, body=graph, num_scan_inputs=2, scan_input_directions=flips[:2],
                                      scan_output_axes=axes[:count], scan_output_directions=flips[2:2 + count]))
    else:
        gathers = [helper.make_node("Gather", [whole, "i"], [name], axis=0) for whole, name in (("x", "row"), ("y", "wide"))]
        graph = helper.make_graph([*gathers, helper.make_node("Identity", ["c"], ["go"]), *body.nodes], "body",
                                  [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                                   helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                                   *carried], [helper.make_tensor_value_info("go", TensorProto.BOOL, []), *outs])
        zero = body.constant(np.array(0, np.int64))
        nodes += [helper.make_node("Shape", ["x"], ["sizes"]), helper.make_node("Gather", ["sizes", zero], ["trips"]),
                  helper.make_node("Loop", ["trips", "", "a0", "b0"], names, body=graph)]
    graph = helper.make_graph(nodes, "loop", [info(name, *shape) for name, shape in dims.items()],
                              [helper.make_tensor_value_info(name, code, None) for name in names], body.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)

    def oracle(feeds):
        env, found = {"a": feeds["a0"], "b": feeds["b0"]}, [[] for _ in range(count)]
        x, y = (whole[::-1] if flip else whole for whole, flip in zip((feeds["x"], feeds["y"]), flips))
        for row, wide in zip(x, y):
            env.update(row=row, wide=wide)
            for step in body.steps:
                step(env)
            for values, name in zip(found, body.outputs):
                values.append(env[name])
            env.update(a=env[body.states[0]], b=env[body.states[1]])
        stacks = [np.stack(values[::-1] if flip else values, axis) for values, axis, flip in zip(found, axes, flips[2:])]
        return dict(zip(names, [env["a"], env["b"], *stacks]))
    return dims, body.kind, oracle


@case(seconds=10)
def loops_that_read_and_write_windows(folder):
    for number in range(6):
        seed = SEED + number
        check_loop(seed, folder, number)


def check_loop(seed, folder, number, options=()):
    random = np.random.default_rng([seed, 3])
    dims, kind, oracle = loop_model(random, folder / "loop.onnx")
    for fusion, cpu in (("specialized", CPUS[number % 2]), (("none", "generic")[number % 2], CPUS[1])):
        package = compile_model(folder / "loop.onnx", folder, f"--fusion={fusion}", f"--mcpu={cpu}", *options,
                                name=f"{fusion}-{number}.dsp")
        for steps, batch in ((1, 1), (6, 2), (3, 5)):
            sizes = {"t": steps, "b": batch}
            feeds = {name: random.integers(-9, 10, [sizes.get(dim, dim) for dim in shape]).astype(kind) for name, shape in dims.items()}
            found, expected = run_package(package, feeds, folder, f"--threads={1 + 2 * (steps % 2)}"), oracle(feeds)
            for name, array in expected.items():
                expect(np.array_equal(found[name], array), f"seed {seed} {fusion} {cpu} {sizes}: {name} is wrong")


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent_model(random, operator, hidden, direction, path, hasLengths=True, **attributes):
    """Writes a model of any length and batch; returns what makes its inputs."""
    directions, inputs, rows = 1 + (direction == "bidirectional"), 24, GATES[operator] * hidden
    numbers = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    weights = {"W": numbers(directions, rows, inputs), "R": numbers(directions, rows, hidden), "B": numbers(directions, 2 * rows)}
    states = ["h", "c"] if operator == "LSTM" else ["h"]
    names = ["X", "W", "R", "B", "lengths" if hasLengths else "", *states]
    outputs = ["Y", "Y_h", "Y_c"][:1 + len(states)]
    node = helper.make_node(operator, names, outputs, hidden_size=hidden, direction=direction, **attributes)
    info = lambda name, dims, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, dims)
    given = [info("X", ["t", "b", inputs]), *([info("lengths", ["b"], TensorProto.INT32)] if hasLengths else []),
             *(info(name, [directions, "b", hidden]) for name in states)]
    graph = helper.make_graph([node], operator, given, [info(name, None) for name in outputs],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)

    def feed(length, batch):
        feeds = {"X": numbers(length, batch, inputs), **{name: numbers(directions, batch, hidden) for name in states}}
        return {**feeds, "lengths": random.integers(0, length + 1, batch).astype(np.int32)} if hasLengths else feeds
    return feed


@case(seconds=10)
def recurrent_operators_of_any_size(folder):
    """Near ONNX Runtime; the bits depend neither on threads nor on what else is in the batch."""
    random = np.random.default_rng([SEED, 5])
    directions = random.permutation(["forward", "reverse", "bidirectional"])
    for number, (operator, attributes) in enumerate((("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {}))):
        hidden, direction, hasLengths = int(random.integers(16, 101)), str(directions[number % 3]), bool(random.random() < 0.7)
        what = f"{operator} {attributes} of {hidden}, {direction}, DS_SEED={SEED}"
        model = folder / f"{number}.onnx"
        feed = recurrent_model(random, operator, hidden, direction, model, hasLengths, **attributes)
        for cpu in CPUS:
            package = compile_model(model, folder, f"--mcpu={cpu}", name=f"{number}-{cpu}.dsp")
            for length, batch in ((1, 1), (9, int(random.integers(2, 6)))):
                feeds = feed(length, batch)
                try:
                    same_numbers(package, model, feeds, folder, tolerance=2e-5)
                except AssertionError as error:
                    raise AssertionError(f"{what}, {cpu}: {error}") from None
                found = [run_package(package, feeds, folder, f"--threads={threads}") for threads in (1, 2, 3)]
                row = int(random.integers(batch))
                alone = {name: array[row:row + 1] if name == "lengths" else array[:, row:row + 1] for name, array in feeds.items()}
                single = run_package(package, alone, folder)
                for name, array in found[0].items():
                    expect(all(other[name].tobytes() == array.tobytes() for other in found[1:]),
                           f"{what}, {cpu}: {name} depends on threads")
                    part = array[..., row:row + 1, :]
                    expect(part.tobytes() == single[name].tobytes(), f"{what}, {cpu}: {name} of row {row} alone has other bits")


@case
def launches_of_a_step(folder):
    """Gates are read where the product has put them, and states and outputs are written where they stay."""
    random = np.random.default_rng([SEED, 6])
    reset = {"linear_before_reset": 1}  # launches without and with lengths, which follow a product where no gate does
    for operator, counts, attributes in (("LSTM", (2, 2), {}), ("GRU", (2, 2), reset), ("GRU", (3, 5), {}), ("RNN", (2, 3), {})):
        for direction, hasLengths in itertools.product(("forward", "reverse"), (False, True)):
            recurrent_model(random, operator, int(random.integers(16, 101)), direction, folder / "m.onnx", hasLengths, **attributes)
            tool("ds-opt", folder / "m.onnx", "--stop-after=memory", "-o", folder / "m.mlir")
            bodies = re.findall(r"\n( *)} do {\n(.*?)\n\1}", (folder / "m.mlir").read_text(), re.DOTALL)
            found = [re.findall(r"ds\.launch @(\w+)\(", body) for _, body in bodies]
            expect(len(found) == 1 and len(found[0]) <= counts[hasLengths], f"{operator} {attributes} {direction} "
                   f"lengths={hasLengths}: {found}, expected {counts[hasLengths]} launches")
