"""`plackett fit data/*.parquet --engine dask`."""

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

import plackett
from plackett.cli.commands import app

rng = np.random.default_rng(3)
FRAME = pd.DataFrame(rng.normal(size=(300, 2)), columns=["height", "weight"])
FRAME["kind"] = np.where(FRAME.height + rng.normal(size=300) > 0, "tall", "small")
FRAME["row"] = np.arange(300)
FIT = ["--target", "kind", "--drop", "row", "--inference", "variational", "--features", "exp", "--shape", "0.3"]


@pytest.fixture
def files(tmp_path):
    for part in range(3):
        FRAME[100 * part : 100 * (part + 1)].to_parquet(tmp_path / f"{part}.parquet")
    return sorted(str(path) for path in tmp_path.glob("*.parquet"))


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture(scope="module")
def address():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers:
        yield workers.scheduler_address


def test_files_are_read_by_workers(files, tmp_path, address):
    out = str(tmp_path / "far.model")
    done = run("fit", *files, *FIT, "--engine", "dask", "--scheduler", address, "--out", out)
    assert done.exit_code == 0, done.output
    assert "kind in 300 rows" in done.output
    with Client(address):
        wrong = run("fit", *files, *FIT, "--target", "kin", "--engine", "dask", "--out", str(tmp_path / "none"))
        assert "did you mean kind" in wrong.output
    far = plackett.load(out)
    near = plackett.PlackettLuceClassifier("variational", features="exp", shape=0.3, random_state=0)
    near.fit(FRAME[["height", "weight"]], FRAME.kind)
    np.testing.assert_allclose(far.weights_, near.weights_, atol=1e-10)
    done = run("predict", out, files[0])
    assert done.exit_code == 0 and "p_tall" in done.output


def test_directions_are_learned_there(files, tmp_path, address, monkeypatch):
    monkeypatch.setattr("plackett.directions.map.SCALES", (1.0, 0.35))
    out, learned = str(tmp_path / "far.model"), ["--target", "kind", "--drop", "row", "--inference", "em"]
    done = run("fit", *files, *learned, "--engine", "dask", "--scheduler", address, "--out", out)
    assert done.exit_code == 0, done.output
    assert plackett.load(out).score(FRAME[["height", "weight"]], FRAME.kind) > 0.7
    done = run("predict", out, files[0])
    assert done.exit_code == 0 and "p_tall" in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scheduler", "tcp://localhost:1"], "--scheduler is for --engine dask"),
        (["more.parquet"], "more than one table is for --engine dask"),
        (["--engine", "dask", "--test", "0.2"], "--test cannot be had with --engine dask"),
    ],
)
def test_options_that_nobody_would_read(files, tmp_path, options, words):
    done = run("fit", files[0], *options, *FIT, "--out", str(tmp_path / "none"))
    assert done.exit_code != 0
    assert words in " ".join(done.output.replace("│", " ").split())
