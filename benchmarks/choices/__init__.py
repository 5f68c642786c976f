"""Choices and rankings of unseen persons: log-loss of our chooser and ranker beside penalised logit."""
