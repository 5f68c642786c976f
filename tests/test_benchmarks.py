"""Every benchmark runs at its smallest size; those of a GPU refuse in words where there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.parts import LONG, OTHERS, PACKAGES, PARTS, load_part

ROOT = Path(__file__).parents[1]
WORDS = {
    "sweep": "plain NumPy sweep",
    "sparse": "sampled pass, two threads",
    "large": "memory of a fit",
    "acceleration": "a = 2  lenses",
    "start": "paper's EM",
    "mixing": "lenses  exchange, mean of the seeds",
    "directions": "200 rows × 8",
    "rankings": "NUTS ballot by ballot",
    "linear": "plackett, EM",
    "comparisons": "plain sweeps take",
    "tiers": "items in 2 tiers",
    "dask": "Dask: an expected pass by workers",
    "table3": "PL-Gibbs, exchange",
    "coverage": "noise       30 rows",
    "agreement": "lenses",
    "verdict": "within a factor of 1.5 on",
    "mixing_situations": "travelmode, by alternative  exchange",
    "mixing_figures": "mixing_target.png",
    "dask_files": "variational fit",
    "choices": "| travelmode | 1 |",
    "prediction": "lenses",
    "fast_posterior": "40 rankings",
    "published": "| choix | six comparisons",
    "fit_time": "conditional logit",
    "network": "the next 5 of a ring, gibbs",
}  # of the last lines that each prints


def test_every_benchmark_is_known():
    folder = ROOT / "benchmarks"
    found = {path.stem for path in folder.glob("*.py") if "\ndef main(" in path.read_text(encoding="utf-8")}
    found |= {path.parent.name for path in folder.glob("*/__main__.py")}
    assert found == {*PARTS, *LONG, *OTHERS} and set(PACKAGES) <= found and set(WORDS) == {*PARTS, *LONG}


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=ROOT)


@pytest.mark.brief("acceleration")
@pytest.mark.parametrize("part", (*PARTS, *LONG))
def test_runs_at_its_smallest_size(part):
    done = run("--smallest", part)
    assert done.returncode == 0, done.stderr
    assert WORDS[part] in done.stdout


@pytest.mark.parametrize("part", OTHERS)
def test_refuses_in_words_without_a_gpu(part, monkeypatch):
    from plackett.engines import device

    device.gpu.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match="needs CuPy, which is not installed"):
        load_part(part, smallest=True, put=monkeypatch.setattr).main()
    device.gpu.cache_clear()


def test_unknown_part_is_named():
    done = run("sweeep")
    assert done.returncode == 2 and "unknown part sweeep; there are sweep, sparse" in done.stderr
