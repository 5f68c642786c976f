"""Do the chains agree, and how many independent draws are they worth?

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter & Bürkner
2021), for all weights at once: the same numbers as ArviZ, without the seconds that importing it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from plackett.engines import Features
from plackett.model.race import Array

if TYPE_CHECKING:
    from plackett.posterior.weights import Draws

PROBED = 20  # rows whose probabilities are diagnosed
AGREED = 1.05  # R-hat of a probability that the draws move at all, in a run whose predictions have converged
PRECISE = 0.01  # and the Monte-Carlo error of its average; what moves less than this is right in any case


def split(x: Array) -> Array:
    """Each chain cut in half: (…, chain, draw) to (…, 2·chain, draw // 2)."""
    half = x.shape[-1] // 2
    return np.concatenate([x[..., :half], x[..., -half:]], axis=-2)


def z_scores(x: Array) -> Array:
    """Normal scores of the ranks over all chains of each quantity."""
    flat = x.reshape(*x.shape[:-2], -1)
    n = flat.shape[-1]
    order = np.argsort(flat, axis=-1)
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, n + 1), axis=-1)
    ordered = np.take_along_axis(flat, order, axis=-1)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(axis=-1)
    if tied.any():
        ranks[tied] = rankdata(flat[tied], axis=-1)
    scores: Array = ndtri((ranks - 0.375) / (n + 0.25)).reshape(x.shape)
    return scores


