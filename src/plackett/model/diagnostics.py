"""Diagnostics of a run of chains: measures, verdict and advice.

R-hat and effective sample sizes come from `plackett.model.measures`, the error of averaged probabilities and its grades
from `plackett.model.verdict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.model.features import Features
from plackett.model.measures import measures
from plackett.model.race import Array
from plackett.model.verdict import (
    APART,
    BAD,
    FEWEST_CHAINS,
    FEWEST_DRAWS,
    FEWEST_INDEPENDENT,
    GOOD,
    PROBED,
    UNKNOWN,
    USABLE,
    USABLE_95,
    beyond,
    grade,
    in_numbers,
    precision_of,
    precision_of_independent,
)

if TYPE_CHECKING:
    from plackett.posterior.tiered_worths import TieredDraws
    from plackett.posterior.weights import Draws

Report = Callable[[float], None]  # called with the fraction of work done
NO_GAIN, LIMIT = "no gain", "limit"  # why an open-ended run ended before predictions settled
ENDS = ("", NO_GAIN, LIMIT)
TOO_FEW = f"whether predictions are settled is {UNKNOWN}: fewer than 4 draws a chain are too few"
MOVED = 0.01  # smallest deviation of a probability whose R-hat counts
SEVERAL = {"probability": "probabilities", "coef": "coefficients", "intercept": "intercepts", "mass": "masses"}
READ_RHAT, READ_ESS = 1.01, 400  # required to interpret a single quantity, such as a weight


@dataclass(frozen=True)
class Measures:
    """R-hat (NaN for a constant), bulk and tail ESS of a set of quantities."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array

    def __repr__(self) -> str:
        return f"Measures(shape={np.shape(self.rhat)}, {_summary(self.worst_rhat, self.smallest_ess)})"

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat; NaN (a constant) does not count."""
        return float(np.fmax.reduce(self.rhat, axis=None))

    @property
    def smallest_ess(self) -> float:
        """Smallest bulk or tail ESS."""
        return float(np.fmin.reduce([self.ess_bulk, self.ess_tail], axis=None))


@dataclass(frozen=True)
class Diagnostics:
    """Measures of a run by quantity, and how far its predictions may be trusted.

    Groups for weights: `.rhat`, `.ess_bulk` and `.ess_tail` of every ln λ̄_kj (K, p), `.shape_rhat` and so on of ln a
    (NaN if fixed), `.mass_rhat` and so on of ln Λ if ties identify it, `.tiers_rhat` and
    `.concentration_rhat` and so on of the number of tiers and ln α, `.probability_rhat` and so on of class
    probabilities (row, K) of some rows. For learned directions, whose components have no identity across chains:
    probabilities alone. For the sparse logit: `.coef.rhat` (K, d), `.intercept.rhat` (K,) and `.penalty.rhat` () of ln
    θ, and so on, and probabilities.

    Attributes
    ----------
    error, error_95, width, largest_error, apart : float
        As in `plackett.model.verdict.Precision`; NaN if unknown.
    prediction_rhat : float
        The largest R-hat of probabilities that the draws move by more than 0.01.
    chains, draws : int
        Number of chains, and of draws of each that were judged.
    ended : str
        Why an open-ended run ended before its predictions had settled, if it did: "no gain" or "limit".
    worst_probability, worst_class : array (chain, draw), int
        The probability that mixes worst, and its class.
    """

    groups: dict[str, Measures]
    error: float = np.nan
    error_95: float = np.nan
    width: float = np.nan
    largest_error: float = np.nan
    apart: float = np.nan
    prediction_rhat: float = np.nan
    chains: int = 0
    draws: int = 0
    ended: str = ""
    worst_probability: Array | None = field(default=None, compare=False, repr=False)
    worst_class: int | None = field(default=None, compare=False)
    independent: bool = False  # True if draws are independent: errors are exact, and there is no R-hat

    def __getattr__(self, name: str) -> Any:
        groups: dict[str, Measures] = vars(self).get("groups", {})
        if name in groups:
            return groups[name]
        group = next((group for group in groups if name.startswith(f"{group}_")), "weights")
        if group in groups and name.removeprefix(f"{group}_") in ("rhat", "ess_bulk", "ess_tail"):
            return getattr(groups[group], name.removeprefix(f"{group}_"))
        raise AttributeError(f"there is no {name!r} among {', '.join(groups)}")

    def __repr__(self) -> str:
        if self.independent:
            return f"Diagnostics of {self.draws:,} independent draws:\n  {self.sentence}"
        sizes = ", ".join(_counted(np.size(found.rhat), name) for name, found in self.groups.items())
        error = "" if np.isnan(self.error) else f", error {self.error:.3f}, R-hat up to {self.prediction_rhat:.2f}"
        worst = _summary(self.worst_rhat, self.smallest_ess)
        return f"Diagnostics of {sizes}:\n  predictions: {self.grade}{error}\n  {worst}"

    @property
    def predictive(self) -> bool:
        """True if only predictions were measured."""
        return list(self.groups) == ["probability"]

    @property
    def grade(self) -> str:
        """How far predictions may be trusted: settled, good enough to use, not to be trusted, or unknown."""
        return grade(self.error, self.error_95, self.width)

    @property
    def sentence(self) -> str:
        """Sentence on how far predictions may be trusted, with the numbers."""
        if self.grade == UNKNOWN:
            return f"whether predictions are settled is {UNKNOWN}: {self._why_unknown}"
        numbers = in_numbers(self.error, self.error_95, self.width)
        if self.grade == BAD:
            numbers += f"; {self._cause}"
        elif self.grade == GOOD and self.ended == NO_GAIN:
            numbers += "; twice as many draws would improve that little"
        elif self.grade == GOOD and self.ended == LIMIT:
            numbers += "; the run ended at its limit"
        return f"predictions are {self.grade}: {numbers}"

    @property
    def _why_unknown(self) -> str:
        if self.independent and self.draws < FEWEST_INDEPENDENT:
            return f"{self.draws} independent draws are too few, {FEWEST_INDEPENDENT} are the fewest"
        if 0 < self.chains < FEWEST_CHAINS and not self.independent:
            return "a single chain has none to be compared with"
        if 0 < self.draws < FEWEST_DRAWS and not self.independent:
            return f"{self.draws} draws a chain are too few, {FEWEST_DRAWS} are the fewest"
        return "it was not measured" if self.chains == 0 else "some probabilities of the draws are no numbers"

    @property
    def _cause(self) -> str:
        if self.independent:
            return "the draws are few"
        return "the chains disagree" if self.apart > APART else "the chains move slowly"

    @property
    def shortfall(self) -> float:
        """Factor by which chains or draws must increase until errors are good enough."""
        return float(np.fmax((self.error / USABLE) ** 2, (self.error_95 / USABLE_95) ** 2))

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat; NaN (a constant) does not count."""
        return float(np.fmax.reduce([found.worst_rhat for found in self.groups.values()]))

    @property
    def smallest_ess(self) -> float:
        """Smallest bulk or tail ESS."""
        return float(np.fmin.reduce([found.smallest_ess for found in self.groups.values()]))

    def scalars(self, classes: npt.NDArray[Any]) -> dict[str, tuple[str, Array]]:
        """Return the worst-mixing probability with a title for trace plots; empty for early model files."""
        if self.worst_probability is None:
            return {}
        return {"probability": (f"probability of {classes[self.worst_class]}", self.worst_probability)}


