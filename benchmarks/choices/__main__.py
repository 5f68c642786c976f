"""Log-loss of unseen persons' choices and rankings: five splits of eight sets, half of the persons each."""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.choices.methods import CHOICES_ALONE, METHODS
from benchmarks.choices.sets import SETS, SPLITS, halves
from plackett import Rankings
from plackett.output.files import write_whole

RESULTS = Path(__file__).parents[1] / "results" / "choices"
DOCUMENTS = Path(__file__).parents[2] / "docs" / "prediction"


def cell(name, split, method, results):
    """Mean log-loss and seconds of processor time, kept in a file of its own; None where a method does not apply."""
    path = Path(results) / name / f"{method}-{split}.json"
    if not path.exists():
        data = SETS[name]()
        if method in CHOICES_ALONE and isinstance(data.y, Rankings):
            return None
        train, test = halves(data, split)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.process_time()
            value = METHODS[method](data, train, test, split)
        found = {"log_loss": -float(np.mean(value)), "seconds": time.process_time() - started}
        write_whole(path, json.dumps(found | {"warnings": sorted({w.category.__name__ for w in caught})}))
        print(f"{name:12} {split} {method:10} {found['log_loss']:.4f}  {found['seconds']:.1f} s", flush=True)
    return json.loads(path.read_text())


def table(found):
    """Means by set and method; the difference from logit in per cent, with its paired standard error."""
    methods = list(METHODS)
    lines = [
        f"| set | {' | '.join(methods)} | plackett against logit | seconds: plackett, logit |",
        "|---" * (len(methods) + 3) + "|",
    ]
    for name, cells in found.items():
        losses = {m: np.array([c["log_loss"] for c in cells[m]]) for m in methods if None not in cells[m]}
        means = {m: loss.mean() for m, loss in losses.items()}
        best = min(means, key=means.get)
        shown = [("" if m not in means else f"**{means[m]:.3f}**" if m == best else f"{means[m]:.3f}") for m in methods]
        ratio = losses["plackett"] / losses["logit"] - 1
        error = ratio.std(ddof=1) / np.sqrt(len(ratio)) if len(ratio) > 1 else np.nan
        spent = ", ".join(f"{np.mean([c['seconds'] for c in cells[m]]):.1f}" for m in ("plackett", "logit"))
        lines.append(f"| {name} | {' | '.join(shown)} | {100 * ratio.mean():+.1f} % (± {100 * error:.1f}) | {spent} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choices", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="set")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="method")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of finished cells")
    parser.add_argument("--out", type=Path, default=DOCUMENTS, help="folder for the table")
    asked = parser.parse_args()
    found = {name: {} for name in asked.sets}
    for split in range(asked.splits):
        for name in asked.sets:
            for method in asked.methods:
                found[name].setdefault(method, []).append(cell(name, split, method, asked.results))
    if asked.methods == list(METHODS):
        text = table(found)
        write_whole(asked.out / "choices-table.md", text)
        print(text)


if __name__ == "__main__":
    main()
