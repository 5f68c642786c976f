"""Conditional logit: rates r = e^{x·β} with one β for all, its maximum likelihood and its posterior."""

from plackett.linear.utility import LinearUtility

__all__ = ["LinearUtility"]
