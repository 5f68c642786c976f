"""Learned directions: features W_j(x) = exp(x·β_j) whose β_j are learned with the weights."""

from plackett.directions.gates import Gates
from plackett.directions.learning import LearnedDirections

__all__ = ["Gates", "LearnedDirections"]