def _counted(n: int, name: str) -> str:
    """Return the number of quantities in words, such as 80 probabilities."""
    return f"{n:,} {name if n == 1 else SEVERAL.get(name, name)}"


def _summary(rhat: float, ess: float) -> str:
    return f"worst R-hat {rhat:.2f}, smallest effective sample size {ess:,.0f}"


def early_diagnostics(held: dict[str, Any]) -> dict[str, Any]:
    """Convert the diagnostics of model files of version 1, which had no groups, to fields of `Diagnostics`."""
    if "coef" in held:
        return {"groups": held}
    error, groups = held.get("error", np.nan), {}
    for group, prefix in (("weights", ""), ("shape", "shape_"), ("probability", "probability_")):
        found = [held[f"{prefix}{name}"] for name in ("rhat", "ess_bulk", "ess_tail") if f"{prefix}{name}" in held]
        if 0 < len(found) < 3:
            raise ValueError(f"there must be R-hat, bulk and tail effective sample sizes of {group}, got {len(found)}.")
        if found:
            groups[group] = Measures(*found)
    rhat = groups["probability"].worst_rhat if "probability" in groups else np.nan
    return {"groups": groups, "error": error, "largest_error": error, "prediction_rhat": rhat}


def diagnose(
    report: Report | None = None,
    returned: Callable[[Array], Array] | None = None,
    averaged: int | None = None,
    **quantities: Array | None,
) -> Diagnostics | None:
    """Diagnose named arrays (chain, draw, …); return None for fewer than 4 draws per chain.

    A quantity that is None was fixed. The error of predictions follows from ``probability`` (chain, draw, row, K):
    `returned` computes the contribution of each draw to predictions, and `averaged` is the number of draws that
    predictions average over, if not all. `report` is called with the fraction of work done.
    """
    given = {name: x for name, x in quantities.items() if x is not None}
    if any(x.shape[1] < 4 for x in given.values()):
        return None
    groups = dict.fromkeys(quantities, Measures(*np.full(3, np.nan)))
    done, total = 0, sum(x.size for x in given.values())

    def progress(n: float) -> None:
        if report is not None:
            report((done + n) / total)

    probability = quantities.get("probability")
    if probability is not None:  # R-hat for some rows, the error for all
        given["probability"] = probability[:, :, probed(probability.shape[2])]
    for name, x in given.items():
        groups[name] = Measures(*measures(x, progress))
        done += x.size
    if probability is None:
        return Diagnostics(groups)
    precision = precision_of(probability, None if returned is None else returned(probability), averaged)
    some = given["probability"]
    deviation, rhat = some.std(axis=(0, 1)), groups["probability"].rhat
    moved = np.where(deviation > MOVED, np.fmax(rhat, 1.0), 1.0)
    row, k = np.unravel_index(np.argmax(moved if moved.max() > 1.0 else deviation), moved.shape)
    return Diagnostics(
        groups,
        precision.error,
        precision.error_95,
        precision.width,
        precision.largest,
        precision.apart,
        prediction_rhat=float(moved.max()) if np.isfinite(rhat).any() else np.nan,
        chains=probability.shape[0],
        draws=probability.shape[1],
        worst_probability=some[:, :, row, k].copy(),
        worst_class=int(k),
    )


