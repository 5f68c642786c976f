"""Log-loss of unseen persons' choices and rankings: five splits of eight sets, half of the persons each."""

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.choices.methods import METHODS, applies
from benchmarks.choices.sets import SETS, SPLITS, halves
from plackett.output.files import write_whole

RESULTS = Path(__file__).parents[1] / "results" / "choices"  # None: a folder that is removed in the end
CHOSEN = {"sets": list(SETS), "methods": list(METHODS), "splits": SPLITS}
SMALLEST = {
    "RESULTS": None,
    "CHOSEN": {"sets": ["travelmode"], "methods": ["plackett", "logit", "constants"], "splits": 1},
}


def cell(name, split, method, results):
    """Mean log-loss and seconds of processor time, kept in a file of its own, unless the method does not apply."""
    path = Path(results) / name / f"{method}-{split}.json"
    if not path.exists():
        data = SETS[name]()
        if not applies(method, data):
            return
        train, test = halves(data, split)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.process_time()
            value = METHODS[method](data, train, test, split)
        found = {"log_loss": -float(np.mean(value)), "seconds": time.process_time() - started}
        write_whole(path, json.dumps(found | {"warnings": sorted({w.category.__name__ for w in caught})}))
        print(f"{name:12} {split} {method:10} {found['log_loss']:.4f}  {found['seconds']:.1f} s", flush=True)


def finished(name, method, results):
    """What was found on each split that is done."""
    paths = sorted((Path(results) / name).glob(f"{method}-?.json"))
    return {int(path.stem[-1]): json.loads(path.read_text()) for path in paths}


def table(results):
    """Means by set and method over the splits that ours and logit have; their difference in per cent, paired."""
    methods = list(METHODS)
    lines = [
        f"| set | splits | {' | '.join(methods)} | plackett against logit | seconds: plackett, logit |",
        "|---" * (len(methods) + 4) + "|",
    ]
    for name in SETS:
        found = {method: finished(name, method, results) for method in methods}
        both = sorted(found["plackett"].keys() & found["logit"].keys())
        if not both:
            continue
        means = {m: np.mean([found[m][i]["log_loss"] for i in both]) for m in methods if found[m].keys() >= set(both)}
        best = min(means, key=means.get)
        shown = [("" if m not in means else f"**{means[m]:.3f}**" if m == best else f"{means[m]:.3f}") for m in methods]
        ratio = np.array([found["plackett"][i]["log_loss"] / found["logit"][i]["log_loss"] - 1 for i in both])
        error = f" (± {100 * ratio.std(ddof=1) / np.sqrt(len(both)):.1f})" if len(both) > 1 else ""
        spent = ", ".join(f"{np.mean([found[m][i]['seconds'] for i in both]):.0f}" for m in ("plackett", "logit"))
        lines.append(f"| {name} | {len(both)} | {' | '.join(shown)} | {100 * ratio.mean():+.1f} %{error} | {spent} |")
    return "\n".join(lines) + "\n"


def main(arguments=()):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choices", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=CHOSEN["sets"], metavar="set")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=CHOSEN["methods"], metavar="method")
    parser.add_argument("--splits", type=int, default=CHOSEN["splits"])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of finished cells")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        results = asked.results or temporary
        for split in range(asked.splits):
            for name in asked.sets:
                for method in asked.methods:
                    cell(name, split, method, results)
        print(table(results))


if __name__ == "__main__":
    main(sys.argv[1:])
