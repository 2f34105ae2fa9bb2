"""Small faults in C++ sources: what utils/check-mutants builds, one at a time.

Works on text whose comments, strings, preprocessor lines, assertions and messages are blanked out, so that each place is
code that decides something. It relies on clang-format: binary operators stand between spaces, brackets of template
arguments do not. A fault that does not compile costs a build and is not counted.
"""
import difflib
import hashlib
import random
import re
from dataclasses import dataclass

# Calls that say something and decide nothing; what follows them up to the semicolon is part of the message.
SAYING = re.compile(r"\b(assert|static_assert|llvm_unreachable|emitError|emitOpError|emitRemark|emitWarning|notifyMatchFailure|"
                    r"remark|attachNote|report_fatal_error|errs|count)\s*\(")
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Mutant:
    path: str
    kind: str
    start: int
    end: int
    text: str  # in place of what is between start and end
    diff: str  # the lines before and after, with - and +
    line: int
    name: str  # of 8 digits: stays the same while the lines of the fault do

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]


def blank(found):
    return re.sub(r"[^\n]", " ", found.group())


def code_only(source):
    """The source with everything blanked that is not code, of the same length."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, source, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)
    place = 0
    while found := SAYING.search(text, place):
        end = text.find(";", closing(text, found.end() - 1))
        end = len(text) if end < 0 else end
        text = text[:found.start()] + re.sub(r"[^\n]", " ", text[found.start():end]) + text[end:]
        place = found.start() + 1
    return text


def closing(text, place):
    """The place of the bracket that closes the one at `place`, or the end."""
    depth = 0
    for i in range(place, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return len(text)


def is_angle(text, i):
    """Whether < or > is a bracket of template arguments."""
    if text[i] == "<":
        return i > 0 and re.match(r"\w", text[i - 1]) and text[i + 1:i + 2] not in (" ", "=", "<")
    return text[i] == ">" and text[i - 1:i] not in (" ", "-", "=") and text[i + 1:i + 2] != "="


def operand(text, place, step, stops):
    """Where the operand ends that begins beside an operator: at a bracket of an outer level or at one of the stops."""
    depth, i = 0, place
    opens, closes = ("([{", ")]}") if step > 0 else (")]}", "([{")
    while 0 <= i < len(text):
        c = text[i]
        if c in opens or (c in "<>" and is_angle(text, i) and (c == "<") == (step > 0)):
            depth += 1
        elif c in closes or (c in "<>" and is_angle(text, i)):
            if depth == 0:
                return i if step > 0 else i + 1
            depth -= 1
        elif depth == 0:
            if c in ";,?" or (c == ":" and text[i - 1:i] == " "):
                return i if step > 0 else i + 1
            for stop in stops:
                if step > 0 and text.startswith(stop, i):
                    return i
                if step < 0 and text.endswith(stop, 0, i + 1):
                    return i + 1
        i += step
    return max(0, min(i, len(text)))


def dropped_conditions(text):
    """Each operand of && and ||: with the operator before it, the first one with the operator after it."""
    for found in re.finditer(r"\s+(&&|\|\|)\s+", text):
        operators = ("||",) if found.group(1) == "||" else ("&&", "||")
        end = operand(text, found.end(), 1, operators)
        yield "condition dropped", found.start(), len(text[:end].rstrip()), ""
        start = operand(text, found.start(), -1, (*operators, "return ", " = ", "+= ", "|= ", "&= "))
        if not text[:start].endswith(found.group(1)):
            start += len(text[start:found.end()]) - len(text[start:found.end()].lstrip())
            yield "condition dropped", start, found.end(), ""


def conditions(text):
    """(start, end) of what an `if` asks, without a declaration before a semicolon; none for `if (auto x = ...)`."""
    for found in re.finditer(r"\bif \(", text):
        end = closing(text, found.end() - 1)
        start = found.end()
        split = operand(text, start, 1, ())
        if split < end and text[split] == ";":
            start = split + 1
            start += len(text[start:end]) - len(text[start:end].lstrip())
        if start < end and not re.search(r"[^=!<>]=[^=]", text[start:end].split("[")[0]):
            yield start, end


def faults(source, text):
    """(kind, start, end, replacement) of every fault."""
    for found in re.finditer(r"(?<= )(<=|>=|==|!=|<|>)(?=\s)", text):
        yield "comparison turned", found.start(), found.end(), TURNED[found.group()]
    yield from dropped_conditions(text)
    for found in re.finditer(r" [+-] 1\b(?![.\w])", text):
        yield "off by one", found.start(), found.end(), ""
    for found in re.finditer(r"(?<= )[+-](?= (?!1\b)[\w(])", text):
        if "Twine" not in line_at(source, found.start()) and '"' not in line_at(source, found.start()):
            yield "sign turned", found.start(), found.end(), "-" if found.group() == "+" else "+"
    for found in re.finditer(r"(?<![\w.<\"])(?<![+-] )\d+(?:\.\d+(?:e-?\d+)?f?)?(?![\w.>])", text):
        if re.search(r"\bcase ", line_at(text, found.start())) or re.search(r"\)( const)? = $", text[:found.start()][-12:]):
            continue  # labels, and functions without a body
        number = found.group()
        if "." in number:
            changed = "1.0" if float(number.rstrip("f")) == 0 else f"(1.5 * {number})"
        else:
            changed = str(int(number) + 1)
        yield "constant changed", found.start(), found.end(), changed
    for start, end in conditions(text):
        rest = text[end + 1:]
        if re.match(r"\s*\{?\s*(return\b[^;{]*;|continue;|break;)", rest):
            yield "early return removed", start, end, f"false && ({source[start:end]})"
        yield "condition negated", start, end, f"!({source[start:end]})"
    for found in re.finditer(r"(?<![\w)])!(?=[\w(])", text):
        yield "negation dropped", found.start(), found.end(), ""
    for found in re.finditer(r"\bstd::(min|max)\b", text):
        yield "minimum turned", found.start(), found.end(), "std::max" if found.group(1) == "min" else "std::min"
    for found in re.finditer(r"\b(true|false)\b", text):
        yield "boolean turned", found.start(), found.end(), "false" if found.group() == "true" else "true"


def line_at(text, place):
    return text[text.rfind("\n", 0, place) + 1:(text.find("\n", place) + 1 or len(text) + 1) - 1]


def changed_lines(source, fault):
    _, start, end, replacement = fault
    first, last = source.rfind("\n", 0, start) + 1, (source.find("\n", end) + 1 or len(source) + 1) - 1
    before = source[first:last].splitlines()
    after = (source[first:start] + replacement + source[end:last]).splitlines()
    return "\n".join(line for line in difflib.ndiff(before, after) if line[0] in "-+")


def mutants_of(path, source):
    """All faults of one file."""
    made, seen = [], {}
    for fault in faults(source, code_only(source)):
        diff = changed_lines(source, fault)
        key = f"{path}\n{diff}"
        seen[key] = seen.get(key, 0) + 1  # the same lines may occur twice in a file
        name = hashlib.sha256(f"{key}\n{seen[key]}".encode()).hexdigest()[:8]
        if diff:
            made.append(Mutant(path, fault[0], *fault[1:], diff, source.count("\n", 0, fault[1]) + 1, name))
    return made


def choose(sources, count, seed):
    """`count` of the faults of all files {path: source}: file after file in turn, kinds of faults before places."""
    dice = random.Random(seed)
    left = {}
    for path in sorted(sources):
        kinds = {}
        for mutant in mutants_of(path, sources[path]):
            kinds.setdefault(mutant.kind, []).append(mutant)
        left[path] = [kinds[kind] for kind in sorted(kinds)]
    paths, chosen = sorted(path for path in left if left[path]), []
    while paths and len(chosen) < count:
        dice.shuffle(paths)
        for path in list(paths):
            kind = dice.choice(left[path])
            chosen.append(kind.pop(dice.randrange(len(kind))))
            left[path] = [kind for kind in left[path] if kind]
            if not left[path]:
                paths.remove(path)
            if len(chosen) == count:
                break
    return chosen
