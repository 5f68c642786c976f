"""Penalised conditional logit, exploded for rankings, with interactions of persons and alternatives: the rival.

Utilities are linear in columns of each entry, u_e = D_e·θ. An outcome is an order of the entries, or its top; a choice
is the top of one. The L2 penalty is that with the highest held-out log-likelihood, persons held out together.
"""

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import GroupKFold

PENALTIES = 10.0 ** np.arange(-3, 4.5)
FOLDS = 5


class Padded:
    """Entries of situations as (T, m, q), those placed first, in order; `placed` says how many, `there` which exist."""

    def __init__(self, columns, start, placed):
        sizes = np.diff(start)
        self.there = np.arange(sizes.max()) < sizes[:, None]
        self.columns = np.zeros((*self.there.shape, columns.shape[1]))
        self.columns[self.there] = columns
        self.placed = np.minimum(placed, sizes - 1)

    def rows(self, which):
        """Some of the situations."""
        part = object.__new__(Padded)
        part.there, part.columns, part.placed = self.there[which], self.columns[which], self.placed[which]
        return part

    def values(self, theta):
        """ln Pr(outcome) of each situation, and its gradient in the utilities."""
        utility = np.where(self.there, self.columns @ theta, -np.inf)
        weight = np.exp(utility - utility.max(axis=1, keepdims=True))
        left = np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
        stage = np.arange(weight.shape[1]) < self.placed[:, None]
        with np.errstate(divide="ignore"):
            value = np.where(stage, np.log(weight) - np.log(np.where(stage, left, 1.0)), 0.0).sum(axis=1)
        waited = np.cumsum(np.where(stage, 1.0 / np.where(stage, left, 1.0), 0.0), axis=1)
        return value, stage - weight * waited


def fit(data, penalty, free):
    """θ at the highest penalised log-likelihood; the first `free` columns (constants) have no penalty."""
    charge = np.where(np.arange(data.columns.shape[2]) < free, 1e-6, penalty)

    def loss(theta):
        value, slope = data.values(theta)
        gradient = np.einsum("tm,tmq->q", slope, data.columns, optimize=True)
        return 0.5 * charge @ theta**2 - value.sum(), charge * theta - gradient

    return minimize(loss, np.zeros(len(charge)), jac=True, method="L-BFGS-B", options={"maxiter": 500}).x


def tuned(data, groups, free):
    """θ with the penalty that held-out groups prefer, and that penalty."""
    folds = list(GroupKFold(FOLDS).split(groups, groups=groups))
    held_out = [
        np.mean(np.concatenate([data.rows(test).values(fit(data.rows(train), c, free))[0] for train, test in folds]))
        for c in PENALTIES
    ]
    best = PENALTIES[int(np.argmax(held_out))]
    return fit(data, best, free), best
