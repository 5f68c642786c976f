"""Error, log-loss, Brier score, calibration error and time against the classifiers one would use otherwise.

Fourteen real sets, half of each (or of a part of it) for training, ten splits, five on the large sets. Whatever a
method tunes, it tunes inside the training part, by log-loss on the same folds. Sets that were looked at while settings
of the learned directions were chosen are marked; the others are run once, at the end.
"""
