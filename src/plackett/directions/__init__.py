"""Learned directions: features W_j(x) = exp(x·β_j) whose β_j are learned with the weights."""

from plackett.directions.settings import LearnedDirections
from plackett.features.gates import Gates

__all__ = ["Gates", "LearnedDirections"]
