"""Programs that update states, outputs and carried values in place, against NumPy: random ones, call after call, and the
updates that training and generation make. Single operations that both round alike, so every bit must be right."""
import json

import numpy as np

from kit import case, compile_model, expect, tool
from programs import SEED, Program

BINARY = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}


class RandomProgram:
    """Text of a program over tensors of one type, and the same program as Python functions of an environment."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.rows, self.columns = int(self.random.choice([3, 5, 6000])), int(self.random.choice([1, 4, 7]))
        self.type = f"tensor<{self.rows}x{self.columns}xf32>"
        self.count, self.states = 0, [f"s{i}" for i in range(self.random.integers(1, 4))]
        visible = ["%x", *(f"%{state}" for state in self.states)]
        lines, self.steps = self.block(visible, self.random.integers(3, 9), 2)
        picks = [str(self.random.choice(visible)) for _ in range(self.random.integers(1, 3))]
        self.results = picks, [str(self.random.choice(visible)) for _ in self.states]
        dims = f"ds.dims = [{self.rows}, {self.columns}]"
        arguments = [f'%x: {self.type} {{ds.name = "x", {dims}}}',
                     f'%u: tensor<1x{self.columns}xf32> {{ds.name = "u", ds.dims = [1, {self.columns}]}}',
                     f'%v: tensor<3x{self.columns}xf32> {{ds.name = "v", ds.dims = [3, {self.columns}]}}',
                     '%i: tensor<3x1xi64> {ds.name = "i", ds.dims = [3, 1]}',
                     *(f'%{c}: tensor<i1> {{ds.name = "{c}", ds.dims = []}}' for c in ("c", "d")),
                     *(f'%{state}: {self.type} {{ds.name = "{state}", {dims}, ds.state = "{state}"}}'
                       for state in self.states)]
        results = [f'{self.type} {{ds.name = "y{i}"}}' for i in range(len(picks))]
        results += [f'{self.type} {{ds.state = "{state}"}}' for state in self.states]
        order = self.random.permutation(len(results))  # states before outputs, too
        values = picks + self.results[1]
        self.text = (f"func.func @main({', '.join(arguments)})\n    -> ({', '.join(results[k] for k in order)}) "
                     "attributes {ds.entry} {\n  %zero = arith.constant 0 : i64\n  %one = arith.constant 1 : i64\n"
                     + "\n".join(lines) + f"\n  return {', '.join(values[k] for k in order)} : "
                     + ", ".join([self.type] * len(order)) + "\n}\n")

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def pick(self, visible):
        """Recent values more often: chains are what is updated in place."""
        return str(visible[-1 - min(int(self.random.exponential(2.5)), len(visible) - 1)])

    def block(self, visible, length, depth):
        lines, steps = [], []
        for _ in range(length):
            kinds = ["binary"] * 4 + ["neg", "turn", "insert", "insert_slice", "scatter"] + ["if", "while"] * (depth > 0)
            text, step, names = getattr(self, str(self.random.choice(kinds)))(visible, depth)
            lines += text
            steps.append(step)
            visible += names
        return lines, steps

    def binary(self, visible, depth):
        kind, a, b, name = str(self.random.choice(list(BINARY))), self.pick(visible), self.pick(visible), self.name()

        def step(env):
            env[name] = BINARY[kind](env[a], env[b])
        return [f"  {name} = ds.binary {kind} {a}, {b} : ({self.type}, {self.type}) -> {self.type}"], step, [name]

    def neg(self, visible, depth):
        a, name = self.pick(visible), self.name()

        def step(env):
            env[name] = np.negative(env[a])
        return [f"  {name} = ds.unary neg {a} : ({self.type}) -> {self.type}"], step, [name]

    def turn(self, visible, depth):
        """Every element moves: a transposed value, seen through a view."""
        a, turned, name = self.pick(visible), self.name(), self.name()
        other = f"tensor<{self.columns}x{self.rows}xf32>"

        def step(env):
            env[name] = np.ascontiguousarray(env[a].T).reshape(self.rows, self.columns)
        return [f"  {turned} = ds.transpose {a} [1, 0] : ({self.type}) -> {other}",
                f"  {name} = ds.reshape {turned} [{self.rows}, {self.columns}] : ({other}) -> {self.type}"], step, [name]

    def insert(self, visible, depth):
        into, row, name = self.pick(visible), int(self.random.integers(self.rows)), self.name()

        def step(env):
            env[name] = env[into].copy()
            env[name][row] = env["%u"][0]
        return [f"  {name} = ds.insert %u into {into} starts [{row}, 0] : (tensor<1x{self.columns}xf32>, {self.type})"
                f" -> {self.type}"], step, [name]

    def insert_slice(self, visible, depth):
        """A row of one value, perhaps of the one that is updated, goes to another place."""
        into, source, part, name = self.pick(visible), self.pick(visible), self.name(), self.name()
        row, taken = (int(k) for k in self.random.integers(self.rows, size=2))
        small = f"tensor<1x{self.columns}xf32>"

        def step(env):
            env[name] = env[into].copy()
            env[name][row] = env[source][taken]
        return [f"  {part} = ds.slice {source} starts [{taken}, 0] sizes [1, {self.columns}] steps [1, 1] : "
                f"({self.type}) -> {small}",
                f"  {name} = ds.insert {part} into {into} starts [{row}, 0] : ({small}, {self.type}) -> {self.type}"
                ], step, [name]

    def scatter(self, visible, depth):
        into, name, kind = self.pick(visible), self.name(), str(self.random.choice(["assign", "add", "min", "max"]))

        def step(env):
            env[name] = env[into].copy()
            for update, index in zip(env["%v"], env["%i"][:, 0]):
                env[name][index] = update if kind == "assign" else BINARY[kind](env[name][index], update)
        return [f"  {name} = ds.scatter_nd {kind} {into}, %i, %v : ({self.type}, tensor<3x1xi64>, "
                f"tensor<3x{self.columns}xf32>) -> {self.type}"], step, [name]

    def results_of(self, visible, count):
        return [self.pick(visible) for _ in range(count)]

    def tuple_text(self, name, count):
        return (name if count == 1 else f"{name}:{count}"), [name] if count == 1 else [f"{name}#{i}" for i in range(count)]

    def if_(self, visible, depth):
        count, condition, flag, name = int(self.random.integers(1, 4)), str(self.random.choice(["c", "d"])), self.name(), self.name()
        head, names = self.tuple_text(name, count)
        sides, lines = [], [f"  {flag} = tensor.extract %{condition}[] : tensor<i1>",
                            f"  {head} = scf.if {flag} -> ({', '.join([self.type] * count)}) {{"]
        for end in ("  } else {", "  }"):
            inner = list(visible)
            text, steps = self.block(inner, self.random.integers(0, 4), depth - 1)
            yielded = self.results_of(inner, count)
            sides.append((steps, yielded))
            lines += [*text, f"  scf.yield {', '.join(yielded)} : {', '.join([self.type] * count)}", end]

        def step(env):
            steps, yielded = sides[0 if env["%" + condition] else 1]
            inner = dict(env)
            for inner_step in steps:
                inner_step(inner)
            env.update(zip(names, [inner[value] for value in yielded]))
        return lines, step, names

    def while_(self, visible, depth):
        count, trips = int(self.random.integers(1, 4)), int(self.random.integers(0, 4))
        size, counter, name, go, following = (self.name() for _ in range(5))
        carried, inits = [self.name() for _ in range(count)], self.results_of(visible, count)
        types = ", ".join(["i64", *[self.type] * count])
        handed = f"{counter}, {', '.join(carried)}"
        inner = visible + carried
        text, steps = self.block(inner, self.random.integers(1, 5), depth - 1)
        yielded = self.results_of(inner, count)
        pairs = ", ".join(f"{a} = {b}" for a, b in zip([counter, *carried], ["%zero", *inits]))
        lines = [f"  {size} = ds.size {trips}", f"  {name}:{count + 1} = scf.while ({pairs}) : ({types}) -> ({types}) {{",
                 f"    {go} = arith.cmpi slt, {counter}, {size} : i64", f"    scf.condition({go}) {handed} : {types}",
                 "  } do {", f"  ^bb0({', '.join(f'{a}: {t}' for a, t in zip([counter, *carried], types.split(', ')))}):",
                 *text, f"    {following} = arith.addi {counter}, %one : i64",
                 f"    scf.yield {following}, {', '.join(yielded)} : {types}", "  }"]
        names = [f"{name}#{i + 1}" for i in range(count)]

        def step(env):
            values = [env[value] for value in inits]
            for _ in range(trips):
                body = {**env, **dict(zip(carried, values))}
                for inner_step in steps:
                    inner_step(body)
                values = [body[value] for value in yielded]
            env.update(zip(names, values))
        return lines, step, names

    def __getattr__(self, kind):
        return object.__getattribute__(self, kind + "_")

    def inputs(self):
        def numbers(*shape):
            return self.random.integers(-1000, 1000, shape).astype(np.float32)
        return {"x": numbers(self.rows, self.columns), "u": numbers(1, self.columns), "v": numbers(3, self.columns),
                "i": self.random.integers(-self.rows, self.rows, (3, 1)), "c": np.array(self.random.integers(2) > 0),
                "d": np.array(self.random.integers(2) > 0)}

    def run(self, inputs, states):
        """One call: the outputs, and the states after it."""
        env = {"%" + name: array for name, array in {**inputs, **states}.items()}
        for step in self.steps:
            step(env)
        return ({f"y{i}": env[value] for i, value in enumerate(self.results[0])},
                {state: env[value] for state, value in zip(self.states, self.results[1])})


def check_program(program, folder, what, calls=3, options=()):
    (folder / "program.mlir").write_text(program.text)
    package = compile_model(folder / "program.mlir", folder, *options)
    states = {state: program.inputs()["x"] for state in program.states}
    np.savez(folder / "states.npz", **states)
    for call in range(calls):
        inputs = program.inputs()
        np.savez(folder / "in.npz", **inputs)
        tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", "--state-in",
             folder / "states.npz", "--state-out", folder / "after.npz", f"--threads={1 + call % 2}")
        outputs, states = program.run(inputs, states)
        with np.load(folder / "out.npz") as out, np.load(folder / "after.npz") as after:
            for found, expected in ((out, outputs), (after, states)):
                expect(set(found) == set(expected), f"{what}: found {list(found)}, expected {list(expected)}")
                for name, array in expected.items():
                    expect(np.array_equal(found[name], array),
                           f"{what}: call {call}: {name} is wrong\n{program.text}")
        np.savez(folder / "states.npz", **states)


def check_seeds(seeds, folder, options=()):
    for seed in seeds:
        try:
            check_program(RandomProgram(seed), folder, f"RandomProgram({seed})", options=options)
        except AssertionError as error:
            raise AssertionError(f"RandomProgram({seed}) {options}: {error}") from error


@case(seconds=3)
def random_programs_update_in_place(folder):
    check_seeds(range(SEED, SEED + 12), folder)


@case
def random_programs_without_fusion(folder):
    check_seeds(range(SEED + 1000, SEED + 1006), folder, ["--reference"])


REDUCED = """
func.func @main(%x: tensor<40000xf32> {ds.name = "x", ds.dims = [40000]},
                %s: tensor<40000xf32> {ds.name = "s", ds.dims = [40000], ds.state = "s"},
                %t: tensor<40000xf32> {ds.name = "t", ds.dims = [40000], ds.state = "t"},
                %r: tensor<40000xf32> {ds.name = "r", ds.dims = [40000], ds.state = "r"})
    -> (tensor<40000xf32> {ds.name = "y"}, tensor<40000xf32> {ds.state = "s"}, tensor<40000xf32> {ds.state = "t"},
        tensor<40000xf32> {ds.state = "r"}, tensor<f32> {ds.name = "norm"}) attributes {ds.entry} {
  %view = ds.reshape %s [200, 200] : (tensor<40000xf32>) -> tensor<200x200xf32>
  %p = dist.all_reduce_start sum %view site "a" : tensor<200x200xf32>
  %q = dist.all_reduce_start sum %r site "b" : tensor<40000xf32>
  %next = ds.binary sub %s, %x : (tensor<40000xf32>, tensor<40000xf32>) -> tensor<40000xf32>
  %norm = ds.reduce max %next axes [0] keep false : (tensor<40000xf32>) -> tensor<f32>
  %old = ds.unary neg %t : (tensor<40000xf32>) -> tensor<40000xf32>
  %wide = dist.wait %p : tensor<200x200xf32>
  %sum = ds.reshape %wide [40000] : (tensor<200x200xf32>) -> tensor<40000xf32>
  %both = dist.wait %q : tensor<40000xf32>
  %y = ds.binary add %old, %next : (tensor<40000xf32>, tensor<40000xf32>) -> tensor<40000xf32>
  return %y, %next, %sum, %both, %norm
      : tensor<40000xf32>, tensor<40000xf32>, tensor<40000xf32>, tensor<40000xf32>, tensor<f32>
}
"""


@case
def collectives_that_read_at_their_wait(folder):
    """A transport that copies nothing at the start: the update of the source may not come before the wait."""
    (folder / "program.mlir").write_text(REDUCED)
    package = compile_model(folder / "program.mlir", folder)
    random = np.random.default_rng(SEED)
    # Whole numbers: sums of two are exact.
    x, s, t, r = (random.integers(-1000, 1000, 40000).astype(np.float32) for _ in range(4))
    np.savez(folder / "in.npz", x=x)
    np.savez(folder / "states.npz", s=s, t=t, r=r)
    tool("ds-run-late-transport", package, folder / "in.npz", folder / "states.npz", folder / "out.npz")
    with np.load(folder / "out.npz") as found:
        for name, expected in {"y": s - x - t, "s": s - x, "t": 2 * s, "r": 2 * r,
                               "norm": np.max(s - x)}.items():
            expect(np.array_equal(found[name], expected), f"{name} is wrong")


DIVISION = """
func.func @main(%x: tensor<100000xi32> {ds.name = "x", ds.dims = [100000]},
                %s: tensor<100000xi32> {ds.name = "s", ds.dims = [100000], ds.state = "s"})
    -> (tensor<100000xi32> {ds.state = "s"}) attributes {ds.entry} {
  %next = ds.binary div %x, %s : (tensor<100000xi32>, tensor<100000xi32>) -> tensor<100000xi32>
  return %next : tensor<100000xi32>
}
"""


@case
def a_divisor_is_not_written_over(folder):
    """Every thread looks through the whole divisor for zeros: quotients of 0 in its place would be taken for some."""
    (folder / "program.mlir").write_text(DIVISION)
    package = compile_model(folder / "program.mlir", folder)
    random = np.random.default_rng(SEED)
    for _ in range(5):
        x, s = random.integers(0, 100, 100000, dtype=np.int32), random.integers(1, 1000, 100000, dtype=np.int32)
        np.savez(folder / "in.npz", x=x)
        np.savez(folder / "states.npz", s=s)
        tool("ds-run", package, "--inputs", folder / "in.npz", "--state-in", folder / "states.npz", "--state-out",
             folder / "after.npz", "--threads=4")
        with np.load(folder / "after.npz") as after:
            expect(np.array_equal(after["s"], x // s), "wrong quotients")


SCATTERS = """
func.func @main(%i: tensor<60x1xi64> {{ds.name = "i", ds.dims = [60, 1]}},
                %u: tensor<60x700xf32> {{ds.name = "u", ds.dims = [60, 700]}},
                %j: tensor<50x700xi64> {{ds.name = "j", ds.dims = [50, 700]}},
                %w: tensor<50x700xf32> {{ds.name = "w", ds.dims = [50, 700]}},
                %s: tensor<40x700xf32> {{ds.name = "s", ds.dims = [40, 700], ds.state = "s"}},
                %t: tensor<40x700xf32> {{ds.name = "t", ds.dims = [40, 700], ds.state = "t"}})
    -> (tensor<40x700xf32> {{ds.state = "s"}}, tensor<40x700xf32> {{ds.state = "t"}}) attributes {{ds.entry}} {{
  %0 = ds.scatter_nd {kind} %s, %i, %u : (tensor<40x700xf32>, tensor<60x1xi64>, tensor<60x700xf32>) -> tensor<40x700xf32>
  %1 = ds.scatter_elements {kind} 0 %t, %j, %w
      : (tensor<40x700xf32>, tensor<50x700xi64>, tensor<50x700xf32>) -> tensor<40x700xf32>
  return %0, %1 : tensor<40x700xf32>, tensor<40x700xf32>
}}
"""


@case
def scatters_hit_rows_twice_in_order(folder):
    """More updates than rows: every number of threads gives the bits that one update after the other gives."""
    random = np.random.default_rng(SEED)
    functions = {"assign": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    for kind, function in functions.items():
        (folder / "program.mlir").write_text(SCATTERS.format(kind=kind))
        package = compile_model(folder / "program.mlir", folder)
        inputs = {"i": random.integers(-40, 40, (60, 1)), "j": random.integers(-40, 40, (50, 700)),
                  "u": random.standard_normal((60, 700), np.float32), "w": random.standard_normal((50, 700), np.float32)}
        states = {name: random.standard_normal((40, 700), np.float32) for name in "st"}
        np.savez(folder / "in.npz", **inputs)
        np.savez(folder / "states.npz", **states)
        s, t = states["s"].copy(), states["t"].copy()
        for index, update in zip(inputs["i"][:, 0], inputs["u"]):
            s[index] = function(s[index], update)
        for indices, updates in zip(inputs["j"], inputs["w"]):
            t[indices, np.arange(700)] = function(t[indices, np.arange(700)], updates)
        for threads in (1, 2, 3, 5):
            tool("ds-run", package, "--inputs", folder / "in.npz", "--state-in", folder / "states.npz", "--state-out",
                 folder / "after.npz", f"--threads={threads}")
            with np.load(folder / "after.npz") as after:
                expect(np.array_equal(after["s"], s), f"scatter_nd {kind} on {threads} threads")
                expect(np.array_equal(after["t"], t), f"scatter_elements {kind} on {threads} threads")


@case(seconds=3)
def one_region_with_results_of_many_types(folder):
    """One kernel reads two tensors and writes six of different widths: whole vectors, tails and threads."""
    for shape in ((3, 11), (129, 257), (1,), (0, 4)):
        p = Program()
        x = p.input(p.random.integers(-50, 50, shape), "f32")
        y = p.input(p.random.integers(-50, 50, shape), "f32")
        total = p.test("ds.binary add {0}, {1}", [x, y], "f32", shape, x.array + y.array)
        p.test("ds.binary lt {0}, {1}", [total, y], "i1", shape, total.array < y.array)
        wide = p.test("ds.cast {0} to f64", [total], "f64", shape, total.array.astype(np.float64))
        p.test("ds.binary mul {0}, {1}", [wide, wide], "f64", shape, wide.array**2)
        p.test("ds.cast {0} to i8", [total], "i8", shape, total.array.astype(np.int8))
        p.test("ds.cast {0} to f16", [total], "f16", shape, total.array.astype(np.float16))
        p.verify(folder)
        entry = json.loads(tool("ds-run", "inspect", compile_model(folder / "program.mlir", folder), "--json").out)
        launches = entry["variants"][0]["entries"][0]["launches"]
        expect(len(launches) == 1, f"expected one launch, found {[launch['kernel'] for launch in launches]}")


EXCHANGED = """
func.func @main(%s: tensor<4x3xf32> {ds.name = "s", ds.dims = [4, 3], ds.state = "s"},
                %t: tensor<3x4xf32> {ds.name = "t", ds.dims = [3, 4], ds.state = "t"})
    -> (tensor<3x4xf32> {ds.state = "t"}, tensor<4x3xf32> {ds.state = "s"}) attributes {ds.entry} {
  %a = ds.transpose %s [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %b = ds.reshape %t [4, 3] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %a, %b : tensor<3x4xf32>, tensor<4x3xf32>
}
"""

EXCHANGED_IN_A_LOOP = """
func.func @main(%s: tensor<4x3xf32> {ds.name = "s", ds.dims = [4, 3], ds.state = "s"},
                %t: tensor<3x4xf32> {ds.name = "t", ds.dims = [3, 4], ds.state = "t"})
    -> (tensor<3x4xf32> {ds.state = "t"}, tensor<4x3xf32> {ds.state = "s"}) attributes {ds.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %r:3 = scf.while (%i = %zero, %a = %s, %b = %t) : (i64, tensor<4x3xf32>, tensor<3x4xf32>)
      -> (i64, tensor<4x3xf32>, tensor<3x4xf32>) {
    %goes = arith.cmpi slt, %i, %three : i64
    scf.condition(%goes) %i, %a, %b : i64, tensor<4x3xf32>, tensor<3x4xf32>
  } do {
  ^bb0(%i: i64, %a: tensor<4x3xf32>, %b: tensor<3x4xf32>):
    %n = ds.transpose %a [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %m = ds.reshape %b [4, 3] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %j = arith.addi %i, %one : i64
    scf.yield %j, %m, %n : i64, tensor<4x3xf32>, tensor<3x4xf32>
  }
  return %r#2, %r#1 : tensor<3x4xf32>, tensor<4x3xf32>
}
"""


@case
def states_that_exchange_through_views(folder):
    """What is saved before it is overwritten may be seen through a view that stands later in the program."""
    random = np.random.default_rng(SEED)
    for text, steps in ((EXCHANGED, 1), (EXCHANGED_IN_A_LOOP, 3)):
        (folder / "program.mlir").write_text(text)
        package = compile_model(folder / "program.mlir", folder)
        s, t = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3, 4)))
        np.savez(folder / "states.npz", s=s, t=t)
        tool("ds-run", package, "--state-in", folder / "states.npz", "--state-out", folder / "after.npz", "--output",
             folder / "none.npz")
        for _ in range(steps):
            s, t = t.reshape(4, 3), s.T
        with np.load(folder / "after.npz") as after:
            expect(np.array_equal(after["s"], s) and np.array_equal(after["t"], t), f"wrong states after {steps} steps")
        # The entry has no outputs: an archive of nothing, which NumPy reads, too.
        with np.load(folder / "none.npz") as nothing:
            expect(not nothing.files, f"expected no outputs, found {nothing.files}")


KEPT = """
func.func @main(%x: tensor<3xf32> {{ds.name = "x", ds.dims = [3]}},
                %s: tensor<3xf32> {{ds.name = "{name}", ds.dims = [3], ds.state = "{name}"}})
    -> (tensor<3xf32> {{ds.state = "{name}"}}) attributes {{ds.entry}} {{
  %0 = ds.binary {kind} %s, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}
"""


@case
def compare_packages_by_their_states(folder):
    """Entries without outputs: what a call leaves in the states is all that can differ."""
    def package(kind, name="s"):
        (folder / "program.mlir").write_text(KEPT.format(kind=kind, name=name))
        return compile_model(folder / "program.mlir", folder, name=f"{kind}-{name}.dsp")

    add, sub, mul, div, other = package("add"), package("sub"), package("mul"), package("div"), package("add", "t")

    def compare(a, b, *options, code, text):
        result = tool("ds-run", "compare", a, b, *options, code=code)
        expect(text in result.out, f"expected '{text}': {result}")

    compare(add, add, code=0, text="state s: max abs 0")
    compare(add, sub, code=1, text="state s: max abs")
    compare(add, other, code=1, text=f"state s: only in {add}: differs\nstate t: only in {other}: differs\n")
    compare(mul, div, code=0, text="state s: max abs 0")  # both begin with zeros
    np.savez(folder / "states.npz", s=np.array([3, 5, 7], np.float32))
    given = ("--state-in", folder / "states.npz")
    compare(mul, div, *given, code=1, text="state s: max abs")
    compare(mul, mul, *given, code=0, text="state s: max abs 0")
    tool("ds-run", "compare", add, other, *given, code=1, says=[str(other), "no state 's'"])
