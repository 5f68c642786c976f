"""Inferences: each is a small driver around steps of K×p mathematics."""

from plackett.inference.bootstrap import Bootstrap
from plackett.inference.em import EM
from plackett.inference.gibbs import Gibbs
from plackett.inference.variational import Variational

__all__ = ["EM", "Bootstrap", "Gibbs", "Variational"]
