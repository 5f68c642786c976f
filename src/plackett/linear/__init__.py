"""Conditional logit: rates r = e^{x·β} with a common β, its maximum likelihood and its posterior."""

from plackett.linear.utility import LinearUtility

__all__ = ["LinearUtility"]
