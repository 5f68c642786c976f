"""Conditional logit: maximum likelihood and draws, beside SciPy's BFGS and, where it is installed, xlogit.

All fit the same columns of the same situations. ``PLACKETT_DATA`` names a folder with ``swissmetro.csv.gz``; without it
simulated situations alone are fitted.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from benchmarks.published.sources import data_folder, swissmetro
from benchmarks.timing import median_seconds
from plackett import ChoiceSets, Gibbs, PlackettLuceChooser
from plackett.linear import LinearUtility
from plackett.simulate import choices

SITUATIONS, COLUMNS, ALTERNATIVES, REPEATS = 5000, 30, 5, 5
SMALLEST = {"SITUATIONS": 60, "COLUMNS": 3, "REPEATS": 1}


def simulated():
    """Choices between alternatives that are described by normal columns."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS)]
    frame = pd.DataFrame(rng.normal(size=(SITUATIONS * ALTERNATIVES, COLUMNS)), columns=names)
    frame["t"] = np.repeat(np.arange(SITUATIONS), ALTERNATIVES)
    frame["a"] = np.tile([f"a{k}" for k in range(ALTERNATIVES)], SITUATIONS)
    X = ChoiceSets.from_long(frame, situation="t", alternative="a", attributes=names)
    return X, choices(X, X.values @ rng.normal(0, 0.3, COLUMNS), rng=1), LinearUtility(constants=False)


def plain(X, y, settings):
    """Long columns as an analyst without this package makes them: constants but of the base, and attributes."""
    labels = list(X.alternatives)
    marks = [k for k, label in enumerate(labels) if settings.constants and label != settings.base]
    columns = np.column_stack([X.alternative[:, None] == marks, X.values]).astype(float)
    return columns, X.alternatives[X.alternative] == np.asarray(y)[X.situation]


def by_scipy(columns, start, chosen):
    """BFGS on the negative log-likelihood."""

    def objective(beta):
        utility = columns @ beta
        utility -= np.repeat(np.maximum.reduceat(utility, start), length)
        rates = np.exp(utility)
        total = np.add.reduceat(rates, start)
        p = rates / np.repeat(total, length)
        return -(utility[chosen].sum() - np.log(total).sum()), -((chosen - p) @ columns)

    length = np.diff(np.append(start, len(columns)))
    return minimize(objective, np.zeros(columns.shape[1]), jac=True, method="BFGS").fun


def by_xlogit(X, columns, chosen):
    """The same with xlogit's multinomial logit; None where it is not installed."""
    try:
        from xlogit import MultinomialLogit
    except ImportError:
        return None
    T, A = len(X), len(X.alternatives)
    full = np.zeros((T * A, columns.shape[1]))
    place = X.situation * A + X.alternative
    full[place] = columns
    there, y = np.zeros(T * A), np.zeros(T * A)
    there[place], y[place] = 1, chosen
    names = [f"c{j}" for j in range(columns.shape[1])]
    rows = {"alts": np.tile(np.arange(A), T), "ids": np.repeat(np.arange(T), A), "avail": there, "verbose": 0}
    return lambda: MultinomialLogit().fit(X=full, y=y, varnames=names, **rows)


def measure(name, X, y, settings):
    """Seconds of each, and what ours is beside the fastest other."""
    columns, chosen = plain(X, y, settings)
    found = PlackettLuceChooser("em", features=settings).fit(X, y)
    seconds = {
        "plackett, EM": median_seconds(lambda: PlackettLuceChooser("em", features=settings).fit(X, y), REPEATS),
        "SciPy, BFGS": median_seconds(lambda: by_scipy(columns, X.start[:-1], chosen), REPEATS),
    }
    other = by_xlogit(X, columns, chosen)
    if other is not None:
        seconds["xlogit"] = median_seconds(other, REPEATS)
    drawn = Gibbs(draws=250, tune=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PlackettLuceChooser(drawn, features=settings, random_state=0).fit(X, y)
        seconds["plackett, Gibbs"] = median_seconds(
            lambda: PlackettLuceChooser(drawn, features=settings, random_state=0).fit(X, y), 1
        )
    value, ours = found.log_likelihood(X, y).sum(), seconds["plackett, EM"]
    print(f"{name}: {len(X):,} situations, {columns.shape[1]} columns, log-likelihood {value:.2f}")
    for what, took in seconds.items():
        print(f"  {what:<16} {took:8.3f} s   EM takes {ours / took:.2f} of that")
    print(f"  R-hat of 4 × 250 draws up to {fitted.coefficients()['rhat'].max():.3f}")


def main():
    """Print the table."""
    measure("simulated", *simulated())
    folder = data_folder()
    if folder and (folder / "swissmetro.csv.gz").exists():
        measure("swissmetro", *swissmetro()[:2], LinearUtility(base="swissmetro"))


if __name__ == "__main__":
    main()
