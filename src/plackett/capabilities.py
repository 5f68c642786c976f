"""Capabilities that the parts of a model declare, and one check that no setting is ignored.

Inferences, priors and feature maps declare theirs as class attributes, engines as `Offers`, and the three kinds of data
as a `Kind`. `check` reads these declarations and raises for a setting that the combination would ignore. This module
knows no part by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

LEAVE = "Leave it out, or add features='exp' for the paper's model."


@dataclass(frozen=True)
class Ignored:
    """Settings that are ignored in some case, with the reason."""

    names: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class NoMoves:
    """Reason why a sampler cannot move between modes: texts for ``moves="exchange"`` and for ``move_budget``.

    In them ``{what}`` stands for the kind of data and ``{engine}`` for the name of the engine.
    """

    exchange: str
    budget: str

    @classmethod
    def here(cls, why: str) -> NoMoves:
        """Return the usual texts."""
        instead = "Leave it out, or use Gibbs(moves='none')."
        return cls(f"Gibbs(moves='exchange') cannot be had here: {why}. {instead}", f"there are no moves here: {why}.")


OFF = NoMoves("", "there are no moves with Gibbs(moves='none'), engine='numpy' or 'cupy'.")
SPARSE = NoMoves(
    "Gibbs(moves='exchange') cannot be had with sparse features: the moves go through whole columns. Use "
    "Gibbs(moves='none'), or a map with dense output, such as OneHotEncoder(sparse_output=False).",
    "there are no moves with sparse features.",
)


@dataclass(frozen=True)
class Offers:
    """Capabilities of an engine.

    Attributes
    ----------
    no_moves : NoMoves, optional
        Reason why it has no moves between modes, or None.
    partitions : bool
        True if it accepts data in partitions.
    """

    no_moves: NoMoves | None = None
    partitions: bool = False


class Inference(Protocol):
    """What an inference declares besides its settings."""

    @property
    def samples(self) -> bool:
        """True if it makes draws, and thus may move between modes."""

    @property
    def maximises(self) -> bool:
        """True if it maximises; the maximum may not exist."""

    shape_settings: tuple[str, ...]  # settings of shape="learn"
    fixed_only: Ignored  # settings that learned directions ignore
    no_directions: str | None  # reason why it does not learn directions, or None
    no_fixed: str | None  # reason why it does not fit weights of fixed features, or None
    groups_rows: bool  # True if it holds out rows of classes by groups


@dataclass(frozen=True)
class Kind:
    """Declaration of a kind of data: classes, rankings or choices."""

    what: str  # rows, rankings or choices
    of_partitions: str  # text for data in partitions, before the engine that refuses them
    in_memory: str  # text on what to pass instead
    unread_groups: str  # reason why groups are refused if nothing is held out
    scale_free: str | None = None  # results independent of the scale of the weights; None: it affects the output
    repeated_up_to: int = 0  # total weight up to which a sampler repeats rows by their weights
    shape_steps: int = 1  # Metropolis–Hastings steps of a per pass
    side_by_side_below: int = 0  # numbers per pass below which chains, not rows, are divided among cores


@dataclass(frozen=True)
class Combination:
    """Parts of one fit, and facts about its data.

    Attributes
    ----------
    model, features, inference : estimators
        Parts whose settings are checked.
    engine : Offers
        Declaration of the engine named in the model's settings.
    shape : float, optional
        Given shape; None if it is learned.
    tailed : GIG, optional
        Prior of the weights if it is not the Gamma; it declares why there are no moves.
    kind : Kind
        Kind of the data.
    learned : bool
        True if directions are learned.
    ignored : tuple of (estimator, Ignored)
        Settings that these data ignore.
    no_moves : NoMoves, optional
        Reason why these data have no moves.
    grouped, holds_out : bool
        True if groups are given; True if they hold out data together or determine weights.
    partitions : bool
        True if the data are in partitions.
    """

    model: Any
    features: Any
    inference: Any
    engine: Offers
    shape: float | None
    tailed: Any
    kind: Kind
    learned: bool
    grouped: bool
    partitions: bool
    holds_out: bool = False
    absolute: bool = False  # True if outcomes identify the scale of the weights, as race ties do
    no_moves: NoMoves | None = None
    ignored: tuple[tuple[Any, Ignored], ...] = ()
    refused: str | None = None  # reason why this combination is impossible


@cache
def _usual(kind: type[Any]) -> dict[str, Any]:
    """Return the defaults of the settings."""
    found: dict[str, Any] = kind().get_params(deep=False)
    return found


def refuse(settings: Any, names: tuple[str, ...], why: str) -> None:
    """Raise for the first of these settings that differs from its default."""
    usual = _usual(type(settings))  # type: ignore[arg-type]
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, str) != isinstance(usual[name], str) or not np.array_equal(value, usual[name]):
            raise ValueError(f"{type(settings).__name__}({name}={value!r}) would be ignored: {why}")


def check_target(settings: Any) -> None:
    """Raise for the limit of an open-ended run if the number of draws is given."""
    if settings.target_ess is None and settings.draws is not None:
        name = type(settings).__name__
        why = (
            f"it is where a run gives up that goes on by itself, and {name}(draws={settings.draws!r}) does not. Leave "
            f"one of the two out, or give {name}(target_ess=...) too."
        )
        refuse(settings, ("max_draws",), why)


def check(given: Combination) -> None:
    """Raise for settings that this combination would ignore, and for impossible requests."""
    kind = given.kind
    if given.partitions and not given.engine.partitions:
        raise ValueError(f"{kind.of_partitions}, which engine={given.model.engine!r} does not take. {kind.in_memory}")
    if given.grouped and not given.holds_out:
        raise ValueError(kind.unread_groups)
    if given.refused is not None:
        raise ValueError(given.refused)
    if not given.learned and given.inference.no_fixed is not None:
        raise ValueError(given.inference.no_fixed)
    if given.inference.samples:
        check_target(given.inference)
    for settings, ignored in (*given.ignored, *(_with_learned(given) if given.learned else _with_fixed(given))):
        refuse(settings, ignored.names, ignored.why)
    if given.learned:
        if given.inference.no_directions is not None:
            raise ValueError(given.inference.no_directions)
        return
    for found in (given.engine.no_moves, given.no_moves, given.tailed and given.tailed.no_moves):
        check_moves(given.inference, found, kind.what, given.model.engine)
    if given.inference.samples and given.inference.moves == "none":
        check_moves(given.inference, OFF)


def check_moves(inference: Any, found: NoMoves | None, what: str = "rows", engine: str = "") -> None:
    """Raise for settings of moves if there are none."""
    if found is None or not inference.samples:
        return
    if inference.moves == "exchange":
        raise ValueError(found.exchange.format(what=what, engine=engine))
    refuse(inference, ("move_budget",), found.budget.format(what=what, engine=engine))


def moves_between_modes(inference: Any) -> bool:
    """True if moves are requested: they are compiled for the processor, and gain more than a GPU does."""
    return bool(inference.samples and inference.moves != "none")


def _with_learned(given: Combination) -> Iterator[tuple[Any, Ignored]]:
    """Yield settings that learned directions ignore."""
    why = "learned directions have a prior of their own, of directions and weights together."
    yield given.model, Ignored(("prior",), f"{why} {LEAVE}")
    if given.absolute:
        why = "learned directions have a prior of their own, with a rate of 1."
    else:
        why = "the scale of the weights cancels in the votes of learned directions."
    yield given.model, Ignored(("rate",), f"{why} {LEAVE}")
    fixed_only = given.inference.fixed_only
    yield given.inference, Ignored(fixed_only.names, f"{fixed_only.why} {LEAVE}")
    if not given.inference.samples and given.inference.no_directions is None:
        yield given.features, given.features.sampler_only


def _with_fixed(given: Combination) -> Iterator[tuple[Any, Ignored]]:
    """Yield settings that weights of fixed features ignore."""
    names = given.inference.shape_settings
    if given.tailed is not None:
        why = f"it belongs to prior='gamma', and this is prior={given.tailed!r}. Leave one of the two out."
        yield given.model, Ignored(("shape", "rate"), why)
        yield given.inference, Ignored(names, why)
        return
    if given.kind.scale_free is not None and not given.absolute:
        why = f"the scale of the weights has no effect on {given.kind.scale_free}. Leave it out."
        yield given.model, Ignored(("rate",), why)
    if given.shape is not None:
        why = f"it is for shape='learn', and shape={given.shape:g} is given. Leave one of the two out."
        yield given.inference, Ignored(names, why)
