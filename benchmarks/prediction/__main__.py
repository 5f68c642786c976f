import argparse
import os
import sys
from pathlib import Path

from benchmarks.prediction.run import RESULTS, run
from benchmarks.prediction.sets import SETS
from benchmarks.prediction.table import write_tables

DOCUMENTS = Path(__file__).parents[2] / "docs" / "prediction"


def main():
    from benchmarks.prediction.methods import METHODS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description="Our classifiers and rivals.")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="set")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="method")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fits at a time, one thread each")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of finished cells")
    parser.add_argument("--out", type=Path, default=DOCUMENTS, help="folder for the tables")
    chosen = parser.parse_args()
    try:
        run(chosen.sets, chosen.methods, chosen.jobs, chosen.results, show=True)
    except KeyboardInterrupt:
        sys.exit("interrupted; what was finished is kept, and the same command goes on from there")
    print(write_tables(chosen.results, chosen.out, chosen.sets))


if __name__ == "__main__":
    main()
