"""R-hat and effective draws of rankings and choices with and without moves: `python -m benchmarks mixing_situations`.

Weights of fixed features, a learned, four dispersed chains, as many draws with as without; core-seconds of whole fits,
tuning included. The sets are read from the folder PLACKETT_DATA.
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from plackett import ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, datasets

DRAWS, TUNE, SEEDS = 2000, 2000, (1, 2, 3)
SMALLEST = {"DRAWS": 10, "TUNE": 20, "SEEDS": (1,), "CHOSEN": ("travelmode, by alternative",)}


def sushi(folder, n=500):
    """Rankings of ten kinds by the first so many users, and what is known of them."""
    users = pd.read_csv(folder / "sushi" / "sushi3_users.csv").drop(columns="user_id")
    X = users.assign(time=np.log(users["time"])).to_numpy(dtype=float)[:n]
    return {"X": X, "R": Rankings.from_orders(pd.read_csv(folder / "sushi" / "sushi3a_orders.csv"))[:n]}


def travelmode(folder):
    """The travel modes that come with the package."""
    found = datasets.load("travelmode")
    return {"X": found.choices, "y": found.y}


def choices(name, alternatives, person):
    """A table of choices, a column for each attribute of each alternative."""

    def read(folder):
        frame = pd.read_csv(folder / f"{name}.csv")
        return {"X": ChoiceSets.from_wide(frame, alternatives=alternatives, sep="_", person=person), "y": frame["y"]}

    return read


fishing = choices("fishing", ["beach", "pier", "boat", "charter"], ["income"])
SETS = {
    "500 sushi rankings": (PlackettLuceRanker, {}, sushi),
    "fishing, shared": (PlackettLuceChooser, {"weights": "shared"}, fishing),
    "travelmode, shared": (PlackettLuceChooser, {"weights": "shared"}, travelmode),
    "travelmode, by alternative": (PlackettLuceChooser, {"weights": "alternative"}, travelmode),
}

CHOSEN = tuple(SETS)


def measure(model, settings, data, seed, **chains):
    """Largest R-hat, smallest ESS and core-seconds of a fit; kernels are loaded before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lengths in ({"draws": 4, "tune": 16}, {"draws": DRAWS, "tune": TUNE}):
            began = time.process_time()
            fitted = model(Gibbs(**chains | lengths), features="exp", random_state=seed, **settings).fit(**data)
            seconds = time.process_time() - began
    found = fitted.diagnostics_
    return found.worst_rhat, found.smallest_ess, seconds, fitted.shape_


def main():
    """Medians over the seeds, and every run."""
    folder = os.environ.get("PLACKETT_DATA")
    print(f"\nMixing of rankings and choices, {DRAWS} draws after {TUNE} of tuning")
    print("  set                         moves      seed    R-hat   smallest ESS   core-seconds    ESS/s        a")
    for name in CHOSEN:
        model, settings, read = SETS[name]
        if folder is None and read is not travelmode:
            print(f"  {name} left out: set PLACKETT_DATA to the folder with the sets")
            continue
        data = read(Path(folder or "."))
        for moves in ("none", "exchange"):
            found = np.array([measure(model, settings, data, seed, moves=moves) for seed in SEEDS])
            for seed, row in zip(SEEDS, found, strict=True):
                _line(name, moves, seed, row)
            _line(name, moves, "mid", np.median(found, axis=0))


def _line(name, moves, seed, row):
    rhat, ess, seconds, shape = row
    print(
        f"  {name:28}{moves:10}{seed!s:>5}{rhat:9.3f}{ess:15.0f}{seconds:15.1f}{ess / seconds:9.2f}{shape:9.4f}",
        flush=True,
    )
