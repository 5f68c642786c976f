"""Print pip constraints that pin every dependency to the lowest version that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("arviz", "logit", "plots", "cli", "dask")  # what test-lowest installs


def pins(project):
    """`name==version` of each requirement."""
    found = {}
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    wanted += [line for line in extras["dev"] if line.startswith("polars")]  # which the tests need
    for line in wanted:
        name, version = re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line).groups()
        if name in found and found[name] != version:
            raise SystemExit(f"pyproject.toml: {name} has two lower bounds: {found[name]}, {version}.")
        found[name] = version
    return [f"{name}=={version}" for name, version in found.items()]


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    print(*pins(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]), sep="\n")
