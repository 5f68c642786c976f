import argparse
import importlib

PARTS = ("sweep", "sparse", "large", "acceleration", "start", "mixing", "directions", "rankings", "dask", "table3")
LONG = ("coverage", "agreement", "mixing_situations")  # many default fits, run where they are named

parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios that do not depend on the machine.")
known = f"{', '.join(PARTS)} (default: all of these), {', '.join(LONG)}"
parser.add_argument("parts", nargs="*", metavar="part", help=f"which to run, of {known}")
chosen = parser.parse_args().parts
unknown = set(chosen) - {*PARTS, *LONG}
if unknown:
    parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join((*PARTS, *LONG))}")
for part in chosen or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
