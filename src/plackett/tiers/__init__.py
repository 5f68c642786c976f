"""Tiers: items share worths under a Dirichlet process; settings, moves of the partition, chains."""

from plackett.tiers.tiers import Tiers

__all__ = ["Tiers"]
