"""What is measured on a test part, and the calibration error of all test parts of a set together."""

import numpy as np

from plackett.output.scores import log_losses

SMALLEST = 1e-12  # of a probability inside the logarithm, alike for every method


def score(probability, codes):
    """Error, log-loss and Brier score; and of each row the largest probability and whether that class came.

    The Brier score is Σ_k (p_k − 1[y=k])², averaged over the rows: 0 to 2.
    """
    rows = np.arange(len(codes))
    hit = probability.argmax(axis=1) == codes
    came = np.zeros_like(probability)
    came[rows, codes] = 1.0
    return {
        "error": float(1 - hit.mean()),
        "log_loss": log_loss(probability, codes),
        "brier": float(((probability - came) ** 2).sum(axis=1).mean()),
        "confidence": [round(float(p), 5) for p in probability.max(axis=1)],
        "hit": "".join("01"[h] for h in hit.astype(int)),
    }


def log_loss(probability, codes):
    """Mean of −ln Pr(class that came)."""
    return float(log_losses(np.maximum(probability, SMALLEST), codes).mean())


def calibration_error(confidence, hit, bins=10):
    """Mean over equal-mass bins of |share of hits − mean confidence|, weighted by the rows in a bin.

    The confidence is the probability of the most probable class (top-label calibration). Rows of all splits of a set
    are pooled first: within one small test part the bins would be mostly noise, which can only add to this measure.
    """
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return float(sum(abs((hit[part] - confidence[part]).sum()) for part in parts) / len(order))


def calibration_noise(confidence, bins=10, repeats=200, seed=0):
    """The calibration error to be expected of these confidences if every one were right."""
    rng = np.random.default_rng(seed)
    hits = rng.random((repeats, len(confidence))) < confidence
    return float(np.mean([calibration_error(confidence, hit, bins) for hit in hits]))
