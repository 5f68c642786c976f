"""Sparse Bayesian multinomial logit (Appendix A), the paper's comparison model."""

from plackett.logit import stored as _stored  # noqa: F401  (registers the model with model files)
from plackett.logit.classifier import SparseLogitClassifier

__all__ = ["SparseLogitClassifier"]
