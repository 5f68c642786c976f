"""Sparse Bayesian multinomial logit (Appendix A), the model that the paper compares with."""

from plackett.logit.classifier import SparseLogitClassifier

__all__ = ["SparseLogitClassifier"]
