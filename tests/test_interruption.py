"""Ctrl-C ends the command line with status 130 at any moment, and keeps the draws where there are some."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plackett import EM, Gibbs, PlackettLuceClassifier, PlackettLuceRanker, Rankings, load

pytestmark = pytest.mark.usefixtures("interruptible")
EXP = ["--features", "exp"]
GOES_ON = [*EXP, "--target-ess", "1000000", "--draws", "20", "--chains", "2"]


def run(folder, moment, *arguments, table="table.csv", **environment):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    rows = [f"{a:.3f},{b:.3f},{'yes' if a + rng.normal() > 0 else 'no'}" for a, b in x]
    (folder / "table.csv").write_text("\n".join(["a,b,answer", *rows]))
    command = [sys.executable, str(Path(__file__).with_name("interrupted.py")), moment]
    if table.endswith(".parquet"):
        pd.read_csv(folder / "table.csv").to_parquet(folder / table)
    command += ["fit", table, "--target", "answer", "--out", "m.plk", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | environment,
        start_new_session=True,
    )  # fmt: skip


@pytest.mark.brief(4)
@pytest.mark.parametrize(
    "moment, arguments",
    [
        ("import plackett.cli.commands", []),
        ("import sklearn", []),
        ("import numba", EXP),
        ("held-out rows", []),
        ("held-out modes", []),
        ("tuning", EXP),
        ("a callback", []),
        ("writing", ["--inference", "em"]),
    ],
)
def test_with_nothing_to_keep(tmp_path, moment, arguments):
    done = run(tmp_path, moment, *arguments)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    if "import" not in moment:
        assert done.stderr == "plackett: interrupted; nothing was written.\n"
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv"}


@pytest.mark.parametrize(
    "owner, model, inference",
    [
        ("plackett.directions.walk.HamiltonianSampler.advance", PlackettLuceClassifier, Gibbs()),
        ("plackett.directions.map.ascend", PlackettLuceClassifier, Gibbs()),
        ("plackett.inference.em.EM.path", PlackettLuceRanker, EM()),
    ],
)
def test_in_python_while_rows_are_held_out(monkeypatch, owner, model, inference):
    """One line that says what is lost, and none of the depths of the fit."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, interrupt)
    x = np.random.default_rng(0).normal(size=(60, 2))
    seen = {PlackettLuceRanker: Rankings.from_orders([["a", "b"], ["b", "a"]] * 30)}.get(model, x[:, 0] > 0)
    fitted = model(inference, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="interrupted before there was anything to keep") as caught:
        fitted.fit(None if model is PlackettLuceRanker else x, seen)
    assert caught.value.__suppress_context__ and not hasattr(fitted, "posterior_")


@pytest.mark.brief("learned")
@pytest.mark.parametrize(
    "arguments, largest",
    [(EXP, "iterations"), ([], "walk_on"), ([*EXP, "--inference", "variational"], "expect_blocks")],
    ids=["exp", "learned", "variational"],
)
def test_while_compiling(tmp_path, arguments, largest):
    """Without waiting for the compiler to be done."""
    cache = tmp_path / "cache"
    done = run(tmp_path, "compiling", *arguments, NUMBA_CACHE_DIR=str(cache))
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert not (tmp_path / "m.plk").exists()
    assert not list(cache.rglob(f"*.{largest}*.nbc")), "the largest kernel was compiled to its end"


@pytest.mark.parametrize("moment, arguments", [("drawing", GOES_ON), ("diagnosing", GOES_ON)])
def test_with_draws_to_keep(tmp_path, moment, arguments):
    done = run(tmp_path, moment, *arguments)
    assert done.returncode == 130, done.stderr
    assert "note: interrupted: the" in done.stderr and "Traceback" not in done.stderr
    assert load(tmp_path / "m.plk").posterior_.shape.shape[1] >= 20


@pytest.mark.long
def test_workers_of_a_cluster_do_not_hear_it(tmp_path):
    """A terminal sends it to them too."""
    done = run(tmp_path, "all are drawing", *GOES_ON, "--tune", "50", "--engine", "dask", table="table.parquet")
    assert done.returncode == 130, done.stderr
    assert "note: interrupted: the" in done.stderr and "Traceback" not in done.stderr
    assert load(tmp_path / "m.plk").posterior_.shape.shape[1] >= 20
