import argparse
import sys

from benchmarks.parts import LONG, OTHERS, PARTS, load_part

parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios that do not depend on the machine.")
known = f"{', '.join(PARTS)} (default: all of these), {', '.join((*LONG, *OTHERS))}"
parser.add_argument("parts", nargs="*", metavar="part", help=f"which to run, of {known}")
parser.add_argument("--smallest", action="store_true", help="with sizes that show that they run, and nothing else")
chosen = parser.parse_args()
unknown = set(chosen.parts) - {*PARTS, *LONG, *OTHERS}
if unknown:
    parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join((*PARTS, *LONG, *OTHERS))}")
for part in chosen.parts or PARTS:
    try:
        load_part(part, chosen.smallest).main()
    except (ImportError, RuntimeError) as error:
        if part not in ("gpu", "gpu_fits", "gpu_dask"):
            raise
        sys.exit(f"{part}: {error}")
