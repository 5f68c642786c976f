import argparse
import importlib

PARTS = ("sweep", "sparse", "large", "acceleration", "start", "mixing", "directions", "table3")

parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios that do not depend on the machine.")
parser.add_argument("parts", nargs="*", metavar="part", help=f"which to run, of {', '.join(PARTS)} (default: all)")
chosen = parser.parse_args().parts
unknown = set(chosen) - set(PARTS)
if unknown:
    parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
for part in chosen or PARTS:
    importlib.import_module(f"benchmarks.{part}").main()
