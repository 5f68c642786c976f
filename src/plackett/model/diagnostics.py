"""What was measured of a run of chains, the standard that it is held to, and what to say of it.

R-hat and effective sample sizes are those of `plackett.model.measures`.
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

if TYPE_CHECKING:
    from plackett.posterior.weights import Draws

Report = Callable[[float], None]  # takes the share of the work that is done
PROBED = 20  # rows whose probabilities are diagnosed
AGREED = 1.05  # R-hat of a probability that the draws move at all, in a run whose predictions have converged
PRECISE = 0.01  # and the Monte-Carlo error of its average; what moves less than this is right in any case
STANDARD = (
    f"Predictions have converged where R-hat of predicted probabilities is at most {AGREED:g} and the Monte-Carlo "
    f"error of their averages at most {PRECISE:g}, in {PROBED} rows spread over the data."
)
READ_RHAT, READ_ESS = 1.01, 400  # what is asked of a number that is read by itself, such as a weight


@dataclass(frozen=True)
class Measures:
    """R-hat (NaN for a constant), bulk and tail ESS of each of some quantities."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array

    def __repr__(self) -> str:
        return f"Measures(shape={np.shape(self.rhat)}, {_summary(self.worst_rhat, self.smallest_ess)})"

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return float(np.fmax.reduce(self.rhat, axis=None))

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        return float(np.fmin.reduce([self.ess_bulk, self.ess_tail], axis=None))


@dataclass(frozen=True)
class Diagnostics:
    """Measures of a run by the names of what was measured, and whether its predictions have converged.

    Of weights: `.rhat`, `.ess_bulk` and `.ess_tail` of every ln λ̄_kj (K, p), `.shape_rhat` and so on of ln a (NaN if
    fixed), `.mass_rhat` and so on of ln Λ where ties tell of it, `.probability_rhat` and so on of class probabilities
    (row, K) of some rows. Of learned directions, whose components have no identity across chains: of probabilities
    alone. Of the sparse logit: `.coef.rhat` (K, d), `.intercept.rhat` (K,) and `.penalty.rhat` () of ln θ, and so on,
    and of probabilities.
    """

    groups: dict[str, Measures]
    monte_carlo_error: float = np.nan  # of averaged probabilities, root mean square
    largest_error: float = np.nan  # of them all
    prediction_rhat: float = np.nan  # the largest of probabilities that the draws move at all
    worst_probability: Array | None = field(default=None, compare=False, repr=False)  # (chain, draw), and its class
    worst_class: int | None = field(default=None, compare=False)
    independent: bool = False  # whether draws are independent, so that the errors are exact and there is no R-hat

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
            return f"Diagnostics: {precision_of(self)}"
        sizes = ", ".join(f"{np.size(found.rhat)} {name}" for name, found in self.groups.items())
        measured = f", Monte-Carlo error up to {self.largest_error:.3f}" if np.isfinite(self.largest_error) else ""
        measured = f"{'' if self.converged else ' not'} converged: R-hat up to {self.prediction_rhat:.2f}{measured}"
        told = "" if np.isnan(self.prediction_rhat) else f"\n  predictions have{measured}"
        return f"Diagnostics ({sizes}):{told}\n  {_summary(self.worst_rhat, self.smallest_ess)}"

    @property
    def predictive(self) -> bool:
        """Whether nothing but predictions was measured."""
        return list(self.groups) == ["probability"]

    @property
    def converged(self) -> bool:
        """Whether predictions have: they agree between chains, and their averages are precise."""
        return not (self.prediction_rhat > AGREED or self.largest_error > PRECISE)

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return float(np.fmax.reduce([found.worst_rhat for found in self.groups.values()]))

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        return float(np.fmin.reduce([found.smallest_ess for found in self.groups.values()]))

    def scalars(self, classes: npt.NDArray[Any]) -> dict[str, tuple[str, Array]]:
        """The probability that mixes worst, with a title, for pictures of chains; early model files have none."""
        if self.worst_probability is None:
            return {}
        return {"probability": (f"probability of {classes[self.worst_class]}", self.worst_probability)}


def _summary(rhat: float, ess: float) -> str:
    return f"worst R-hat {rhat:.2f}, smallest effective sample size {ess:,.0f}"


