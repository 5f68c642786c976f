"""Bayesian Plackett–Luce models of classes (Archambeau & Caron, UAI 2012), rankings and choices for scikit-learn.

Exported names are imported on first use, so that the command line can handle Ctrl-C before these imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plackett.asking import next_pairs
    from plackett.chooser import PlackettLuceChooser
    from plackett.classifier import PlackettLuceClassifier
    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.rankings import Rankings
    from plackett.data.table import TableEncoder
    from plackett.explaining import effects, explain, win_probabilities
    from plackett.inference import EM, Bootstrap, Gibbs, Variational
    from plackett.loading import load
    from plackett.logit import SparseLogitClassifier
    from plackett.ranker import PlackettLuceRanker
    from plackett.regularization import regularization_path
    from plackett.segments import Segments
    from plackett.tastes import Tastes
    from plackett.tiers import Tiers

__all__ = [
    "EM",
    "Bootstrap",
    "ChoiceSets",
    "Gibbs",
    "PlackettLuceChooser",
    "PlackettLuceClassifier",
    "PlackettLuceRanker",
    "Rankings",
    "Segments",
    "SparseLogitClassifier",
    "TableEncoder",
    "Tastes",
    "Tiers",
    "Variational",
    "effects",
    "explain",
    "load",
    "next_pairs",
    "regularization_path",
    "win_probabilities",
]
__version__ = "1.0.0rc1"

_HOME = {
    "Bootstrap": "inference",
    "ChoiceSets": "data.choice_sets",
    "EM": "inference",
    "Gibbs": "inference",
    "PlackettLuceChooser": "chooser",
    "PlackettLuceClassifier": "classifier",
    "PlackettLuceRanker": "ranker",
    "Rankings": "data.rankings",
    "Segments": "segments",
    "SparseLogitClassifier": "logit",
    "TableEncoder": "data.table",
    "Tastes": "tastes",
    "Tiers": "tiers",
    "Variational": "inference",
    "effects": "explaining",
    "explain": "explaining",
    "load": "loading",
    "next_pairs": "asking",
    "regularization_path": "regularization",
    "win_probabilities": "explaining",
}
_MODULES = ("datasets", "directions", "features", "paper", "plots", "priors", "report", "simulate")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"plackett.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'plackett' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"plackett.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
