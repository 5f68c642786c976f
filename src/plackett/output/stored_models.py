"""Schema of model files, part two: models, which register themselves on import.

This module knows no model: each model passes its class and the texts that its parameters may be. `MODELS` is complete
after all models are imported, as in `plackett.loading`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from plackett.data.ballots import Ballots
from plackett.data.choice_sets import ChoiceSets
from plackett.data.item_covariates import ItemCovariates
from plackett.data.long_table import LongTable
from plackett.data.model_input import known_columns
from plackett.data.table import Table
from plackett.features.choice_design import ChoiceDesign
from plackett.features.gate_summary import ReadableDraw
from plackett.features.scaled_columns import Columns
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.tie_choice import LAWS_OF_TIES
from plackett.linear import LinearUtility
from plackett.model.diagnostics import Diagnostics
from plackett.output.schema import (
    MEASURED,
    NONE,
    NOT_NEGATIVE,
    POSITIVE,
    SCALAR,
    SHARE,
    TEXT,
    TRUTH,
    Check,
    Declaration,
    Sizes,
    array,
    by_name,
    each,
    fitted,
    insist,
    is_a,
    labels,
    mapping,
    number,
    one_of,
    size_of,
    sums_to_one,
    whole,
)
from plackett.output.stored import COLUMNS, FEATURE_MAP, FITTED_MAP, GATES, LOSSES, NAMES, RECORDS, RUN, TRACE, WIDTH
from plackett.posterior.choosers import FixedChoices, LearnedChoices
from plackett.posterior.described import DescribedDraws, DescribedPoint
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.linear_choices import LinearChoices, LinearDraws, LinearEstimate
from plackett.posterior.nested_choices import NestedDraws, NestedEstimate
from plackett.posterior.segmented_choices import SegmentedChoices
from plackett.posterior.segmented_worths import SegmentedWorths
from plackett.posterior.situations import SituationDraws, SituationPoint
from plackett.posterior.taste_choices import TasteChoices
from plackett.posterior.tiered_worths import TieredDraws
from plackett.posterior.weights import Approximation, Draws, Gammas, GIGs, Point, WeightPosterior
from plackett.priors import GIG
from plackett.segments import Segments
from plackett.tastes import Tastes
from plackett.tiers import Tiers

SEGMENTED = (SegmentedChoices, SegmentedWorths)
DESCRIBED = (DescribedDraws, DescribedPoint)
MODELS: dict[str, Declaration] = {}


def register(model: Declaration, *records: Declaration) -> None:
    """Register a model for model files, with records that no other model has."""
    MODELS.update(by_name(model))
    RECORDS.update(by_name(*records))


FOUND = {"trace_": TRACE, "n_iter_": whole(), "shape_": number()}
MORE = {
    **NAMES,
    "inference_": is_a(EM, Variational, Gibbs, Bootstrap),
    "diagnostics_": is_a(Diagnostics) | NONE,
    "cv_log_loss_": LOSSES,
    "notes_": each(TEXT),
    "design_log_loss_": LOSSES,
    "segment_log_loss_": LOSSES,
}
SEGMENTS = whole(1) | one_of("auto") | is_a(Segments)
WEIGHTS_ = {"weights_": array("group feature", SHARE)}


def law_of_race(model: Any, posterior: Any, learned: type, fixed: bool) -> None:
    """Check that posterior and features match, and summaries exist; `fixed` features do not depend on y."""
    kind = WeightPosterior if fixed else learned
    insist(
        isinstance(posterior, kind),
        f"posterior_ is of the kind {type(posterior).__name__}, which does not belong to features={model.features!r}.",
    )
    if fixed:
        insist(hasattr(model, "weights_"), "the model has no 'weights_'.")
        sums_to_one(model.weights_, "weights_")
    point = isinstance(posterior, (Point, DirectionPoint, SituationPoint, LinearEstimate))
    point = point or (isinstance(posterior, SEGMENTED) and posterior.no_chains is not None)
    by: tuple[type, ...] = (EM,) if point else (Variational,) if isinstance(posterior, Approximation) else (Gibbs,)
    by += (Bootstrap,) if isinstance(posterior, learned) and not point else ()
    used, names = model._used_inference(), " or ".join(each.__name__ for each in by)
    insist(type(used) in by, f"inference_ must be of the kind {names}, got {type(used).__name__} instead.")
    insist(getattr(used, "tune", 0) is not None, "inference_ must have its tune as a number, got None instead.")
    insist((model.trace_.ndim == 2) == (Gibbs in by), f"trace_ must not have {model.trace_.ndim} axes after {used!r}.")
    insist(Gibbs not in by or hasattr(model, "diagnostics_"), "the model has no 'diagnostics_'.")


def law_of_classes(model: Any, name: str, sizes: Sizes) -> None:
    """Check for two or more sorted classes."""
    held = model.classes_.tolist()
    try:
        right = len(held) >= 2 and sorted(held) == held
    except TypeError:
        right = False
    insist(right, f"classes_ must be two or more labels in order, got {held[:20]} instead.")


def law_of_names(model: Any) -> None:
    """Check that the map of covariates has the model's feature names, if any."""
    known, held = (getattr(part, "feature_names_in_", np.empty(0)) for part in (model, model.features_))
    insist(len(held) == 0 or np.array_equal(known, held), "features_.feature_names_in_ must be that of the model.")


