"""Latent classes: persons belong to segments, each with coefficients or worths of its own."""

from plackett.segments.segments import Segments

__all__ = ["Segments"]
