"""Posteriors of fitted models, and how far they are to be trusted."""

from plackett.posterior.base import Posterior
from plackett.posterior.weights import Draws, Gammas, GIGs, Point

__all__ = ["Draws", "GIGs", "Gammas", "Point", "Posterior"]