def early_diagnostics(held: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Diagnostics` from those in model files of version 1, which had no groups."""
    if "coef" in held:
        return {"groups": held}
    error, groups = held.get("monte_carlo_error", np.nan), {}
    for group, prefix in (("weights", ""), ("shape", "shape_"), ("probability", "probability_")):
        found = [held[f"{prefix}{name}"] for name in ("rhat", "ess_bulk", "ess_tail") if f"{prefix}{name}" in held]
        if 0 < len(found) < 3:
            raise ValueError(f"there must be R-hat, bulk and tail effective sample sizes of {group}, got {len(found)}.")
        if found:
            groups[group] = Measures(*found)
    rhat = groups["probability"].worst_rhat if "probability" in groups else np.nan
    return {"groups": groups, "monte_carlo_error": error, "largest_error": error, "prediction_rhat": rhat}


def diagnose(report: Report | None = None, **quantities: Array | None) -> Diagnostics | None:
    """Diagnostics of arrays (chain, draw, …) by their names; None if there are fewer than 4 draws a chain.

    A quantity that is None was fixed. Of ``probability`` (chain, draw, row, K) the error of the averages is told too.
    `report` is told the share of the work that is done.
    """
    given = {name: x for name, x in quantities.items() if x is not None}
    if any(x.shape[1] < 4 for x in given.values()):
        return None
    groups = dict.fromkeys(quantities, Measures(*np.full(3, np.nan)))
    done, total = 0, sum(x.size for x in given.values())

    def told(n: float) -> None:
        if report is not None:
            report((done + n) / total)

    for name, x in given.items():
        groups[name] = Measures(*measures(x, told))
        done += x.size
    probability = quantities.get("probability")
    if probability is None:
        return Diagnostics(groups)
    deviation, found = probability.std(axis=(0, 1)), groups["probability"]
    errors = deviation / np.sqrt(found.ess_bulk)
    moved = np.where(deviation > PRECISE, np.fmax(found.rhat, 1.0), 1.0)
    row, k = np.unravel_index(np.argmax(moved if moved.max() > 1.0 else errors), errors.shape)
    error = float(np.sqrt((errors**2).mean()))
    return Diagnostics(groups, error, float(errors.max()), float(moved.max()), probability[:, :, row, k].copy(), int(k))


def independent(probability: Array) -> Diagnostics:
    """Diagnostics of independent draws (1, draw, …): the standard error of averages, NaN of a single draw."""
    draws = probability.shape[1]
    shape = probability.shape[2:]
    found = Measures(np.full(shape, np.nan), *(np.full(shape, float(draws)) for _ in range(2)))
    if draws < 2:
        return Diagnostics({"probability": found}, independent=True)
    errors = probability[0].std(axis=0, ddof=1) / np.sqrt(draws)
    row, k = np.unravel_index(np.argmax(errors), shape)
    error, largest = float(np.sqrt((errors**2).mean())), float(errors.max())
    worst = probability[:, :, row, k].copy()
    return Diagnostics({"probability": found}, error, largest, np.nan, worst, int(k), independent=True)


def probed(n: int) -> npt.NDArray[np.intp]:
    """The rows, of so many, whose probabilities are diagnosed."""
    return np.linspace(0, n - 1, min(PROBED, n)).astype(np.intp)


def probed_probabilities(draws: Draws, features: Features) -> Array:
    """Class probabilities (chain, draw, row, K) of the rows that are diagnosed."""
    some = features[probed(features.shape[0])]
    probability = np.concatenate(list(draws.probabilities(some)))  # (row, chain·draw, class)
    return np.moveaxis(probability.reshape(some.shape[0], *draws.shape.shape, -1), 0, 2)


def diagnose_weights(
    draws: Draws, learned: bool, probability: Array, report: Report | None = None
) -> Diagnostics | None:
    """Of ln λ̄, of ln a where it is learned, of ln Λ where the rows know it, and of probabilities."""
    mass = {} if draws.log_mass is None else {"mass": draws.log_mass}
    mass |= {} if draws.parameters is None else {"parameters": draws.parameters}
    return diagnose(
        report,
        weights=draws.log_weights,
        shape=np.log(draws.shape) if learned else None,
        **mass,
        probability=probability,
    )


def predictions(found: Diagnostics) -> str:
    """Whether predictions have converged, with the numbers, in half a sentence."""
    rhat, error = f"R-hat of probabilities up to {found.prediction_rhat:.2f}", found.largest_error
    if np.isnan(found.prediction_rhat):
        return "whether predictions have converged was not measured"
    if found.converged:
        precise = "" if np.isnan(error) else f", Monte-Carlo error up to {error:.3f}"
        return f"predictions have converged ({rhat}{precise})"
    return (
        f"predictions have not converged ({rhat}, should be at most {AGREED:g}; Monte-Carlo error up to {error:.3f}, "
        f"should be at most {PRECISE:g})"
    )


def precision_of(found: Diagnostics) -> str:
    """The standard error of averages of independent draws, in words."""
    draws = f"{found.smallest_ess:,.0f} independent draws"
    if np.isnan(found.largest_error):
        return f"{draws}, too few to tell how precise averages are"
    return (
        f"{draws} that approximate the posterior; standard error of averaged probabilities "
        f"{found.monte_carlo_error:.3f}, up to {found.largest_error:.3f}"
    )


def single(found: Diagnostics, name: str = "Gibbs") -> str | None:
    """What weights or coefficients lack where they are read one by one, and the remedy: no fault of the fit."""
    good = found.worst_rhat <= READ_RHAT and found.smallest_ess >= READ_ESS
    if found.predictive or good:
        return None
    what = "weights" if "weights" in found.groups else "coefficients"
    return (
        f"to read single {what}, with R-hat up to {found.worst_rhat:.2f} and effective sample sizes from "
        f"{found.smallest_ess:,.0f}, go on with {name}(target_ess={READ_ESS})"
    )


def shortcomings(found: Diagnostics, target: float | None = None) -> str | None:
    """What is wrong with a run, and by how much; None where nothing is: predictions are to converge.

    Where effective draws were asked for, they are to be had, of all that was measured, and R-hat is to be 1.01.
    """
    problems = [] if found.converged else [predictions(found)]
    if target is not None and found.worst_rhat > READ_RHAT:
        problems.append(f"the largest R-hat is {found.worst_rhat:.2f} (should be at most {READ_RHAT:g})")
    if target is not None and found.smallest_ess < target:
        size = f"effective sample size{' of a probability' if found.predictive else ''}"
        problems.append(f"the smallest {size} is {found.smallest_ess:.0f} (should be at least {target:g})")
    return " and ".join(problems) or None


def agreement(found: Diagnostics | None, name: str = "Gibbs") -> tuple[bool | None, str]:
    """Whether predictions have converged (None: not measured), and the numbers; `name` is who has settings of chains.

    None are the diagnostics of too few draws.
    """
    if found is not None and found.independent:
        return None, precision_of(found)
    if found is None:
        return False, "too few draws to tell whether predictions have converged"
    good = None if np.isnan(found.prediction_rhat) else found.converged
    return good, "; ".join(filter(None, (predictions(found), single(found, name))))


def advice(found: Diagnostics | None, settings: Any, end: str | None, other: str = "") -> str | None:
    """A sentence for the user when the run is not good enough: what is wrong, by how much, and what to do.

    Parameters
    ----------
    found : Diagnostics or None
        None where there are too few draws to tell.
    settings : Gibbs or classifier
        Those of the run, complete.
    end : str or None
        The limit that ended the run before there was enough, if one did.
    other : str
        What may help besides a longer run.
    """
    if found is None:
        return f"fewer than 4 draws a chain are too few to check convergence. Try {more(settings, end, 250)}."
    wrong = shortcomings(found, settings.target_ess)
    if wrong is None:
        return None
    longer = more(settings, end)
    if settings.target_ess is None and end is None:
        longer += ", or leave draws out, and chains go on until predictions have converged"
    also = single(found, type(settings).__name__) if settings.target_ess is None else None
    return f"{wrong}. Try {longer}{other}." + (f" {also[0].upper()}{also[1:]}." if also else "")


def more(settings: Any, end: str | None, at_least: int = 0) -> str:
    """Four times what the run was given of that which ended it: time, iterations, or draws."""
    name = end or ("draws" if settings.target_ess is None else "max_draws")
    value = 4 * getattr(settings, name)
    number = f"{value:g}" if name == "max_seconds" else max(value, at_least)
    return f"{type(settings).__name__}({name}={number})"
