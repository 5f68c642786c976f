"""Wheel and sdist as a stranger meets them: `python tests/distributions.py FOLDER [PYTHON ...]`.

FOLDER holds what `make dist` built. The wheel is installed into an empty environment of each Python and used there,
away from the sources, by `consumer/use.py`: with the base dependencies alone, then with pandas and the command line. In
the environment of the last Python mypy checks `consumer/typed.py` and `consumer/mistakes.py` strictly. Without names of
Pythons the lowest and the newest on PATH are taken.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSUMER = ROOT / "tests" / "consumer"
NEEDED = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "Makefile", "tests/conftest.py", "docs/conf.py")
VERSIONS = range(11, 20)  # minor versions of Python 3 that are looked for, from the lowest that is supported


def run(*command, cwd=None, may_fail=False):
    """The output of a command; where it fails, this ends with what it said."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def found_pythons():
    """The lowest and the newest Python on PATH that start; a name on PATH may be a stub that does not."""
    names = [name for minor in VERSIONS if shutil.which(name := f"python3.{minor}")]
    usable = [name for name in names if subprocess.run([name, "-c", ""], capture_output=True).returncode == 0]
    return list(dict.fromkeys([usable[0], usable[-1]])) if usable else [sys.executable]


def found_wheel(folder):
    """The wheel of the folder, after a look into the sdist beside it."""
    wheels, sdists = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        sys.exit(f"{folder} must hold one wheel and one sdist, got {[p.name for p in [*wheels, *sdists]]} instead.")
    with tarfile.open(sdists[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    if missing := [name for name in NEEDED if name not in names]:
        sys.exit(f"the sdist lacks {', '.join(missing)}")
    return wheels[0].resolve()


def use(python, wheel, place):
    """Install the wheel into an empty environment and use it; what it says of itself."""
    run(python, "-m", "venv", place)
    inside = place / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", wheel)
    alone = run(inside, "-I", CONSUMER / "use.py", cwd=place)
    run(inside, "-m", "pip", "install", "--quiet", f"{wheel}[cli]")
    run(inside, "-I", CONSUMER / "use.py", cwd=place)
    if "fit" not in run(place / "bin" / "plackett", "--help", cwd=place):
        sys.exit("plackett --help names no command fit")
    return alone.strip()


def check_types(place):
    """The strict checker accepts a consumer's correct code, and reports every wrong line of the other."""
    inside = place / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "mypy", "pandas-stubs")
    strict = (inside, "-m", "mypy", "--strict", "--config-file=")
    for code in ("typed.py", "mistakes.py"):
        shutil.copy(CONSUMER / code, place)
        lines = (CONSUMER / code).read_text(encoding="utf-8").splitlines()
        wrong = {n for n, line in enumerate(lines, start=1) if line.endswith("# wrong")}
        said = run(*strict, code, cwd=place, may_fail=True)
        reported = {int(n) for n in re.findall(rf"^{code}:(\d+): error", said, re.M)}
        if reported != wrong or ("Success" in said) == bool(wrong):
            sys.exit(f"mypy should report lines {sorted(wrong)} of {code} and said:\n{said}")


def main(folder, pythons):
    wheel = found_wheel(Path(folder))
    with tempfile.TemporaryDirectory() as name:
        places = [Path(name) / f"empty{i}" for i in range(len(pythons))]
        with ThreadPoolExecutor(2) as workers:
            for said in workers.map(use, pythons, [wheel] * len(pythons), places):
                print(said)
        check_types(places[-1])
    print("a consumer's types are checked")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or found_pythons())
