"""Wheel and sdist as a stranger meets them: `python tests/distributions.py PYTHON ...`.

Builds both, checks their metadata, installs the wheel into an empty environment of each Python, and fits, saves and
loads a model of each kind there, away from the sources. In the first environment a type checker reads the package too.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "tests/conftest.py", "docs/conf.py")
USE = """
import sys, tempfile, pathlib
import numpy as np
import plackett
from plackett import ChoiceSets, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings

assert pathlib.Path(plackett.__file__).is_relative_to(sys.prefix), plackett.__file__
rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
classifier = PlackettLuceClassifier("em").fit(X + (y == "b")[:, None], y)
R = Rankings.from_pairs(["a", "b", "a", "c"], ["b", "a", "c", "a"], counts=[3, 1, 4, 2])
ranker = PlackettLuceRanker("em", shape=1).fit(None, R)
frame = {"cost_bus": rng.random(40), "cost_car": rng.random(40)}
class Table(dict):
    columns = property(list)
trips = ChoiceSets.from_wide(Table(frame), alternatives=["bus", "car"], attributes=["cost"])
chooser = PlackettLuceChooser("em", features="linear").fit(trips, np.where(rng.random(40) < 0.5, "bus", "car"))
with tempfile.TemporaryDirectory() as folder:
    for model, data in ((classifier, X), (ranker, None), (chooser, trips)):
        model.save(f"{folder}/model.plk")
        loaded = plackett.load(f"{folder}/model.plk")
        np.testing.assert_array_equal(loaded.predict_proba(data), model.predict_proba(data))
assert len(plackett.datasets.names()) > 5
print(f"plackett {plackett.__version__} works with Python {sys.version.split()[0]}, NumPy {np.__version__}")
"""
TYPED = """
import numpy as np
from plackett import Gibbs, PlackettLuceClassifier, load

clf: PlackettLuceClassifier = PlackettLuceClassifier(Gibbs(draws=100), random_state=0)
clf.fit(np.ones((2, 2)), ["a", "b"])
score: float = clf.score(np.ones((2, 2)), ["a", "b"])
"""
WRONG = TYPED + "lower: int = clf.score(np.ones((2, 2)), [])\n"


def run(*command, cwd=ROOT, check=True):
    return subprocess.run([*map(str, command)], cwd=cwd, check=check, capture_output=not check, text=True)


def built(folder):
    """The wheel, which is made from the sdist."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir())
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in NEEDED if name not in names]
    if missing:
        sys.exit(f"the sdist lacks {', '.join(missing)}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_types(python, folder):
    """A consumer's correct code passes the strict checker, and wrong code does not."""
    run(python, "-m", "pip", "install", "--quiet", "mypy")
    for name, code, right in (("right", TYPED, True), ("wrong", WRONG, False)):
        (folder / f"{name}.py").write_text(code)
        found = run(python, "-m", "mypy", "--strict", f"{name}.py", cwd=folder, check=False)
        if (found.returncode == 0) != right:
            sys.exit(f"mypy on {name} code of a consumer: {found.stdout}{found.stderr}")


def main(pythons):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(folder / "dist")
        for i, python in enumerate(pythons):
            place = folder / f"empty{i}"
            run(python, "-m", "venv", place)
            inside = place / "bin" / "python"
            run(inside, "-m", "pip", "install", "--quiet", wheel)
            run(inside, "-I", "-c", USE, cwd=folder)
            if i == 0:
                check_types(inside, folder)


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
