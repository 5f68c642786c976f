"""Exact moves that let the sampler cross between modes when a is learned."""
