"""What utils/conformance writes: docs/conformance.tsv, one line per case, and docs/conformance.md, the scoreboard."""
import re
from collections import Counter, defaultdict

STATUSES = ("pass", "diagnosed", "wrong", "crashed")  # from best to worst


def cleaned(text):
    """Without paths of temporary files and control characters, at most 160 characters."""
    text = re.sub(r"/\S*/", "", " ".join(text.split()))
    return text if len(text) <= 160 else text[:157] + "..."


def diagnostic(err):
    """The first error message without the place it points to; of a report on operators, its lines."""
    lines = [line for line in err.splitlines() if "error:" in line] or err.splitlines() or [""]
    if "cannot be compiled" in lines[0]:
        notes = [line.split("note:", 1)[1].split(";")[0] for line in err.splitlines() if "note:" in line]
        return cleaned(";".join(notes) or lines[0])
    return cleaned(lines[0].split("error:", 1)[-1])


def operator(name, model, models, seen):
    """The operator that a case is about. Cases `x_expanded` hold the function body of case `x`."""
    import onnx
    base = re.sub(r"_expanded.*$", "", name)
    if base != name and base in models:
        return operator(base, models[base], models, seen)
    if name not in seen:
        kinds = [node.op_type for node in onnx.load(str(model), load_external_data=False).graph.node]
        words = name.split("/")[1].replace("_", "")
        named = [kind for kind in kinds if kind.lower() in words]
        seen[name] = kinds[0] if len(kinds) == 1 else max(named, key=len) if named else kinds[0] if kinds else "(none)"
    return seen[name]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def reason(detail):
    """A diagnostic without the names and numbers of its case."""
    return re.sub(r"[\[(].*?[\])]|\b\d[\d.e+-]*\b", "…", re.sub(r"'[^']*'|\"[^\"]*\"", "…", detail)).replace("|", "\\|")


def read(folder):
    """Case -> (status, detail) as the committed table has it; nothing where there is none yet."""
    path = folder / "conformance.tsv"
    if not path.exists():
        return {}
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    return {name: (status, detail) for name, _, status, _, detail in rows}


def changes(table, results):
    """({case: what became worse}, {case: what became better}) of results against rows of the table.

    A row whose case did not run is worse; a case without a row is neither, whatever came of it."""
    worse, better = {}, {}
    for name, (before, _) in table.items():
        if name not in results:
            worse[name] = f"{before} in the table, not in the suite"
            continue
        status, _, detail = results[name]
        if status != before:
            side = worse if STATUSES.index(status) > STATUSES.index(before) else better
            side[name] = f"{before} in the table, {status} now" + (f": {detail}" if detail else "")
    return worse, better


def write(folder, results, models):
    seen = {}
    kinds = {name: operator(name, models[name], models, seen) for name in results}
    with open(folder / "conformance.tsv", "w") as file:
        file.write("case\toperator\tstatus\tmax_ulp\tdetail\n")
        for name in sorted(results):
            status, ulp, detail = results[name]
            file.write(f"{name}\t{kinds[name]}\t{status}\t{ulp}\t{detail}\n")

    groups, operators = defaultdict(Counter), defaultdict(Counter)
    ulps = defaultdict(int)
    for name, (status, ulp, _) in results.items():
        groups[name.split("/")[0]][status] += 1
        if name.startswith("node/"):
            operators[kinds[name]][status] += 1
            ulps[kinds[name]] = max(ulps[kinds[name]], ulp or 0)
    counts = lambda counter: [counter[status] or "" for status in STATUSES]
    reasons = Counter(reason(detail) for status, _, detail in results.values() if status == "diagnosed")

    lines = ["# Conformance", "",
             "ONNX's own test suite (PyPI `onnx` 1.22.0), each case through `ds-opt`, a package and `ds-run compare`, at "
             "rtol 1e-3", "and atol 1e-7. Written by `utils/conformance --update`, for code of the level x86-64-v3; "
             "`conformance.tsv` has every", "case with its diagnostic. *Diagnosed* means refused with a message; *wrong* "
             "and *crashed* must stay empty.", "", "## By group", ""]
    lines += table(["group", "cases", *STATUSES],
                   [[group, sum(counter.values()), *counts(counter)] for group, counter in sorted(groups.items())])
    lines += ["", "## By operator", "",
              "Cases of the group `node`; those that hold the expanded body of a function count for the function. Max ULP "
              "is the", "largest distance in units in the last place over the cases that pass: large near zero.", ""]
    lines += table(["operator", "cases", "pass", "max ULP", *STATUSES[1:]],
                   [[kind, sum(counter.values()), counter["pass"] or "", ulps[kind] if counter["pass"] else "",
                     *counts(counter)[1:]] for kind, counter in sorted(operators.items())])
    lines += ["", "## Why cases are refused", ""]
    ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    lines += table(["cases", "message"], [[count, text] for text, count in ranked[:40]])
    rest = sum(count for _, count in ranked[40:])
    lines += ["", f"{rest} more cases have {len(ranked) - 40} other messages."] if rest else []
    (folder / "conformance.md").write_text("\n".join(lines) + "\n")