def law_of_classifier(model: Any, name: str, sizes: Sizes) -> None:
    """Check for sorted classes, and the summaries of learned directions."""
    law_of_classes(model, name, sizes)
    learned = model._learned()
    law_of_race(model, model.posterior_, DirectionDraws, not learned)
    if learned:
        insist(GATES.fits(model.features_), "features_ must be of the kind Gates, with features='learned'.")
        read = hasattr(model, "readable_draw_") and (
            hasattr(model, "gate_shares_") or hasattr(model, "mean_relevance_")
        )
        insist(read, "the model has no 'readable_draw_', or no 'gate_shares_'.")
    law_of_names(model)
    law_of_columns_known(model)


def law_of_columns_known(model: Any) -> None:
    """Check that the columns of the table that the model knows make its covariates."""
    columns = known_columns(model)
    if columns is not None:
        names = [name for column in columns for name in column.names()]
        known = list(getattr(model, "feature_names_in_", ()))
        insist(names == known, f"the columns of the table must make {known}, got {names} instead.")


def law_of_parameters(model: Any, plain: bool) -> None:
    """Check that the parameters of the response match the settings, each above its lower bound."""
    known, found = model._parameters(), getattr(model.posterior_, "parameters", None)
    insist(plain or not known, f"a model with covariates has no parameters of a response, expected none of {known}.")
    values = np.empty(0) if found is None else found
    n, names = values.shape[-1], [parameter.name for parameter in known]
    insist(n == len(known), f"posterior_.parameters must be {names}, got {n} of them.")
    for i, parameter in enumerate(known):
        above = bool((values[..., i] > parameter.lower).all())
        insist(above, f"{parameter.name} must be above {parameter.lower:g}.")


def _law_of_ties(model: Any) -> None:
    """Check that the law of ties is the one of the settings, or one that ties='auto' may choose."""
    losses = getattr(model, "tie_log_loss_", None)
    if model.ties != "auto":
        insist(model._ties == model.ties and losses is None, f"ties_ must be {model.ties!r}, without losses.")
        return
    known = ("unknown-order",) if losses is None else tuple(losses)
    insist(model._ties in known, f"ties_ must be one of {list(known)}, got {model._ties!r} instead.")
    insist(losses is None or set(losses) == set(LAWS_OF_TIES), f"tie_log_loss_ must have {list(LAWS_OF_TIES)}.")


