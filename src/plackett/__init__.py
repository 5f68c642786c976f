"""Bayesian Plackett–Luce regression (Archambeau & Caron, UAI 2012) as a scikit-learn classifier."""

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