def independent(probability: Array) -> Diagnostics:
    """Diagnose independent draws (1, draw, …): standard error of averages, NaN for fewer than two draws."""
    draws, shape = probability.shape[1], probability.shape[2:]
    found = Measures(np.full(shape, np.nan), *(np.full(shape, float(draws)) for _ in range(2)))
    precision = precision_of_independent(probability[0])
    deviation = probability.std(axis=(0, 1))
    row, k = np.unravel_index(np.argmax(deviation), shape)
    return Diagnostics(
        {"probability": found},
        precision.error,
        precision.error_95,
        precision.width,
        precision.largest,
        precision.apart,
        chains=1,
        draws=draws,
        worst_probability=probability[:, :, row, k].copy(),
        worst_class=int(k),
        independent=True,
    )


def probed(n: int, most: int = PROBED) -> npt.NDArray[np.intp]:
    """Return at most `most` of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(most, n)).astype(np.intp)


def probed_probabilities(draws: Draws, features: Features) -> Array:
    """Class probabilities (chain, draw, row, K) of the rows used for diagnostics."""
    some = features[probed(features.shape[0])]
    probability = np.concatenate(list(draws.probabilities(some)))  # (row, chain·draw, class)
    return np.moveaxis(probability.reshape(some.shape[0], *draws.shape.shape, -1), 0, 2)


def diagnose_weights(
    draws: Draws, learned: bool, probability: Array, report: Report | None = None, averaged: int | None = None
) -> Diagnostics | None:
    """Diagnose ln λ̄, ln a if it is learned, ln Λ if the rows identify it, and probabilities."""
    mass: dict[str, Any] = {} if draws.log_mass is None else {"mass": draws.log_mass}
    mass |= {} if draws.parameters is None else {"parameters": draws.parameters}
    return diagnose(
        report,
        averaged=averaged,
        weights=draws.log_weights,
        shape=np.log(draws.shape) if learned else None,
        **mass,
        probability=probability,
    )


def diagnose_tiers(
    draws: TieredDraws, learned: bool, learned_concentration: bool, probability: Array, report: Report | None = None
) -> Diagnostics | None:
    """Diagnose worths in tiers as `diagnose_weights`, and the number of tiers and ln α."""
    of_response: dict[str, Any] = {} if draws.parameters is None else {"parameters": draws.parameters}
    return diagnose(
        report,
        weights=draws.log_weights,
        shape=np.log(draws.shape) if learned else None,
        tiers=draws.number_of_tiers().astype(np.float64),
        concentration=np.log(draws.concentration) if learned_concentration else None,
        **of_response,
        probability=probability,
    )


def single(found: Diagnostics, name: str = "Gibbs") -> str | None:
    """Say what single weights or coefficients lack to be interpreted, and the remedy; the fit itself may be fine."""
    lacking = _lacking(found, READ_ESS)
    if found.predictive or not lacking:
        return None
    what = "weights" if "weights" in found.groups else "coefficients"
    return f"to read single {what}, go on with {name}(target_ess={READ_ESS}): {' and '.join(lacking)}"


def shortcomings(found: Diagnostics, target: float | None = None) -> str | None:
    """Describe by how much a run falls short; None if it does not.

    Predictions must not be graded untrustworthy. With a target ESS, all quantities must reach it, with an R-hat of at
    most 1.01.
    """
    problems = [found.sentence] if found.grade == BAD else []
    return " and ".join(problems + ([] if target is None else _lacking(found, target))) or None


def _lacking(found: Diagnostics, target: float) -> list[str]:
    """List the criteria that single quantities fail."""
    problems = []
    if found.worst_rhat > READ_RHAT:
        rhat = beyond(found.worst_rhat, READ_RHAT, 2)
        problems.append(f"the largest R-hat is {rhat} (should be at most {READ_RHAT:g})")
    if found.smallest_ess < target:
        size = f"effective sample size{' of a probability' if found.predictive else ''}"
        few = beyond(found.smallest_ess, target, 0)
        problems.append(f"the smallest {size} is {few} (should be at least {target:g})")
    return problems


def agreement(found: Diagnostics | None, name: str = "Gibbs") -> tuple[bool | None, str]:
    """Return whether predictions may be used (None: unknown), and a sentence; `name` is the class with chain settings.

    `found` is None after too few draws.
    """
    if found is None:
        return None, TOO_FEW
    good = None if found.grade == UNKNOWN else found.grade != BAD
    return good, "; ".join(filter(None, (found.sentence, single(found, name))))


def advice(found: Diagnostics | None, settings: Any, end: str | None, other: str = "") -> str | None:
    """Advise the user when the run is not good enough: what is wrong, by how much, and what to do.

    Parameters
    ----------
    found : Diagnostics or None
        None after too few draws.
    settings : Gibbs or classifier
        Complete settings of the run.
    end : str or None
        Limit that ended the run too early, if any.
    other : str
        Remedies besides a longer run.
    """
    name = type(settings).__name__
    wrong = None if found is None else shortcomings(found, settings.target_ess)
    if found is None or (wrong is None and found.grade == UNKNOWN):
        alone = found is not None and found.chains < FEWEST_CHAINS
        remedy = f"{name}(chains=4)" if alone else more(settings, end, 250)
        return None if end is None else f"{TOO_FEW if found is None else found.sentence}. Try {remedy}."
    if wrong is None:
        return None
    if found.grade == BAD and found.apart > APART and settings.target_ess is None:
        chains = max(4 * settings.chains, min(int(np.ceil(found.shortfall)), 16) * settings.chains)
        remedy = f"{name}(chains={chains}), or {more(settings, end)}"
    else:
        remedy = more(settings, end)
    if settings.target_ess is None and end is None:
        remedy += ", or leave draws out, and chains go on until predictions are settled"
    also = single(found, name) if settings.target_ess is None else None
    return f"{wrong}. Try {remedy}{other}." + (f" {also[0].upper()}{also[1:]}." if also else "")


def more(settings: Any, end: str | None, at_least: int = 0) -> str:
    """Suggest four times the setting that ended the run: time, iterations or draws."""
    name = end or ("draws" if settings.target_ess is None else "max_draws")
    value = 4 * getattr(settings, name)
    number = f"{value:g}" if name == "max_seconds" else max(value, at_least)
    return f"{type(settings).__name__}({name}={number})"
