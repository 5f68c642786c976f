import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.prediction.run import RESULTS, run
from benchmarks.prediction.sets import SETS
from benchmarks.prediction.table import write_tables

DOCUMENTS = Path(__file__).parents[2] / "docs" / "prediction"  # None, here and of RESULTS: removed in the end
CHOSEN = {"sets": list(SETS), "methods": None, "jobs": os.cpu_count()}  # None: all methods
SMALLEST = {
    **{"DOCUMENTS": None, "RESULTS": None},
    "CHOSEN": {"sets": ["lenses"], "methods": ["exp", "logistic-l2"], "jobs": 1},
}


def main(arguments=()):
    from benchmarks.prediction.methods import METHODS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description="Our classifiers and rivals.")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=CHOSEN["sets"], metavar="set")
    methods = CHOSEN["methods"] or list(METHODS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=methods, metavar="method")
    parser.add_argument("--jobs", type=int, default=CHOSEN["jobs"], help="fits at a time, one thread each")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of finished cells")
    parser.add_argument("--out", type=Path, default=DOCUMENTS, help="folder for the tables")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        results, out = (Path(folder or temporary) for folder in (chosen.results, chosen.out))
        try:
            run(chosen.sets, chosen.methods, chosen.jobs, results, show=True)
        except KeyboardInterrupt:
            sys.exit("interrupted; what was finished is kept, and the same command goes on from there")
        print(write_tables(results, out, chosen.sets))


if __name__ == "__main__":
    main(sys.argv[1:])
