"""What the parts of a model offer and read, and one check that no setting is ignored.

Inferences, priors and feature maps declare their side as class attributes, engines as `Offers`,
and the three kinds of data as a `Kind`. `check` goes through these declarations and raises for a setting that the
combination would not read. This module knows no part by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

LEAVE = "Leave it out, or add features='exp' for the paper's model."


@dataclass(frozen=True)
class Ignored:
    """Settings that are not read in some case, and why."""

    names: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class NoMoves:
    """Why a sampler cannot move between modes: the words for ``moves="exchange"`` and for ``move_budget``.

    ``{what}`` in them stands for the kind of data, ``{engine}`` for the engine's name.
    """

    exchange: str
    budget: str

    @classmethod
    def here(cls, why: str) -> NoMoves:
        """The usual words."""
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
    """What an engine offers.

    Attributes
    ----------
    no_moves : NoMoves, optional
        Why it has no moves between modes, if it has none.
    partitions : bool
        Whether it takes data in partitions.
    """

    no_moves: NoMoves | None = None
    partitions: bool = False


class Inference(Protocol):
    """What an inference declares besides its settings."""

    samples: bool  # whether it draws, and so may move between modes
    maximises: bool  # whether it climbs to a mode, which need not exist
    shape_settings: tuple[str, ...]  # settings of shape="learn"
    fixed_only: Ignored  # settings that learned directions do not read
    no_directions: str | None  # why it does not learn directions, if it does not
    no_fixed: str | None  # why it does not fit weights of fixed features, if it does not
    groups_rows: bool  # whether it holds out rows of classes by groups


@dataclass(frozen=True)
class Kind:
    """What a kind of data declares: classes, rankings or choices."""

    what: str  # rows, rankings or choices
    of_partitions: str  # what to say of data in partitions, before the engine that does not take them
    in_memory: str  # what to give instead
    unread_groups: str  # why groups are refused where nothing is held out
    scale_free: str | None = None  # of what the scale of the weights has no effect; None: it shows in what is reported
    repeated_up_to: int = 0  # total weight up to which a sampler sees rows repeated by their weights
    shape_steps: int = 1  # Metropolis–Hastings steps of a between two passes
    side_by_side_below: int = 0  # numbers of a pass below which the chains share the cores, and not the rows


@dataclass(frozen=True)
class Combination:
    """The parts of one fit, and what is known of its data.

    Attributes
    ----------
    model, features, inference : estimators
        Whose settings are checked.
    engine : Offers
        What the engine declares; its name is that of the model's setting.
    shape : float, optional
        The shape as it was given; None if it is learned.
    tailed : GIG, optional
        The prior of the weights, where it is not the Gamma; it declares why there are no moves.
    kind : Kind
        What the data are.
    learned : bool
        Whether directions are learned.
    ignored : tuple of (estimator, Ignored)
        What the data at hand do not read.
    no_moves : NoMoves, optional
        Why these data have no moves.
    grouped, holds_out : bool
        Whether groups are given, and whether anything is held out together, or has weights by them.
    partitions : bool
        Whether the data are in partitions.
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
    absolute: bool = False  # whether outcomes know the scale of the weights, as race ties do
    no_moves: NoMoves | None = None
    ignored: tuple[tuple[Any, Ignored], ...] = ()
    refused: str | None = None  # why this cannot be had at all


def refuse(settings: Any, names: tuple[str, ...], why: str) -> None:
    """Raise for the first of these settings that is not at its default."""
    usual = type(settings)().get_params(deep=False)
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, str) != isinstance(usual[name], str) or not np.array_equal(value, usual[name]):
            raise ValueError(f"{type(settings).__name__}({name}={value!r}) would be ignored: {why}")


def check_target(settings: Any) -> None:
    """Raise for the limit of an open-ended run where the number of draws is given."""
    if settings.target_ess is None and settings.draws is not None:
        name = type(settings).__name__
        why = (
            f"it is where a run gives up that goes on by itself, and {name}(draws={settings.draws!r}) does not. Leave "
            f"one of the two out, or give {name}(target_ess=...) too."
        )
        refuse(settings, ("max_draws",), why)


def check(given: Combination) -> None:
    """Raise for settings that this combination would not read, and for what it cannot do."""
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
    """Raise for settings of moves where there are none."""
    if found is None or not inference.samples:
        return
    if inference.moves == "exchange":
        raise ValueError(found.exchange.format(what=what, engine=engine))
    refuse(inference, ("move_budget",), found.budget.format(what=what, engine=engine))


def moves_between_modes(inference: Any) -> bool:
    """Whether moves are asked for: they are compiled for the processor, and gain more than a GPU does."""
    return bool(inference.samples and inference.moves != "none")


def _with_learned(given: Combination) -> Iterator[tuple[Any, Ignored]]:
    """Settings that learned directions do not read."""
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
    """Settings that weights of fixed features do not read."""
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
