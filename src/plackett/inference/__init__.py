"""The three inferences: a small driver each around steps of K×p mathematics."""

from plackett.inference.em import EM
from plackett.inference.gibbs import Gibbs
from plackett.inference.variational import Variational

__all__ = ["EM", "Gibbs", "Variational"]
