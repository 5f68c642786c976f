"""Random tastes: r_ta = exp(x_ta·β_i) with a law of β_i over the population (mixed logit)."""

from plackett.tastes.settings import Tastes

__all__ = ["Tastes"]
