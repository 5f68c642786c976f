"""Non-negative feature maps."""

from plackett.features.exp import ExpFeatures

__all__ = ["ExpFeatures"]
