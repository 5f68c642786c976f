"""The schema of model files: every class that one may hold, each field and fitted attribute with what it must be.

Axes are named alike everywhere. *group*: classes, items, or whose weights those of a chooser are; *feature*: columns of
W; *column*: covariates, or columns of a chooser's design; *component* and *axis*: learned directions and the columns
they see; *member*: draws and mode that predict; *trait*: a person's columns; *outcome*: what is predicted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plackett.chooser import WEIGHTS, PlackettLuceChooser
from plackett.classifier import PlackettLuceClassifier
from plackett.data.ballots import TABLES, Ballots
from plackett.data.choice_sets import ChoiceSets
from plackett.data.columns import Category, Number
from plackett.data.long_table import LongTable
from plackett.data.table import MISSING, Table
from plackett.directions import Gates, LearnedDirections
from plackett.engines.factory import ENGINES
from plackett.features import ExpFeatures
from plackett.features.checks import FLOOR
from plackett.features.choice_design import BENDS, ChoiceDesign
from plackett.features.gate_summary import ReadableDraw
from plackett.features.scaled_columns import Columns
from plackett.features.standardise import FARTHEST
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.gibbs import MOVES
from plackett.logit import SparseLogitClassifier
from plackett.logit import classifier as logit
from plackett.logit.posterior import LogitDraws
from plackett.model.diagnostics import Diagnostics, Measures
from plackett.model.mixture import POOLED
from plackett.output.schema import (
    BOUNDED,
    LOG_SHARE,
    MEASURED,
    NAN,
    NONE,
    NOT_NEGATIVE,
    POSITIVE,
    SCALAR,
    SCALE,
    SHARE,
    TEXT,
    TRUTH,
    Check,
    Declaration,
    Range,
    Sizes,
    array,
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
from plackett.posterior.choosers import FixedChoices, LearnedChoices
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.situations import SituationDraws, SituationPoint
from plackett.posterior.weights import Approximation, Draws, Gammas, GIGs, Point, WeightPosterior
from plackett.priors import GIG, Gamma, LogUniform
from plackett.race_model import FEATURES, INFERENCES
from plackett.ranker import TIES, PlackettLuceRanker

LARGEST = 1e200  # of a coefficient times a covariate: sums of such do not overflow


def law_of_point(made: Any, name: str, sizes: Sizes) -> None:
    """Weights are shares of their sum."""
    sums_to_one(made.weights, f"{name}.weights")


def law_of_draws(made: Any, name: str, sizes: Sizes) -> None:
    """Weights of every draw are shares of their sum."""
    sums_to_one(np.exp(made.log_weights), f"exp({name}.log_weights)")


def law_of_stacked(made: Any, name: str, sizes: Sizes) -> None:
    """A mode has directions, weights and a weight in predictions, or none of them."""
    has_mode = made.mode_directions is not None
    alike = has_mode == (made.mode_log_weights is not None) and (has_mode or made.mode_weight == 0)
    insist(alike, f"{name} must have mode_directions, mode_log_weights and a mode_weight, or none of them.")
    sizes.agree("member", min(POOLED, math.prod(made.directions.shape[:2])) + has_mode, name)


def law_of_measures(made: Any, name: str, sizes: Sizes) -> None:
    """R-hat and effective sample sizes are of the same quantities."""
    shapes = np.shape(made.rhat), np.shape(made.ess_bulk), np.shape(made.ess_tail)
    insist(len(set(shapes)) == 1, f"{name} must have rhat, ess_bulk and ess_tail of one shape, got {shapes} instead.")


def law_of_diagnostics(made: Any, name: str, sizes: Sizes) -> None:
    """What was measured is known, and of the size that it has in the model."""
    insist(bool(made.groups), f"{name}.groups must name what was measured, got nothing instead.")
    for group, measured in made.groups.items():
        insist(group in DIAGNOSED, f"{name}.groups has {group!r}, expected some of {', '.join(DIAGNOSED)}.")
        DIAGNOSED[group](f"{name}.groups.{group}.rhat", measured.rhat, sizes)
    alike = (made.worst_probability is None) == (made.worst_class is None)
    insist(alike, f"{name} must have worst_probability and worst_class, or neither.")


def law_of_knots(knots: Any, name: str) -> None:
    """Values of every covariate rise, and end in infinities where they are fewer; scores are finite and rise."""
    if knots is None:
        return
    values, scores = knots
    with np.errstate(invalid="ignore"):
        steps, past = np.diff(values, axis=-1), np.isinf(values[:, 1:])
    right = np.isfinite(values[:, 0]).all() and (past | (steps > 0)).all() and not np.isneginf(values).any()
    right = right and (np.diff(past, axis=-1, prepend=False) >= 0).all() if past.size else right
    insist(bool(right), f"{name} must hold rising values of every covariate, then infinities.")
    right = BOUNDED.holds(scores) and (np.diff(scores, axis=-1) >= 0).all()
    insist(bool(right), f"{name} must hold finite scores that do not fall.")


def law_of_gates(made: Gates, name: str, sizes: Sizes) -> None:
    """The gates are features; without a rotation directions see the covariates."""
    sizes.agree("feature", made.offsets.size, name)
    if made.rotation is None:
        sizes.agree("axis", len(made.mean), name)
    law_of_knots(made.knots, f"{name}.knots")


def law_of_columns(made: Columns, name: str, sizes: Sizes) -> None:
    """Directions see the covariates."""
    sizes.agree("axis", len(made.mean), name)
    law_of_knots(made.knots, f"{name}.knots")


def law_of_exp(made: Any, name: str, sizes: Sizes) -> None:
    """Once it is fitted: as many features as formulas."""
    if not hasattr(made, "mean_"):
        return
    n, pairs = made.n_features_in_, bool(made.pair_sums) + bool(made.pair_differences)
    sizes.agree("feature", np.size(made.scales) * (2 * n + n * (n - 1) * pairs) + bool(made.offset), name)
    insist(made.dtype != "auto" or hasattr(made, "dtype_"), f"{name} has no 'dtype_', and its dtype is 'auto'.")


def law_of_design(made: ChoiceDesign, name: str, sizes: Sizes) -> None:
    """Once it is fitted: as many columns as constants, attributes, bends, traits and their products."""
    if not hasattr(made, "mean_"):
        return
    constants, traits, bent = len(made.with_constant_), len(made.centre_), len(made.bent_)
    hinges = 3 * bent if made.bend == "hinges" else 0
    sizes.agree("column", constants + made.typical_.shape[1] + hinges + traits + constants * traits, name)
    sizes.agree("axis", len(made.mean_), name)
    scored = made.bend == "scores" and bent > 0
    insist(
        scored == (made.knots_ is not None), f"{name} must have knots_ if attributes are bent into scores, only then."
    )
    law_of_knots(made.knots_, f"{name}.knots_")


def law_of_category(made: Category, name: str, sizes: Sizes) -> None:
    """A share for each level, and each level once."""
    right = len(made.shares) == len(set(made.levels)) == len(made.levels) > 0
    insist(right, f"{name} must have different levels, each with a share.")


def law_of_sets(made: ChoiceSets, name: str, sizes: Sizes) -> None:
    """Alternatives and columns without any situation."""
    insist(made.start[0] == 0, f"{name}.start must be 0.")
    sizes.agree("attribute", len(made.attributes), f"{name}.attribute_columns")
    sizes.agree("trait", len(made.person), f"{name}.person_columns")


def law_of_race(model: Any, posterior: Any, learned: type, fixed: bool) -> None:
    """The posterior belongs to the features, and what is said of it is there; `fixed` features do not know y."""
    kind = WeightPosterior if fixed else learned
    insist(
        isinstance(posterior, kind),
        f"posterior_ is of the kind {type(posterior).__name__}, which does not belong to features={model.features!r}.",
    )
    if fixed:
        insist(hasattr(model, "weights_"), "the model has no 'weights_'.")
        sums_to_one(model.weights_, "weights_")
    point = isinstance(posterior, (Point, DirectionPoint, SituationPoint))
    by = EM if point else Variational if isinstance(posterior, Approximation) else Gibbs
    used = model._used_inference()
    insist(isinstance(used, by), f"inference_ must be of the kind {by.__name__}, got {type(used).__name__} instead.")
    insist(getattr(used, "tune", 0) is not None, "inference_ must have its tune as a number, got None instead.")
    insist((model.trace_.ndim == 2) == (by is Gibbs), f"trace_ must not have {model.trace_.ndim} axes after {used!r}.")
    insist(by is not Gibbs or hasattr(model, "diagnostics_"), "the model has no 'diagnostics_'.")


def law_of_classifier(model: Any, name: str, sizes: Sizes) -> None:
    """Classes in order, and what learned directions are read by."""
    law_of_classes(model, name, sizes)
    learned = model._learned()
    law_of_race(model, model.posterior_, DirectionDraws, not learned)
    if learned:
        insist(isinstance(model.features_, Gates), "features_ must be of the kind Gates, with features='learned'.")
        read = hasattr(model, "readable_draw_") and (
            hasattr(model, "gate_shares_") or hasattr(model, "mean_relevance_")
        )
        insist(read, "the model has no 'readable_draw_', or no 'gate_shares_'.")
    law_of_names(model)
    if hasattr(model, "table_"):
        names = [name for column in model.table_.columns for name in column.names()]
        known = list(getattr(model, "feature_names_in_", ()))
        insist(names == known, f"table_.columns must make the columns {known}, got {names} instead.")


def law_of_names(model: Any) -> None:
    """The map of covariates knows them by the names by which the model does, if by any."""
    known, held = (getattr(part, "feature_names_in_", np.empty(0)) for part in (model, model.features_))
    insist(len(held) == 0 or np.array_equal(known, held), "features_.feature_names_in_ must be that of the model.")


def law_of_classes(model: Any, name: str, sizes: Sizes) -> None:
    """Two classes or more, in order."""
    held = model.classes_.tolist()
    try:
        right = len(held) >= 2 and sorted(held) == held
    except TypeError:
        right = False
    insist(right, f"classes_ must be two or more labels in order, got {held[:20]} instead.")


def law_of_logit(model: Any, name: str, sizes: Sizes) -> None:
    """No linear predictor overflows, however far a covariate is."""
    law_of_classes(model, name, sizes)
    coef = np.abs(model.posterior_.coef).max(axis=(0, 1, 2))
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.where(coef == 0, 0.0, coef * (np.abs(model.mean_) + FARTHEST * model.scale_))
    right = (reach <= LARGEST).all()
    insist(bool(right), "posterior_.coef must be 0 for a constant column, and such that no linear predictor overflows.")


def law_of_ranker(model: Any, name: str, sizes: Sizes) -> None:
    """Items, and a map of covariates where there are some."""
    insist(len(model.items_) >= 2, f"items_ must be two labels or more, got {model.items_.tolist()} instead.")
    plain = model.n_features_in_ == 0
    learned = not plain and model._learned()
    law_of_race(model, model.posterior_, SituationDraws, not learned)
    insist(plain != hasattr(model, "features_"), "the model must have 'features_' if it has covariates, only then.")
    if plain:
        sizes.agree("feature", 1, "a model without covariates")
        return
    insist(
        learned == isinstance(model.features_, Columns), f"features_ does not belong to features={model.features!r}."
    )
    law_of_names(model)


def law_of_chooser(model: Any, name: str, sizes: Sizes) -> None:
    """Alternatives, columns and groups are those of the schema and of the weights."""
    schema, learned = model.schema_, model._learned()
    posterior = model.posterior_.of_directions if isinstance(model.posterior_, LearnedChoices) else None
    law_of_race(model, posterior or model.posterior_.of_weights, SituationDraws, not learned)
    insist(len(schema.alternatives) >= 2, "schema_.alternatives must be two labels or more.")
    insist(learned or hasattr(model, "features_"), "the model has no 'features_'.")
    for held, known in (
        (model.alternatives_.tolist(), schema.alternatives.tolist()),
        (model.classes_.tolist(), schema.alternatives.tolist()),
        (list(model.attributes_), list(schema.attributes)),
        (list(model.person_), list(schema.person)),
    ):
        insist(held == known, f"alternatives and columns must be those of schema_, {known}, got {held} instead.")
    groups = {"shared": 1, "alternative": len(schema.alternatives)}.get(model.weights, len(model.group_labels_))
    sizes.agree("group", groups, f"weights={model.weights!r}")
    if hasattr(model, "table_"):
        names = [tuple(column.name for column in part) for part in (schema.attribute_columns, schema.person_columns)]
        held = [tuple(model.table_.attributes), tuple(model.table_.person)]
        insist(held == names, f"table_ must have the attributes and persons' columns {names}, got {held} instead.")
        n = len(model.table_.constants)
        insist(n in (0, len(schema.alternatives)), f"table_.constants must have one for each alternative, got {n}.")


def is_dtype(value: Any) -> bool:
    """Whether `ExpFeatures` takes it as dtype."""
    try:
        return isinstance(value, str) and (value == "auto" or np.dtype(value) in FLOOR)
    except TypeError:
        return False


BOUNDED_POSITIVE = Range(1e-50, 1e50, "between 1e-50 and 1e50")
COUNT, LIMIT = whole(1), number(NOT_NEGATIVE) | NONE
SHAPE_PRIOR = is_a(LogUniform, Gamma) | one_of("improper") | NONE
NUMBERS = each(number(POSITIVE)) | array("*", POSITIVE)
FOLDS = COUNT | each(each(each(whole()) | array("row", kind="i"), 2)) | NONE
COLUMNS = each(is_a(Number, Category))
KNOTS = array("2 column *", SCALE._replace(low=-np.inf, words="values and their scores")) | NONE
ONE_MEASURE = number(MEASURED) | array("", MEASURED)
MEASURE = ONE_MEASURE | array("*", MEASURED) | array("* *", MEASURED)
DIAGNOSED = {
    **{"weights": array("group feature", MEASURED), "probability": array("* *", MEASURED)},
    **{"coef": array("group column", MEASURED), "intercept": array("group", MEASURED)},
    **dict.fromkeys(("shape", "mass", "penalty"), ONE_MEASURE),
    "parameters": array("parameter", MEASURED),
}
EARLY_DIAGNOSTICS = {  # fields of version 1
    **{f"{of}{name}": MEASURE for of in ("", "shape_", "probability_") for name in ("rhat", "ess_bulk", "ess_tail")},
    **dict.fromkeys(("coef", "intercept", "penalty"), is_a(Measures)),
    "monte_carlo_error": number(MEASURED),
}
TRACE = array("chain draw") | array("iteration")
LOSSES = mapping(SCALAR | each(number()), number(MEASURED))
COUNTS = mapping(SCALAR, whole())
STACKED = {
    "directions": array("chain draw component axis", BOUNDED),
    "log_weights": array("chain draw group component", BOUNDED),
    "scales": array("chain draw axis", NOT_NEGATIVE),
    "mode_directions": array("component axis", BOUNDED) | NONE,
    "mode_log_weights": array("group component", BOUNDED) | NONE,
    "mode_weight": number(SHARE),
    "power": number(BOUNDED_POSITIVE),
}
NAMES = {"feature_names_in_": labels("column", only=str)}
WIDTH = {"n_features_in_": size_of("column")}
FITTED_MAP = fitted(ExpFeatures, Gates)

RECORDS = (
    Declaration(
        Point,
        {
            "weights": array("group feature", SHARE),
            "log_mass": array("", BOUNDED) | NONE,
            "parameters": array("parameter", BOUNDED) | NONE,
        },
        law=law_of_point,
    ),
    Declaration(
        Gammas,
        {
            "shape": array("group feature", POSITIVE),
            "rate": array("group feature", POSITIVE),
            "log_weights": array("draw group feature", LOG_SHARE),
            "log_mass": array("draw", BOUNDED) | NONE,
        },
        law=law_of_draws,
    ),
    Declaration(
        GIGs,
        {
            "shape": array("group feature"),
            "tail": number(POSITIVE),
            "rate": array("group feature", POSITIVE),
            "log_weights": array("draw group feature", LOG_SHARE),
            "log_mass": array("draw", BOUNDED) | NONE,
        },
        law=law_of_draws,
    ),
    Declaration(
        Draws,
        {
            "log_weights": array("chain draw group feature", LOG_SHARE),
            "shape": array("chain draw"),  # that of a GIG may be negative
            "log_mass": array("chain draw", BOUNDED) | NONE,
            "parameters": array("chain draw parameter", BOUNDED) | NONE,
        },
        law=law_of_draws,
    ),
    *(
        Declaration(cls, STACKED, law=law_of_stacked)
        for cls in (DirectionDraws, DirectionPoint, SituationDraws, SituationPoint)
    ),
    Declaration(FixedChoices, {"of_weights": is_a(Point, Gammas, GIGs, Draws)}),
    Declaration(LearnedChoices, {"of_directions": is_a(SituationDraws, SituationPoint)}),
    Declaration(
        LogitDraws,
        {
            "coef": array("chain draw group column"),
            "intercept": array("chain draw group", Range(-LARGEST, LARGEST, f"no larger than {LARGEST:g}")),
            "penalty": array("chain draw", POSITIVE),
        },
    ),
    Declaration(Measures, dict.fromkeys(("rhat", "ess_bulk", "ess_tail"), MEASURE), law=law_of_measures),
    Declaration(
        Diagnostics,
        {
            "groups": mapping(TEXT, is_a(Measures)),
            "monte_carlo_error": number(MEASURED),
            "largest_error": number(MEASURED),
            "prediction_rhat": number(MEASURED),
            "worst_probability": array("chain *", SHARE) | NONE,
            "worst_class": whole(below="outcome") | NONE,
        },
        law=law_of_diagnostics,
    ),
    Declaration(ReadableDraw, {"draw": whole(below="member"), "share": array("component", SHARE)}),
    Declaration(LogUniform, {"lower": number(POSITIVE), "upper": number(POSITIVE)}),
    Declaration(Gamma, dict.fromkeys(("shape", "rate", "lower", "upper"), number(POSITIVE))),
    Declaration(GIG, {"shape": number(), "tail": number(POSITIVE), "rate": number(POSITIVE)}),
    Declaration(
        Columns, {"mean": array("column"), "scale": array("column", SCALE), "knots": KNOTS}, law=law_of_columns
    ),
    Declaration(Number, {"name": TEXT, "median": number() | NAN, "indicator": TRUTH}),
    Declaration(
        Category,
        {"name": TEXT, "levels": each(TEXT), "shares": each(number(SHARE)), "indicator": TRUTH},
        law=law_of_category,
    ),
    Declaration(
        Table,
        {
            "columns": COLUMNS,
            "target": TEXT,
            "missing": one_of(*MISSING),
            "counts": COUNTS,
            "test": number(SHARE),
            "seen": array("row", kind="i"),
        },
    ),
    Declaration(
        LongTable,
        {
            **dict.fromkeys(("situation", "alternative", "choice"), TEXT),
            **dict.fromkeys(("attributes", "person"), each(TEXT)),
            **dict.fromkeys(("persons", "available"), TEXT | NONE),
            "constants": array("worth"),
            "counts": COUNTS,
            "test": number(SHARE),
            "seen": array("row", kind="i"),
        },
    ),
    Declaration(
        Ballots,
        {
            "table": one_of(*TABLES) | NONE,
            "unranked": one_of("absent", "last") | NONE,
            "counts": TEXT | NONE,
            "drop": each(TEXT),
            "rankings": number(NOT_NEGATIVE),
        },
    ),
    Declaration(
        ChoiceSets,
        {
            "alternatives": labels("alternative"),
            "situations": Check("an empty array", lambda v: isinstance(v, np.ndarray) and v.shape == (0,)),
            "start": array("1", kind="i"),
            "alternative": array("0", kind="i"),
            "values": array("0 attribute"),
            "context": array("0 trait"),
            "attribute_columns": COLUMNS,
            "person_columns": COLUMNS,
        },
        law=law_of_sets,
    ),
)

SETTINGS = (
    Declaration(
        EM,
        {"tol": number(NOT_NEGATIVE), "max_iter": COUNT, "accelerate": TRUTH, "shapes": NUMBERS, "cv": FOLDS},
    ),
    Declaration(
        Variational,
        {
            "tol": number(NOT_NEGATIVE),
            "max_iter": COUNT,
            "accelerate": TRUTH,
            "draws": COUNT,
            "shape_prior": SHAPE_PRIOR,
        },
    ),
    Declaration(
        Gibbs,
        {
            "draws": COUNT | NONE,
            "tune": whole() | NONE,
            "chains": COUNT,
            "moves": one_of(*MOVES),
            "shape_prior": SHAPE_PRIOR,
            "target_ess": LIMIT,
            "max_draws": COUNT | NONE,
            "max_seconds": LIMIT,
            "checkpoint": TEXT | NONE,
            "move_budget": number(NOT_NEGATIVE),
        },
    ),
    Declaration(
        ExpFeatures,
        {
            "scales": number(BOUNDED_POSITIVE) | each(number(BOUNDED_POSITIVE)) | array("*", BOUNDED_POSITIVE),
            **dict.fromkeys(("offset", "pair_sums", "pair_differences", "standardize"), TRUTH),
            "dtype": Check("'auto', 'float64' or 'float32'", is_dtype),
        },
        {**WIDTH, "mean_": array("column"), "scale_": array("column", SCALE)},
        {**NAMES, "dtype_": one_of("float64", "float32")},
        law_of_exp,
    ),
    Declaration(
        LearnedDirections,
        {
            "components": COUNT | NONE,
            "own_shape": number(POSITIVE),
            "covariate_spread": number(POSITIVE),
            "leapfrogs": COUNT | NONE,
        },
    ),
    Declaration(
        Gates,
        {
            "directions": array("member component axis", BOUNDED),
            "offsets": array("member component", BOUNDED),
            "mean": array("column"),
            "scale": array("column", SCALE),
            "rotation": array("column axis", BOUNDED) | NONE,
            "knots": KNOTS,
        },
        WIDTH,
        NAMES,
        law_of_gates,
    ),
    Declaration(
        ChoiceDesign,
        {"constants": TRUTH, "bend": one_of(*BENDS)},
        {
            "bent_": array("bent", NOT_NEGATIVE, "i", below="attribute"),
            "quartiles_": array("3 bent"),
            "knots_": array("2 bent knot", SCALE._replace(low=-np.inf, words="values and their scores")) | NONE,
            "centre_": array("trait"),
            "spread_": array("trait", SCALE),
            "typical_": array("alternative attribute"),
            "shares_": array("alternative", SHARE),
            "base_": whole(-1, below="alternative"),
            "with_constant_": array("constant", NOT_NEGATIVE, "i", below="alternative"),
            "names_": labels("column", only=str),
            "source_": labels("column", only=str, repeat=True),
            "mean_": array("column"),
            "scale_": array("column", SCALE),
            "unit_": array("column", SCALE),
        },
        law=law_of_design,
    ),
)

RUN = {"random_state": whole(high=2**32 - 1) | NONE, "progress": TRUTH}
RACE = {
    "inference": one_of(*INFERENCES) | is_a(EM, Variational, Gibbs),
    "shape": number(POSITIVE) | one_of("learn"),
    "rate": number(POSITIVE),
    "features": one_of(*FEATURES) | is_a(ExpFeatures, LearnedDirections, Gates),
    "prior": one_of("gamma") | is_a(GIG),
    "engine": one_of("auto", *ENGINES),
    **RUN,
}
FOUND = {"trace_": TRACE, "n_iter_": whole(), "shape_": number()}
MORE = {
    **NAMES,
    "inference_": is_a(EM, Variational, Gibbs),
    "diagnostics_": is_a(Diagnostics) | NONE,
    "cv_log_loss_": LOSSES,
}
WEIGHTS_ = {"weights_": array("group feature", SHARE)}
MODELS = (
    Declaration(
        PlackettLuceClassifier,
        {**RACE, "class_weight": mapping(SCALAR, number(POSITIVE)) | one_of("balanced") | NONE},
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
            "table_": is_a(Table),
        },
        law_of_classifier,
    ),
    Declaration(
        PlackettLuceRanker,
        {**RACE, "ties": one_of(*TIES)},
        {
            **FOUND,
            "n_features_in_": size_of("column", low=0),  # 0: no covariates
            "items_": labels("group", "outcome"),
            "posterior_": is_a(Point, Gammas, GIGs, Draws, SituationDraws, SituationPoint),
        },
        {**MORE, **WEIGHTS_, "features_": FITTED_MAP | is_a(Columns), "table_": is_a(Ballots)},
        law_of_ranker,
    ),
    Declaration(
        PlackettLuceChooser,
        {**RACE, "weights": one_of(*WEIGHTS)},
        {
            **FOUND,
            "schema_": is_a(ChoiceSets),
            "alternatives_": labels("alternative"),
            "classes_": labels("alternative", "outcome"),
            "attributes_": each(TEXT),
            "person_": each(TEXT),
            "group_labels_": labels("group"),
            "design_": fitted(ChoiceDesign),
            "posterior_": is_a(FixedChoices, LearnedChoices),
        },
        {**MORE, **WEIGHTS_, "features_": FITTED_MAP, "table_": is_a(LongTable)},
        law_of_chooser,
    ),
    Declaration(
        SparseLogitClassifier,
        {
            "sampler": one_of(*logit.SAMPLERS),
            "penalty": number(POSITIVE) | one_of("learn"),
            "penalty_prior": each(number(POSITIVE), 2),
            "penalize_intercept": TRUTH,
            "intercept_scale": number(POSITIVE),
            "standardize": TRUTH,
            "draws": COUNT | NONE,
            "tune": whole(),
            "chains": COUNT,
            "moves": one_of(*logit.MOVES),
            "target_ess": LIMIT,
            "max_draws": COUNT | NONE,
            "max_seconds": LIMIT,
            "checkpoint": TEXT | NONE,
            **RUN,
        },
        {
            **WIDTH,
            "classes_": labels("group", "outcome"),
            "posterior_": is_a(LogitDraws),
            "coef_": array("group column"),
            "intercept_": array("group"),
            "penalty_": number(POSITIVE),
            "mean_": array("column"),
            "scale_": array("column", SCALE),
            "trace_": array("chain draw"),
            "n_iter_": whole(),
            "diagnostics_": is_a(Diagnostics) | NONE,
        },
        {**NAMES, "sampler_": one_of(*logit.SAMPLERS[1:])},
        law_of_logit,
    ),
)
