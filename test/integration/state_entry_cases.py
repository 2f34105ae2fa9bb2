"""States that several entries share: each entry may name the sizes in its own way, all must mean one value."""
import numpy as np

from kit import case, compile_model, expect, tool
from programs import SEED

ENTRY = """
func.func @{name}(%x: {type} {{ds.name = "x", ds.dims = {dims}}},
                  %s: {type} {{ds.name = "s", ds.dims = {dims}, ds.state = "s"{initial}}})
    -> ({type} {{ds.state = "s"}}) attributes {{ds.entry}} {{
  %0 = ds.binary {kind} %s, %x : ({type}, {type}) -> {type}
  return %0 : {type}
}}
"""
RECIPE = """
ds.recipe @{name} {{
  %0 = ds.constant dense<{value}> : {type}
  ds.yield %0 : {type}
}}
"""


def entry(name, dims, kind="add", element="f32", initial=""):
    shape = "".join(("?" if isinstance(dim, str) else str(dim)) + "x" for dim in dims)
    listed = "[" + ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims) + "]"
    return ENTRY.format(name=name, type=f"tensor<{shape}{element}>", dims=listed, kind=kind,
                        initial=f", ds.initial = {initial}" if initial else "")


def recipe(name, value, type):
    return RECIPE.format(name=name, value=value, type=type)


def written(folder, *parts):
    (folder / "program.mlir").write_text("".join(parts))
    return folder / "program.mlir"


def refused(folder, *parts, says):
    result = tool("ds-opt", written(folder, *parts), "-o", folder / "refused.dsp", code=1, says=says)
    expect(result.err.count("error: ") == 1, f"expected one error, found {result.err}")


def call(package, folder, name, x, state=None, code=0, says=None):
    np.savez(folder / "in.npz", x=x)
    given = []
    if state is not None:
        np.savez(folder / "states.npz", s=state)
        given = ["--state-in", folder / "states.npz"]
    tool("ds-run", package, "--entry", name, "--inputs", folder / "in.npz", *given, "--state-out",
         folder / "after.npz", code=code, says=says)
    if code == 0:
        with np.load(folder / "after.npz") as after:
            return after["s"]


@case
def entries_name_the_sizes_of_a_state_in_their_own_ways(folder):
    random = np.random.default_rng(SEED)
    first = entry("main", ["past", 3])
    for second, fits in ((entry("other", ["n", 3], "mul"), True), (entry("other", ["n", "m"], "mul"), True),
                         (entry("other", [5, 3], "mul"), False)):
        package = compile_model(written(folder, first, second), folder)
        for rows in (4, 5):
            x = random.standard_normal((rows, 3), np.float32)
            # A file of states with five rows fits every entry; one with four does not fit an entry of five.
            state = random.standard_normal((rows, 3), np.float32)
            if not fits and rows == 4:
                call(package, folder, "main", x, state, code=1, says="state 's': wrong shape, found [4, 3], expected [5, 3]")
                expect(np.array_equal(call(package, folder, "main", x), x), "a state of four rows")
                continue
            expect(np.array_equal(call(package, folder, "main", x, state), state + x), "wrong sums")
            expect(np.array_equal(call(package, folder, "other", x, state), state * x), "wrong products")
        x, state = (random.standard_normal((rows, 3), np.float32) for rows in (4, 5))
        call(package, folder, "main", x, state, code=1,
             says="state 's': found f32 [5, 3] from an earlier call or file, expected f32 [4, 3]")


