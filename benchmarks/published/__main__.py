"""Published results of other programs beside ours: `python -m benchmarks.published` prints and writes the table.

Sets that do not come with the package are read from the folder that PLACKETT_DATA names; studies of sets that are not
there are left out, and named.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.published import choice_studies, class_studies, ranking_studies
from benchmarks.published.pages import whole, write_pages
from benchmarks.published.sources import data_folder

STUDIES = (*class_studies.STUDIES, *choice_studies.STUDIES, *ranking_studies.STUDIES)
DOCUMENTS = Path(__file__).parents[2] / "docs" / "coming"  # None: a folder that is removed in the end
TOOLS = list(dict.fromkeys(study.tool for study in STUDIES))
CHOSEN = {"tools": TOOLS}
SMALLEST = {"DOCUMENTS": None, "CHOSEN": {"tools": ["choix"]}}


def fitted(studies, folder):
    """Rows of all studies whose data are at hand, and the names of the others."""
    rows, left_out = [], []
    for study in studies:
        if study.missing(folder):
            left_out.append(study.name)
            continue
        started = time.perf_counter()
        rows += study.rows()
        print(f"{study.name}: {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return rows, left_out


def main(arguments=()):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=CHOSEN["tools"], metavar="program")
    parser.add_argument("--out", type=Path, default=DOCUMENTS, help="folder for the tables")
    asked = parser.parse_args(arguments)
    rows, left_out = fitted([study for study in STUDIES if study.tool in asked.tools], data_folder())
    with tempfile.TemporaryDirectory() as temporary:
        write_pages(rows, left_out, asked.out or Path(temporary))
    print(whole(rows, left_out))
    far = [row for row in rows if abs(row["difference"]) > row["allowed"]]
    if far:
        named = ", ".join(f"{row['tool']} {row['data']} {row['quantity']}" for row in far)
        sys.exit(f"further from the published number than the study allows: {named}")


if __name__ == "__main__":
    main(sys.argv[1:])