def plain_rhat(x: Array) -> Array:
    """Root of the ratio of total to within-chain variance."""
    n = x.shape[-1]
    within = x.var(axis=-1, ddof=1).mean(axis=-1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.sqrt((n - 1) / n + between / within)
    return ratio


def rhat_and_bulk_ess(x: Array) -> tuple[Array, Array]:
    """Rank-normalised split R-hat, the larger of bulk and folded (NaN for a constant), and the bulk ESS."""
    x = split(x)
    scores = z_scores(x)
    folded = np.abs(x - np.median(x, axis=(-2, -1), keepdims=True))
    return np.fmax(plain_rhat(scores), plain_rhat(z_scores(folded))), plain_ess(scores)


def plain_ess(x: Array) -> Array:
    """Effective sample size by Geyer's initial monotone sequence over all chains of each quantity."""
    n_chains, n = x.shape[-2:]
    centred = x - x.mean(axis=-1, keepdims=True)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, size, axis=-1)
    autocovariance = irfft(np.abs(spectrum) ** 2, size, axis=-1)[..., :n].mean(axis=-2) / n
    within = autocovariance[..., :1] * n / (n - 1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)[..., None] if n_chains > 1 else 0.0
    total = autocovariance[..., :1] + between
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - autocovariance) / total
    rho[..., 0] = 1.0
    n_pairs = max((n - 1) // 2, 1)
    pairs = rho[..., : 2 * n_pairs].reshape(*rho.shape[:-1], n_pairs, 2).sum(axis=-1)
    positive = np.logical_and.accumulate(pairs > 0, axis=-1)
    stop = np.minimum(positive.sum(axis=-1, keepdims=True), n_pairs - 1)
    monotone = np.where(np.arange(n_pairs) < stop, np.minimum.accumulate(pairs, axis=-1), 0.0)
    first_left_out = np.take_along_axis(rho, 2 * stop, axis=-1)[..., 0]
    tau = -1 + 2 * monotone.sum(axis=-1) + np.maximum(first_left_out, 0.0)
    ess: Array = n_chains * n / np.maximum(tau, 1 / np.log10(n_chains * n))
    constant = np.ptp(x, axis=(-2, -1)) < np.finfo(float).resolution
    return np.where(constant, float(n_chains * n), ess)


def tail_ess(x: Array) -> Array:
    """The smaller of the effective sample sizes of the 5 % and 95 % quantiles."""
    low, high = np.quantile(x, [0.05, 0.95], axis=(-2, -1))[..., None, None]
    return np.minimum(plain_ess(split((x <= low) * 1.0)), plain_ess(split((x <= high) * 1.0)))


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
    """Measures of a run by the names of what was measured, and the error of averaged probabilities.

    Of weights: `.rhat`, `.ess_bulk` and `.ess_tail` of every ln λ̄_kj (K, p), `.shape_rhat` and so on of ln a (NaN if
    fixed), `.mass_rhat` and so on of ln Λ where ties tell of it, `.probability_rhat` and so on of class probabilities
    (row, K) of some rows. Of learned directions, whose components have no identity across chains: of probabilities
    alone. Of the sparse logit: `.coef.rhat` (K, d), `.intercept.rhat` (K,) and `.penalty.rhat` () of ln θ, and so on.
    """

    groups: dict[str, Measures]
    monte_carlo_error: float = np.nan  # of averaged probabilities, root mean square
    largest_error: float = np.nan  # of them all
    prediction_rhat: float = np.nan  # the largest of probabilities that the draws move at all

    def __getattr__(self, name: str) -> Any:
        groups: dict[str, Measures] = vars(self).get("groups", {})
        if name in groups:
            return groups[name]
        group = next((group for group in groups if name.startswith(f"{group}_")), "weights")
        if group in groups and name.removeprefix(f"{group}_") in ("rhat", "ess_bulk", "ess_tail"):
            return getattr(groups[group], name.removeprefix(f"{group}_"))
        raise AttributeError(f"there is no {name!r} among {', '.join(groups)}")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{np.size(found.rhat)} {name}" for name, found in self.groups.items())
        error = f", error of averages {self.largest_error:.3f}" if self.predictive else ""
        return f"Diagnostics ({sizes}):\n  {_summary(self.worst_rhat, self.smallest_ess)}{error}"

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


def _summary(rhat: float, ess: float) -> str:
    return f"worst R-hat {rhat:.2f}, smallest effective sample size {ess:,.0f}"


def stored_diagnostics(**fields: Any) -> Diagnostics:
    """Diagnostics from what a model file holds; the first files had other records for each kind of model."""
    if "groups" in fields:
        return Diagnostics(**fields)
    if "coef" in fields:
        return Diagnostics(fields)
    error = fields.pop("monte_carlo_error", np.nan)
    groups: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        group = next((group for group in ("shape", "probability") if name.startswith(f"{group}_")), "weights")
        groups.setdefault(group, {})[name.removeprefix(f"{group}_")] = value
    made = {group: Measures(**found) for group, found in groups.items()}
    rhat = made["probability"].worst_rhat if "probability" in made else np.nan
    return Diagnostics(made, error, error, rhat)


def measures(x: Array) -> tuple[Array, Array, Array]:
    """R-hat, bulk ESS and tail ESS of an array (chain, draw, …), a manageable number of quantities at a time."""
    quantities = np.moveaxis(x.reshape(*x.shape[:2], -1), 2, 0)
    step = max(1, (1 << 22) // (x.shape[0] * x.shape[1]))
    parts = [quantities[start : start + step] for start in range(0, len(quantities), step)]
    found = [(*rhat_and_bulk_ess(part), tail_ess(part)) for part in parts]
    rhats, bulks, tails = (np.concatenate(column).reshape(x.shape[2:]) for column in zip(*found, strict=True))
    return rhats, bulks, tails


def diagnose(**quantities: Array | None) -> Diagnostics | None:
    """Diagnostics of arrays (chain, draw, …) by their names; None if there are fewer than 4 draws a chain.

    A quantity that is None was fixed. Of ``probability`` (chain, draw, row, K) the error of the averages is told too.
    """
    if any(x is not None and x.shape[1] < 4 for x in quantities.values()):
        return None
    fixed = Measures(*np.full(3, np.nan))
    groups = {name: fixed if x is None else Measures(*measures(x)) for name, x in quantities.items()}
    probability = quantities.get("probability")
    if probability is None:
        return Diagnostics(groups)
    deviation, found = probability.std(axis=(0, 1)), groups["probability"]
    errors = deviation / np.sqrt(found.ess_bulk)
    rhat = np.fmax.reduce(found.rhat[deviation > PRECISE], initial=1.0)
    return Diagnostics(groups, float(np.sqrt((errors**2).mean())), float(errors.max()), float(rhat))


def probed(n: int) -> npt.NDArray[np.intp]:
    """The rows, of so many, whose probabilities are diagnosed."""
    return np.linspace(0, n - 1, min(PROBED, n)).astype(np.intp)


def diagnose_weights(
    draws: Draws, learned: bool, features: Features, probe: Callable[[Any], Array] | None = None
) -> Diagnostics | None:
    """Of ln λ̄, of ln a where it is learned, of ln Λ where the rows know it, and of probabilities.

    Probabilities (row, chain·draw, class) are those of the groups in some rows, or what `probe` makes of the draws.
    """
    if probe is None:
        probability = np.concatenate(list(draws.probabilities(features[probed(features.shape[0])])))
    else:
        probability = probe(draws)
    mass = {} if draws.log_mass is None else {"mass": draws.log_mass}
    return diagnose(
        weights=draws.log_weights,
        shape=np.log(draws.shape) if learned else None,
        **mass,
        probability=np.moveaxis(probability.reshape(len(probability), *draws.shape.shape, -1), 0, 2),
    )


def shortcomings(found: Diagnostics, target: float | None = None) -> str | None:
    """What is wrong with a run, and by how much; None where nothing is.

    Predictions are to converge; of weights and coefficients, which are read one by one, more is asked.
    """
    wanted = 400 if target is None else target
    problems = []
    if not found.converged:
        problems.append(
            f"predictions have not converged (R-hat of probabilities up to {found.prediction_rhat:.2f}, should be at "
            f"most {AGREED:g}; Monte-Carlo error up to {found.largest_error:.3f}, should be at most {PRECISE:g})"
        )
    if not found.predictive and found.worst_rhat > 1.01:
        problems.append(f"the chains have not mixed (R-hat up to {found.worst_rhat:.2f}, should be at most 1.01)")
    if found.smallest_ess < wanted and not (found.predictive and target is None):
        size = f"effective sample size{' of a probability' if found.predictive else ''}"
        problems.append(f"the smallest {size} is {found.smallest_ess:.0f} (should be at least {wanted:g})")
    return " and ".join(problems) or None


def agreement(found: Diagnostics | None) -> tuple[bool, str]:
    """Whether chains are good enough, and why; None are the diagnostics of too few draws."""
    if found is None:
        return False, "too few draws to tell whether the chains agree"
    wrong = shortcomings(found)
    numbers = f"R-hat {found.worst_rhat:.2f}, smallest effective sample size {found.smallest_ess:,.0f}"
    if found.predictive:
        error = f"Monte-Carlo error up to {found.largest_error:.3f}"
        numbers = f"R-hat of probabilities up to {found.prediction_rhat:.2f}, {error}"
    return wrong is None, wrong or f"the chains agree: {numbers}"


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
    longer, name = more(settings, end), type(settings).__name__
    if found.predictive:
        return f"{wrong}. Try {longer}{other}."
    if settings.target_ess is None and end is None:
        longer += f", or {name}(target_ess=400), which goes on until they are good enough"
    return (
        f"{wrong}. Estimates and intervals may be off; average predictions are usually less affected. "
        f"Try {longer}{other}."
    )


def more(settings: Any, end: str | None, at_least: int = 0) -> str:
    """Four times what the run was given of that which ended it: time, iterations, or draws."""
    name = end or ("draws" if settings.target_ess is None else "max_draws")
    value = 4 * getattr(settings, name)
    number = f"{value:g}" if name == "max_seconds" else max(value, at_least)
    return f"{type(settings).__name__}({name}={number})"