@case
def states_of_three_entries_are_one_state(folder):
    open_entry, says = entry("main", ["n", "m"]), "state 's' of entry 'third': expected "
    refused(folder, open_entry, entry("second", [4, "k"]), entry("third", [5, "k"]),
            says=says + "f32[4, k], as in entry 'second', found f32[5, k]")
    refused(folder, open_entry, entry("second", [4, "k"]), entry("third", ["k"]),
            says=says + "f32[n, m], as in entry 'main', found f32[k]")
    refused(folder, open_entry, entry("second", ["a", "b"]), entry("third", ["a", "b"], element="f64"),
            says=says + "f32[n, m], as in entry 'main', found f64[a, b]")
    value = recipe("w", "2.0", "tensor<3xf32>"), recipe("v", "3.0", "tensor<3xf32>")
    first = entry("main", [3], initial="@w")
    refused(folder, *value, first, entry("second", [3], initial="@w"), entry("third", [3], initial="@v"),
            says=says + "f32[3] that begins with 'w', as in entry 'main', found f32[3] that begins with 'v'")
    refused(folder, *value, first, entry("second", [3], initial="@w"), entry("third", [3]),
            says=says + "f32[3] that begins with 'w', as in entry 'main', found f32[3]")
    # One value under two names is one value.
    same = recipe("v", "2.0", "tensor<3xf32>")
    package = compile_model(written(folder, value[0], same, first, entry("second", ["n"], "mul", initial="@v")), folder)
    x = np.array([1, 2, 5], np.float32)
    expect(np.array_equal(call(package, folder, "main", x), 2 + x), "wrong sums")
    expect(np.array_equal(call(package, folder, "second", x), 2 * x), "wrong products")


@case
def a_state_begins_with_what_a_recipe_makes(folder):
    for initial, found in ("@nothing", "@nothing"), ("@main", "@main"), ('"w"', '"w"'), ("3", "3 : i64"):
        says = f"state 's': expected 'ds.initial' to name a recipe, found {found}"
        refused(folder, recipe("w", "2.0", "tensor<3xf32>"), entry("main", [3], initial=initial), says=says)
        refused(folder, recipe("w", "2.0", "tensor<3xf32>"), entry("main", [3], initial=initial),
                entry("other", [3], initial=initial), says=says)
    for value, type in ("2.0", "tensor<4xf32>"), ("2", "tensor<3xi32>"), ("2.0", "tensor<1x3xf32>"):
        for dims in [3], ["n"]:
            if dims == ["n"] and type == "tensor<4xf32>":
                continue
            own = "tensor<3xf32>" if dims == [3] else "tensor<?xf32>"
            refused(folder, recipe("w", value, type), entry("main", dims, initial="@w"),
                    says=f"state 's': expected a first value of '{own}', found recipe @w of '{type}'")
    # Of a size that a call brings, the value says which one.
    package = compile_model(written(folder, recipe("w", "2.0", "tensor<4x3xf32>"), entry("main", ["n", "m"],
                                                                                         initial="@w")), folder)
    x = np.random.default_rng(SEED).standard_normal((4, 3), np.float32)
    expect(np.array_equal(call(package, folder, "main", x), 2 + x), "wrong sums")
    for shape in (3, 4), (2, 3), (12, 1):
        call(package, folder, "main", x.ravel()[:shape[0] * shape[1]].reshape(shape), code=1,
             says=f"state 's': found [{shape[0]}, {shape[1]}], expected [4, 3], the shape of its first value 'w'")


@case
def recipes_hold_what_packaging_evaluates(folder):
    """One line for whatever a recipe must not hold, in every entry that reads it."""
    for line, type, says in (
            ("%1 = ds.softmax %0 axis 0 log false : (tensor<3xf32>) -> tensor<3xf32>", "tensor<3xf32>", "'ds.softmax'"),
            ("%1 = ds.cast %0 to f8E4M3FN : (tensor<3xf32>) -> tensor<3xf8E4M3FN>", "tensor<3xf8E4M3FN>", "'ds.cast'"),
            ('%1 = ds.slice %0 starts ["n"] sizes [2] steps [1] : (tensor<3xf32>) -> tensor<2xf32>', "tensor<2xf32>",
             "'ds.slice'"),
            ('%2 = ds.reshape %0 ["n"] : (tensor<3xf32>) -> tensor<?xf32>\n'
             "  %1 = ds.reshape %2 [3] : (tensor<?xf32>) -> tensor<3xf32>", "tensor<3xf32>", "'ds.reshape'"),
            ("%1 = ds.iota 0 [3] : tensor<3xi64>", "tensor<3xi64>", "'ds.iota'")):
        text = (f"ds.recipe @w {{\n  %0 = ds.constant dense<2.0> : tensor<3xf32>\n  {line}\n  ds.yield %1 : {type}\n}}\n"
                f'func.func @main() -> ({type} {{ds.name = "y"}}) attributes {{ds.entry}} {{\n'
                f"  %w = ds.weight @w : {type}\n  return %w : {type}\n}}\n")
        refused(folder, text, says=f"{says} op C2: is not an op that a recipe can evaluate")
