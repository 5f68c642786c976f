"""Bayesian Plackett–Luce regression (Archambeau & Caron, UAI 2012) as a scikit-learn classifier.

What is exported is imported when it is first asked for: the command line has to be there, to hear Ctrl-C, before that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plackett.classifier import PlackettLuceClassifier
    from plackett.inference import EM, Gibbs, Variational
    from plackett.logit import SparseLogitClassifier
    from plackett.modelfile import load
    from plackett.path import regularization_path
    from plackett.table import TableEncoder

__all__ = [
    "EM",
    "Gibbs",
    "PlackettLuceClassifier",
    "SparseLogitClassifier",
    "TableEncoder",
    "Variational",
    "load",
    "regularization_path",
]
__version__ = "0.1.0"

_HOME = {
    "EM": "inference",
    "Gibbs": "inference",
    "PlackettLuceClassifier": "classifier",
    "SparseLogitClassifier": "logit",
    "TableEncoder": "table",
    "Variational": "inference",
    "load": "modelfile",
    "regularization_path": "path",
}
_MODULES = ("datasets", "directions", "explain", "features", "plots", "priors", "report", "simulate")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"plackett.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'plackett' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"plackett.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