def law_of_ranker(model: Any, name: str, sizes: Sizes) -> None:
    """Check the items, and the map of covariates if there are any."""
    insist(len(model.items_) >= 2, f"items_ must be two labels or more, got {model.items_.tolist()} instead.")
    plain = model.n_features_in_ == 0
    learned = not plain and model._learned()
    segmented = _law_of_segmented(model, SegmentedWorths, sizes)
    law_of_race(model, model.posterior_, SegmentedWorths if segmented else SituationDraws, not (learned or segmented))
    insist(plain or not segmented, "a model with covariates has no segments.")
    described = isinstance(model.posterior_, DESCRIBED)
    insist(
        described == hasattr(model, "item_covariates_") and (plain or not described),
        "the model must have 'item_covariates_' if its items are described, only then, and no other covariates.",
    )
    _law_of_tiered(model, plain)
    insist(plain != hasattr(model, "features_"), "the model must have 'features_' if it has covariates, only then.")
    _law_of_ties(model)
    law_of_parameters(model, plain)
    if hasattr(model, "table_"):
        held, known = list(model.table_.attributes), list(getattr(model, "attributes_", ()))
        insist(held in ([], known), f"table_ must have the attributes {known}, got {held} instead.")
    if plain:
        sizes.agree("feature", 1, "a model without covariates")
        return
    insist(learned == (type(model.features_) is Columns), f"features_ does not belong to features={model.features!r}.")
    law_of_names(model)
    law_of_columns_known(model)


def _law_of_tiered(model: Any, plain: bool) -> None:
    """Check that the posterior has tiers if the model has, without covariates."""
    try:
        tiered = model._tiered() is not None
    except ValueError as error:
        raise ValueError(f"tiers cannot be: {error}") from None
    right = tiered == isinstance(model.posterior_, TieredDraws)
    insist(right, f"posterior_ does not belong to tiers={model.get_params()['tiers']!r}.")
    insist(plain or not tiered, "a model with covariates has no tiers.")


def _law_of_segmented(model: Any, kind: type, sizes: Sizes) -> bool:
    """Whether there are segments, with memberships of the persons that are known."""
    try:
        segmented = model._segmented() is not None
    except ValueError as error:
        raise ValueError(f"segments cannot be: {error}") from None
    insist(
        segmented == isinstance(model.posterior_, kind), f"posterior_ does not belong to segments={model.segments!r}."
    )
    if segmented:
        held, wanted = model.posterior_.of_segments, model._segmented().count
        if held.membership is not None:
            insist(hasattr(model, "group_labels_"), "the model has no 'group_labels_'.")
            sizes.agree("person", len(model.group_labels_), "group_labels_")
        n = held.segments
        insist(wanted in ("auto", n), f"posterior_ has {n} segments, and segments={model.segments!r}.")
    return segmented


def law_of_chooser(model: Any, name: str, sizes: Sizes) -> None:
    """Check that alternatives, columns and groups match the schema and the weights."""
    schema, learned, tasting = model.schema_, model._learned(), model._tasting()
    linear = model._linear() or tasting
    segmented = _law_of_segmented(model, SegmentedChoices, sizes)
    insist(linear or not segmented, "segments need a linear utility.")
    kind: type = TasteChoices if tasting else LinearChoices if linear else SituationDraws
    kind = SegmentedChoices if segmented else kind
    law_of_race(model, _of_parameters(model.posterior_), kind, fixed=not (learned or linear))
    insist(len(schema.alternatives) >= 2, "schema_.alternatives must be two labels or more.")
    insist(learned or linear or hasattr(model, "features_"), "the model has no 'features_'.")
    for held, known in (
        (model.alternatives_.tolist(), schema.alternatives.tolist()),
        (model.classes_.tolist(), schema.alternatives.tolist()),
        (list(model.attributes_), list(schema.attributes)),
        (list(model.person_), list(schema.person)),
    ):
        insist(held == known, f"alternatives and columns must be those of schema_, {known}, got {held} instead.")
    insist((model.nests is None) == (model.posterior_.nests is None), "posterior_ must have nests if the model has.")
    insist(not (linear and model.weights == "person"), "weights must not be 'person' with a linear utility.")
    named = segmented and model.posterior_.of_segments.membership is not None
    whose = "persons" if tasting or named else "shared" if linear else model.weights
    groups = {"shared": 1, "alternative": len(schema.alternatives)}.get(whose, len(model.group_labels_))
    sizes.agree("group", groups, f"weights={model.weights!r}")
    if hasattr(model, "table_"):
        names = [tuple(column.name for column in part) for part in (schema.attribute_columns, schema.person_columns)]
        held = [tuple(model.table_.attributes), tuple(model.table_.person)]
        insist(held == names, f"table_ must have the attributes and persons' columns {names}, got {held} instead.")
        n = len(model.table_.constants)
        insist(n in (0, len(schema.alternatives)), f"table_.constants must have one for each alternative, got {n}.")


