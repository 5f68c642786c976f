"""Nothing that is asked for is ignored: a setting that a combination would not read is refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.directions import LearnedDirections
from plackett.features import ExpFeatures
from plackett.inference import EM, Gibbs
from plackett.priors import GIG


def refuse(settings: Any, names: tuple[str, ...], why: str) -> None:
    """Refuse those that were given, that is, are not as they are when nothing is said."""
    usual = type(settings)().get_params(deep=False)
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, str) != isinstance(usual[name], str) or not np.array_equal(value, usual[name]):
            raise ValueError(f"{type(settings).__name__}({name}={value!r}) would be ignored: {why}")


def check_target(settings: Any) -> None:
    """Refuse the limit of a run of chains that does not go on by itself."""
    if settings.target_ess is None and settings.draws is not None:
        name = type(settings).__name__
        why = (
            f"it is where a run gives up that goes on by itself, and {name}(draws={settings.draws!r}) does not. Leave "
            f"one of the two out, or give {name}(target_ess=...) too."
        )
        refuse(settings, ("max_draws",), why)


def check_all_read(model: Any, features: Any, inference: Any, shape: float | None) -> None:
    """Refuse what a `PlackettLuceClassifier` with these parts would not read; shape None is learned."""
    if isinstance(inference, Gibbs):
        check_target(inference)
    if isinstance(features, LearnedDirections):
        _with_learned(model, features, inference)
    else:
        _with_fixed(model, inference, shape)


def check_all_read_of_rankings(
    model: Any, features: Any, inference: Any, shape: float | None, without: bool, grouped: bool
) -> None:
    """Refuse what a `PlackettLuceRanker` would not read, with or without covariates, and groups if none is held out."""
    learned = isinstance(features, LearnedDirections) and not without
    if model.engine == "dask" and not learned:
        check_situations_on_cluster(inference, "rankings")
    if grouped and not (learned or (isinstance(inference, EM) and shape is None)):
        raise ValueError(
            "groups say which rankings to hold out together, and none are held out but for learned directions, and for "
            "EM with shape='learn'; leave them out."
        )
    if without:
        why = "it is a map of covariates, and there are none: X is None or has no columns. Leave it out."
        refuse(model, ("features",), why)
    if isinstance(inference, Gibbs):
        check_target(inference)
    if learned:
        _with_learned(model, features, inference)
        return
    if without:
        _without_moves(inference, "without covariates there is one weight an item, and plain sweeps mix")
    elif model.ties == "race":
        _without_moves(inference, "race ties know the scale of the weights, which the moves take for unknown")
    if model.ties != "race":
        _without_scale(model, "rankings, but with ties='race'")
    _with_fixed(model, inference, shape)


def check_all_read_of_choices(model: Any, features: Any, inference: Any, shape: float | None, grouped: bool) -> None:
    """Refuse what a `PlackettLuceChooser` would not read, and groups if nobody asks for them."""
    learned = isinstance(features, LearnedDirections)
    if model.engine == "dask" and not learned:
        check_situations_on_cluster(inference, "choices")
    if grouped and model.weights != "person" and not learned:
        raise ValueError(
            "groups would be ignored: they are the persons of weights='person', or situations that "
            "features='learned' holds out together, and these weights are shared and features are fixed."
        )
    check_all_read(model, features, inference, shape)
    if not learned:
        _without_scale(model, "choices")
        if isinstance(features, ExpFeatures):
            refuse(features, ("dtype",), "logarithms of features are compared within situations, in float64.")
    elif model.weights != "alternative":
        why = f"it is for components that others own, and with weights={model.weights!r} nobody owns one."
        refuse(model, ("shape",), f"{why} Leave it out, or set LearnedDirections(own_shape=...).")
        if features.components == 1:
            why = "all entries of a situation have the same weight of the only component, which cancels."
            more = f"{why} Leave it out, or give LearnedDirections more components."
            refuse(features, ("own_shape",), more)
            refuse(model, ("weights",), more)


def _without_scale(model: Any, what: str) -> None:
    """Refuse the rate of a Gamma prior; a GIG refuses it by itself."""
    if not isinstance(model.prior, GIG):
        refuse(model, ("rate",), f"the scale of the weights has no effect on {what}. Leave it out.")


def _without_moves(inference: Any, why: str) -> None:
    if isinstance(inference, Gibbs):
        if inference.moves == "exchange":
            raise ValueError(
                f"Gibbs(moves='exchange') cannot be had here: {why}. Leave it out, or use Gibbs(moves='none')."
            )
        refuse(inference, ("move_budget",), f"there are no moves here: {why}.")


def _with_learned(model: Any, features: LearnedDirections, inference: Any) -> None:
    leave = "Leave it out, or add features='exp' for the paper's model."
    why = f"learned directions have a prior of their own, of directions and weights together. {leave}"
    refuse(model, ("prior",), why)
    if getattr(model, "ties", None) == "race":
        why = f"learned directions have a prior of their own, with a rate of 1. {leave}"
    else:
        why = f"the scale of the weights cancels in the votes of learned directions. {leave}"
    refuse(model, ("rate",), why)
    if isinstance(inference, Gibbs):
        why = f"it is a setting of the sampler for fixed features, and this is features='learned'. {leave}"
        refuse(inference, ("moves", "shape_prior", "move_budget"), why)
    if isinstance(inference, EM):
        why = f"it is a setting of the climb for fixed features, and directions are climbed by L-BFGS. {leave}"
        refuse(inference, ("tol", "accelerate", "shapes"), why)
        refuse(
            features, ("covariate_spread", "leapfrogs"), "it is for inference='gibbs', and this is EM. Leave it out."
        )


def _with_fixed(model: Any, inference: Any, shape: float | None) -> None:
    names = ("shapes", "cv") if isinstance(inference, EM) else ("shape_prior",)
    if isinstance(model.prior, GIG):
        why = f"it belongs to prior='gamma', and this is prior={model.prior!r}. Leave one of the two out."
        refuse(model, ("shape", "rate"), why)
        refuse(inference, names, why)
        _with_tail(model.prior, inference)
    elif shape is not None:
        refuse(inference, names, f"it is for shape='learn', and shape={shape:g} is given. Leave one of the two out.")
    if isinstance(inference, Gibbs):
        plain = model.engine in ("numpy", "cupy")
        if plain and inference.moves == "exchange":
            raise ValueError(
                f"Gibbs(moves='exchange') is compiled and cannot be had with engine={model.engine!r}. Use "
                "Gibbs(moves='none') or engine='auto'."
            )
        if plain or inference.moves == "none":
            refuse(
                inference, ("move_budget",), "there are no moves with Gibbs(moves='none'), engine='numpy' or 'cupy'."
            )


def check_all_read_of_sparse(inference: Any) -> None:
    """Refuse what would not be read with sparse features, which is known when they are made."""
    if isinstance(inference, Gibbs):
        if inference.moves == "exchange":
            raise ValueError(
                "Gibbs(moves='exchange') cannot be had with sparse features: the moves go through whole columns. Use "
                "Gibbs(moves='none'), or a map with dense output, such as OneHotEncoder(sparse_output=False)."
            )
        refuse(inference, ("move_budget",), "there are no moves with sparse features.")


def check_all_read_of_cluster(model: Any, features: Any, inference: Any, groups: Any = None) -> None:
    """Refuse what would not be read, or cannot be had, where the rows lie on the workers of a cluster."""
    if groups is not None:
        raise ValueError(
            "groups cannot be had with engine='dask', where what a row holds decides with which others it is held out. "
            "Leave them out, or use engine='auto' where the rows fit into memory."
        )
    if isinstance(features, LearnedDirections):
        if isinstance(inference, EM) and not isinstance(inference.cv, (int, np.integer)):
            raise ValueError(
                f"EM(cv={inference.cv!r}) cannot be had with engine='dask' and learned directions, where what a row "
                "holds decides its fold. Give the number of folds, or use engine='auto' where the rows fit into memory."
            )
    elif isinstance(inference, Gibbs):
        if inference.moves == "exchange":
            raise ValueError(
                "Gibbs(moves='exchange') cannot be had with engine='dask': the moves go through whole columns. Use "
                "Gibbs(moves='none'), or engine='auto' where the rows fit into memory."
            )
        refuse(inference, ("move_budget",), "there are no moves with engine='dask'.")


def moves_between_modes(inference: Any) -> bool:
    """Whether moves are asked for, which are compiled for the processor and worth more than another engine's speed."""
    return isinstance(inference, Gibbs) and inference.moves != "none"


def check_situations_on_cluster(inference: Any, what: str) -> None:
    """Refuse what cannot be had of rankings and choices with fixed features on the workers of a cluster."""
    _without_moves(inference, f"the moves go through all {what} at once, and with engine='dask' they lie on workers")


def check_all_read_of_parts(model: Any, learned: bool, inference: Any, what: str) -> None:
    """Refuse what cannot be had of rankings and choices in partitions."""
    if model.engine not in ("auto", "dask"):
        raise ValueError(
            f"these {what} are in partitions, which engine={model.engine!r} does not take. Use engine='auto', or make "
            "them from a table in memory, frame.compute()."
        )
    if not learned:
        check_situations_on_cluster(inference, what)


def _with_tail(prior: GIG, inference: Any) -> None:
    if isinstance(inference, Gibbs):
        if inference.moves == "exchange":
            raise ValueError(
                f"Gibbs(moves='exchange') cannot be had with prior={prior!r}: the moves take the proportions of the "
                "weights for independent of their scale, which is so for prior='gamma' alone. Use Gibbs(moves='none')."
            )
        refuse(inference, ("move_budget",), f"there are no moves with prior={prior!r}.")
