"""What came of random or mutated models so far; a run that resumes keeps it in a file, after each batch."""
import hashlib
import json
from collections import Counter
from pathlib import Path


class Tally:
    """`batches` and `models` are done; `faults` are printed lines; reasons of what is no fault are counted, with an example."""

    FIELDS = ("batches", "models", "faults", "counts", "reasons", "examples", "useless", "per_name")

    def __init__(self, folder, run, resumes):
        """`run` is what makes the models of a run these: its seed, its choice of models and operators."""
        self.batches, self.models, self.faults = 0, 0, []
        self.counts, self.reasons, self.examples = Counter(), Counter(), {}
        self.useless, self.per_name = {}, {}
        name = hashlib.sha256(json.dumps(run).encode()).hexdigest()[:12]
        self.path = Path(folder) / f"state-{name}.json" if resumes else None
        if self.path and self.path.exists():
            for field, kept in json.loads(self.path.read_text()).items():
                setattr(self, field, Counter(kept) if field in ("counts", "reasons") else kept)
            print("\n".join([f"going on after {self.models} models", *self.faults]), flush=True)

    def fault(self, line):
        self.faults.append(line)
        print(line, flush=True)

    def reason(self, text, example):
        self.reasons[text] += 1
        self.examples.setdefault(text, example)

    def close_batch(self):
        self.batches += 1
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps({field: getattr(self, field) for field in self.FIELDS}))
            new.rename(self.path)  # an interrupted run leaves this state or the one before

    def print_reasons(self):
        for reason, count in sorted(self.reasons.items(), key=lambda item: -item[1]):
            print(f"{count:5} {reason[:300]} (as in {self.examples[reason]})")