def _of_parameters(posterior: Any) -> Any:
    """Return the posterior of the parameters, to which a posterior of choices delegates."""
    if type(posterior) is LearnedChoices:
        return posterior.of_directions
    return posterior.of_weights if type(posterior) is FixedChoices else posterior


def race_settings(inferences: Collection[str], features: Collection[str], engines: Collection[str]) -> dict[str, Check]:
    """Return parameters of every race model, with these names of inferences, features and engines."""
    return {
        "inference": one_of(*inferences) | is_a(EM, Variational, Gibbs, Bootstrap),
        "shape": number(POSITIVE) | one_of("learn"),
        "rate": number(POSITIVE),
        "features": one_of(*features) | FEATURE_MAP,
        "prior": one_of("gamma") | is_a(GIG),
        "engine": one_of("auto", *engines),
        **RUN,
    }


def classifier(cls: type, settings: Mapping[str, Check]) -> Declaration:
    """Declare the classifier."""
    return Declaration(
        cls,
        {**settings, "class_weight": mapping(SCALAR, number(POSITIVE)) | one_of("balanced") | NONE},
        {
            **FOUND,
            **WIDTH,
            **WEIGHTS_,
            "classes_": labels("group", "outcome"),
            "posterior_": is_a(Point, Gammas, GIGs, Draws, DirectionDraws, DirectionPoint),
            "features_": FITTED_MAP,
        },
        {
            **MORE,
            "gate_shares_": array("member component", SHARE),
            "mean_relevance_": array("column", NOT_NEGATIVE),
            "readable_draw_": is_a(ReadableDraw),
            "columns_": COLUMNS,
            "table_": is_a(Table),
        },
        law_of_classifier,
    )


def ranker(cls: type, settings: Mapping[str, Check], ties: Collection[str]) -> Declaration:
    """Declare the model of rankings, with its settings of ties."""
    return Declaration(
        cls,
        {
            **settings,
            "ties": one_of(*ties),
            "order_effect": TRUTH,
            "tiers": TRUTH | is_a(Tiers),
            "segments": SEGMENTS,
        },
        {
            **FOUND,
            "n_features_in_": size_of("column", low=0),  # 0 without covariates
            "items_": labels("group", "outcome"),
            "posterior_": is_a(
                *(Point, Gammas, GIGs, Draws, TieredDraws, *DESCRIBED),
                *(SituationDraws, SituationPoint, SegmentedWorths),
            ),
        },
        {
            **MORE,
            **WEIGHTS_,
            "features_": FITTED_MAP | is_a(Columns),
            "columns_": COLUMNS,
            "table_": is_a(Ballots),
            "group_labels_": labels("person"),
            "attributes_": each(TEXT),
            "ties_": one_of(*ties),
            "tie_log_loss_": mapping(one_of(*LAWS_OF_TIES), number(MEASURED)),
            "item_covariates_": is_a(ItemCovariates),
        },
        law_of_ranker,
    )


def chooser(cls: type, settings: Mapping[str, Check], weights: Collection[str], maps: Collection[str]) -> Declaration:
    """Declare the model of choices, with its settings of weights and features."""
    features = one_of(*maps) | FEATURE_MAP | is_a(LinearUtility, Tastes)
    return Declaration(
        cls,
        {
            **settings,
            "features": features,
            "weights": one_of(*weights),
            "nests": mapping(TEXT, each(SCALAR)) | NONE,
            "segments": SEGMENTS,
        },
        {
            **FOUND,
            "schema_": is_a(ChoiceSets),
            "alternatives_": labels("alternative"),
            "classes_": labels("alternative", "outcome"),
            "attributes_": each(TEXT),
            "person_": each(TEXT),
            "group_labels_": labels("group"),
            "design_": fitted(ChoiceDesign),
            "posterior_": is_a(
                *(FixedChoices, LearnedChoices, LinearEstimate, LinearDraws, NestedEstimate, NestedDraws),
                *(TasteChoices, SegmentedChoices),
            ),
        },
        {
            **MORE,
            **WEIGHTS_,
            "features_": FITTED_MAP,
            "table_": is_a(LongTable),
            "linear_slopes_": array("attribute"),
        },
        law_of_chooser,
    )
