"""Fit, save and load a model of each kind with the installed package; choices where pandas is installed."""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import plackett
from plackett import ChoiceSets, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings
from plackett.datasets.known import TABLES

place = Path(plackett.__file__)
assert place.is_relative_to(sys.prefix), f"the package is imported from {place} instead of the environment"
assert (place.parent / "py.typed").is_file()


def check(model, data, answer):
    """The fitted model and its file predict alike."""
    model.fit(data, answer)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.plk")
        loaded = plackett.load(f"{folder}/model.plk")
    np.testing.assert_array_equal(loaded.predict_proba(data), model.predict_proba(data))


rng = np.random.default_rng(0)
label = np.repeat(["a", "b"], 20)
check(PlackettLuceClassifier("em"), rng.normal(size=(40, 2)) + (label == "b")[:, None], label)
votes = Rankings.from_pairs(["a", "b", "a", "c"], ["b", "a", "c", "a"], counts=[3, 1, 4, 2])
check(PlackettLuceRanker("em", shape=1), None, votes)

if find_spec("pandas"):
    import pandas as pd

    cost = pd.DataFrame({"cost_bus": rng.random(40), "cost_car": rng.random(40)})
    trips = ChoiceSets.from_wide(cost, alternatives=["bus", "car"], attributes=["cost"])
    chosen = np.where(rng.random(40) < 0.5, "bus", "car")
    check(PlackettLuceChooser("em", features="linear"), trips, chosen)
    for name, table in TABLES.items():
        if table.packaged:
            plackett.datasets.load(name)

print(f"plackett {plackett.__version__} works with Python {sys.version.split()[0]} and NumPy {np.__version__}")
