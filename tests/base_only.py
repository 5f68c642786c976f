"""Everything public with the base dependencies alone: it works, or it refuses in words that name what to install.

`python tests/base_only.py` blocks the optional libraries where they are installed, and ends with 1 if anything failed
otherwise. It needs no pytest.
"""

import contextlib
import io
import re
import sys
import tempfile
import warnings
from importlib.abc import MetaPathFinder
from pathlib import Path

OPTIONAL = {
    *("arviz", "arviz_base", "arviz_plots", "arviz_stats", "click", "cupy", "cycler", "dask", "distributed", "IPython"),
    *("matplotlib", "nutpie", "pandas", "polars", "polyagamma", "pyarrow", "typer", "xarray"),
}
WORDS = re.compile(r".* needs .*: pip install 'plackett\[(arviz|cli|cuda|dask|logit|plots)\]'.*", re.S)


class Blocked(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())

import numpy as np  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402

import plackett  # noqa: E402
import plackett.__main__  # noqa: E402
from plackett import (  # noqa: E402
    ChoiceSets,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    explain,
    win_probabilities,
)
from plackett import plots as draw  # noqa: E402
from plackett.report import write_report  # noqa: E402


class Frame(dict):
    """A data frame of no known library."""

    @property
    def columns(self):
        return list(self)


def command(*arguments):
    """The command line: its error goes to the terminal."""
    before, sys.argv = sys.argv, ["plackett", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            plackett.__main__.main()
    except SystemExit as ended:
        raise ImportError(ended.code) from ended
    finally:
        sys.argv = before


def calls(folder):
    """What is called, by name, and whether it must work here; None where the base need not have it."""
    X, y = load_iris(return_X_y=True)
    learned = PlackettLuceClassifier("em").fit(X, y)
    drawn = PlackettLuceClassifier(plackett.Gibbs(draws=10, tune=10, chains=1), random_state=0).fit(X, y)
    paper = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    R = Rankings.from_orders([["a", "b", "c"], ["b", "a"], ["c", "b"], ["a", "c", "b"]], unranked="absent")
    ranker, by_row = PlackettLuceRanker("em").fit(None, R), PlackettLuceRanker("em", features="exp").fit(X[:4], R)
    long = Frame(trip=[1, 1, 2, 2], by=["bus", "car"] * 2, minutes=[30, 20, 15, 12], taken=[0, 1, 1, 0])
    wide = Frame(time_bus=[30, 15], time_car=[20, 12])
    with open(folder / "t.csv", "w") as file:
        file.write("a,y\n1,u\n2,v\n")
    (folder / "b.soi").write_text(
        "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n2: 1,2\n1: 2,1\n"
    )
    must = {
        "predict": lambda: (learned.predict(X), paper.predict_proba(X), learned.score(X, y)),
        "print": lambda: (repr(learned), repr(paper), repr(ranker), learned._repr_html_(), ranker._repr_html_()),
        "clone": lambda: clone(learned),
        "dir": lambda: dir(learned),
        "save and load": lambda: (learned.save(folder / "m.plk"), plackett.load(folder / "m.plk").predict(X)),
        "win_probabilities": lambda: win_probabilities(paper, X[:2]),
        "ranker.predict": lambda: by_row.predict_proba(X[:2]),
        "ranker.log_likelihood": lambda: ranker.log_likelihood(None, R),
        "read_preflib": lambda: Rankings.read_preflib(folder / "b.soi"),
        "regularization_path": lambda: plackett.regularization_path(X, y, [0.9, 0.5]),
        "simulate": lambda: plackett.simulate.race(np.ones((2, 3)), np.zeros((2, 3)), rng=0),
        "names of sets": plackett.datasets.names,
        "names of features": lambda: paper.features_.get_feature_names_out(),
    }
    may = {
        "summary": learned.summary,
        "summary of a ranker": ranker.summary,
        "effects": lambda: learned.effects(X),
        "effects of any model": lambda: plackett.effects(learned, X),
        "relevance": lambda: learned.relevance_,
        "relevance with intervals": lambda: learned.relevance(),
        "worth": ranker.worth,
        "prob_better": ranker.prob_better,
        "rank_distribution": ranker.rank_distribution,
        "explain": lambda: explain(learned, X[0]),
        "explain a dict": lambda: explain(learned, {"a": 1}),
        "to_arviz": lambda: drawn.to_arviz(X, y),
        "write_report": lambda: write_report(learned, X, y, folder / "r.html"),
        "write_report of a ranker": lambda: write_report(ranker, None, R, folder / "r.html"),
        "from_long": lambda: ChoiceSets.from_long(long, situation="trip", alternative="by"),
        "from_long of a dict": lambda: ChoiceSets.from_long(dict(long), situation="trip", alternative="by"),
        "read_choices": lambda: ChoiceSets.read_choices(long, situation="trip", alternative="by", choice="taken"),
        "from_wide": lambda: ChoiceSets.from_wide(wide, alternatives=["bus", "car"], attributes=["time"]),
        "TableEncoder": lambda: plackett.TableEncoder().fit(Frame(a=[1, 2])),
        "datasets.load": lambda: plackett.datasets.load("lenses"),
        "engine dask": lambda: PlackettLuceClassifier("em", engine="dask", features="exp").fit(X, y),
        "engine cupy": lambda: PlackettLuceClassifier("em", engine="cupy", features="exp").fit(X, y),
        "pólya-gamma": lambda: plackett.SparseLogitClassifier(sampler="polya-gamma").fit(X, y),
        "reproduce": lambda: __import__("plackett.paper").paper.reproduce(["table1"], out=folder / "out"),
        "plots.weights": lambda: draw.weights(paper),
        "plots.relevance": lambda: draw.relevance(learned),
        "plots.path": lambda: draw.path(plackett.regularization_path(X, y, [0.9, 0.5])),
        "plots.effect": lambda: draw.effect(learned, X, 0),
        "plots.decision_boundary": lambda: draw.decision_boundary(learned, X, y, features=(0, 1)),
        "plots.roc": lambda: draw.roc(learned, X, y),
        "plots.calibration": lambda: draw.calibration(learned, X, y),
        "plots.probabilities": lambda: draw.probabilities(learned, X[0]),
        "plots.race": lambda: draw.race(paper, X[0]),
        "plots.contributions": lambda: draw.contributions(learned, X[0]),
        "plots.worth": lambda: draw.worth(ranker),
        "plots.rank_distribution": lambda: draw.rank_distribution(ranker),
        "plots.prob_better": lambda: draw.prob_better(ranker),
        "demo": lambda: __import__("plackett.cli.demo").cli.demo.main(),
        "command fit": lambda: command("fit", str(folder / "t.csv"), "--target", "y"),
        "command rank": lambda: command("rank", str(folder / "b.soi")),
        "command help": lambda: command("--help"),
    }
    return must, may


def main():
    wrong, worked, refused = [], [], []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        must, may = calls(Path(name))
        for what, call in (must | may).items():
            try:
                call()
            except Exception as error:
                if (
                    what in must
                    or not isinstance(error, ImportError | AttributeError)
                    or not WORDS.fullmatch(str(error))
                ):
                    wrong.append(f"{what}: {type(error).__name__}: {error}")
                else:
                    refused.append(f"{what}: {error}")
            else:
                worked.append(what)
    print("works:", ", ".join(worked))
    print(*refused, sep="\n")
    print(*(f"WRONG {each}" for each in wrong), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
