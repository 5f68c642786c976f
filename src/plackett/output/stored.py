"""Schema of model files, part one: classes in models, with a check for each field.

`output.stored_models` declares the models themselves.

Axis names mean the same everywhere. *group*: classes, items, or groups of a chooser's weights; *feature*: columns of W;
*column*: covariates, or columns of a chooser's design; *component* and *axis*: learned directions and the columns they
apply to; *member*: draws and mode that predict; *trait*: a person's columns; *outcome*: predicted categories;
*described*: covariates of items; *other*: items that were never ranked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plackett.data.ballots import TABLES, Ballots
from plackett.data.choice_sets import ChoiceSets
from plackett.data.columns import Category, Number
from plackett.data.item_covariates import ItemCovariates
from plackett.data.long_table import LongTable
from plackett.data.table import MISSING, Table
from plackett.directions import Gates, LearnedDirections
from plackett.features import ExpFeatures
from plackett.features.checks import FLOOR
from plackett.features.choice_design import BENDS, ChoiceDesign
from plackett.features.gate_summary import ReadableDraw
from plackett.features.scaled_columns import Columns
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.gibbs import MOVES
from plackett.linear import LinearUtility
from plackett.model.diagnostics import ENDS, Diagnostics, Measures
from plackett.model.mixture import POOLED
from plackett.output.schema import (
    ARRAY,
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
from plackett.posterior.choosers import FixedChoices, LearnedChoices
from plackett.posterior.described import DescribedDraws, DescribedPoint
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.linear_choices import LinearDraws, LinearEstimate
from plackett.posterior.nested_choices import NestedDraws, NestedEstimate
from plackett.posterior.segment_members import SegmentDraws
from plackett.posterior.segmented_choices import SegmentedChoices
from plackett.posterior.segmented_worths import SegmentedWorths
from plackett.posterior.situations import SituationDraws, SituationPoint
from plackett.posterior.taste_choices import TasteChoices
from plackett.posterior.tiered_worths import TieredDraws
from plackett.posterior.weights import Draws, Gammas, GIGs, Point
from plackett.priors import GIG, Gamma, LogUniform
from plackett.responses.nests import Nests
from plackett.segments import Segments
from plackett.tastes import Tastes
from plackett.tastes.settings import LAWS
from plackett.tiers import Tiers


def law_of_point(made: Any, name: str, sizes: Sizes) -> None:
    """Check that weights sum to 1, and that a covariance is that of worths and parameters."""
    sums_to_one(made.weights, f"{name}.weights")
    if made.covariance is not None:
        K, p = made.weights.shape
        n = 0 if made.parameters is None else len(made.parameters)
        insist(p == 1 and len(made.covariance) == K + n, f"{name}.covariance must be that of {K + n} numbers.")
        insist((made.weights > 0).all(), f"{name}.weights must be positive where there is a covariance.")


def law_of_draws(made: Any, name: str, sizes: Sizes) -> None:
    """Check that the weights of every draw sum to 1."""
    sums_to_one(np.exp(made.log_weights), f"exp({name}.log_weights)")


def law_of_items(made: ItemCovariates, name: str, sizes: Sizes) -> None:
    """Check that the columns make as many numbers as there are."""
    n = len(made.names)
    insist(n == len(made.mean), f"{name}.columns make {n} numbers, expected {len(made.mean)}.")


def law_of_tiered(made: Any, name: str, sizes: Sizes) -> None:
    """Check that the worths of every draw sum to 1, one for each item."""
    law_of_draws(made, name, sizes)
    sizes.agree("feature", 1, f"{name}.log_weights")


def law_of_stacked(made: Any, name: str, sizes: Sizes) -> None:
    """Check that a mode has directions, weights and a weight in predictions, or none of them."""
    has_mode = made.mode_directions is not None
    alike = has_mode == (made.mode_log_weights is not None) and (has_mode or made.mode_weight == 0)
    insist(alike, f"{name} must have mode_directions, mode_log_weights and a mode_weight, or none of them.")
    sizes.agree("member", min(POOLED, math.prod(made.directions.shape[:2])) + has_mode, name)


def law_of_tastes(made: TasteChoices, name: str, sizes: Sizes) -> None:
    """Check that L is lower triangular, columns are random or fixed, and draws of persons match the other draws."""
    diagonal = np.diagonal(made.factor, axis1=-2, axis2=-1)
    right = (diagonal > 0).all() and not np.triu(made.factor, 1).any()
    insist(bool(right), f"{name}.factor must be lower triangular with a positive diagonal.")
    insist(bool((np.diff(made.random) > 0).all()), f"{name}.random must be sorted.")
    sizes.agree("column", made.mean.shape[2] + made.fixed.shape[2], f"the coefficients of {name}")
    last = (made.persons.shape[1] - 1) * made.every
    insist(last < made.mean.shape[1], f"{name}.persons must belong to existing draws, got draw number {last}.")


def law_of_segments(made: SegmentDraws, name: str, sizes: Sizes) -> None:
    """Shares sum to 1, and draws of memberships are some of the draws."""
    known = made.membership
    for held, of in ((made.shares, "shares"), (known, "membership")):
        right = held is None or (np.abs(held.sum(axis=-1) - 1) < 1e-5).all()
        insist(bool(right), f"{name}.{of} must sum to 1 over the segments.")
    right = known is None or (known.shape[1] - 1) * made.every < made.shares.shape[1]
    insist(right, f"{name}.membership must be of draws that there are.")


def law_of_segmented_choices(made: SegmentedChoices, name: str, sizes: Sizes) -> None:
    """Coefficients of columns; one draw where there are covariances, of free coefficients and shares."""
    sizes.agree("column", made.of_segments.parameters.shape[3], f"{name}.of_segments")
    estimate = made.classical is not None
    insist(estimate == (made.robust is not None), f"{name} must have classical and robust, or neither.")
    insist(not estimate or made.of_segments.shares.shape[:2] == (1, 1), f"{name} must have one draw with covariances.")
    free = np.unique(made.places[made.places >= 0])
    insist(np.array_equal(free, np.arange(len(free))), f"{name}.places must number all free coefficients.")
    if estimate:
        sizes.agree("free", made.n_free + made.of_segments.segments - 1, f"{name}.places")


def law_of_segmented_worths(made: SegmentedWorths, name: str, sizes: Sizes) -> None:
    """Log-worths of items; an estimate is one draw."""
    sizes.agree("group", made.of_segments.parameters.shape[3], f"{name}.of_segments")
    insist(made.shape.shape == made.of_segments.shares.shape[:2], f"{name}.shape must have a number for each draw.")
    insist(not made.estimate or made.shape.shape == (1, 1), f"{name} must have one draw after EM.")
    if made.covariance is not None:
        insist(made.estimate, f"{name} must have a covariance after EM only.")
        C, K = made.of_segments.parameters.shape[2:]
        sizes.agree("free", C * K + C - 1, f"{name}.of_segments")


def law_of_nests(made: Nests, name: str, sizes: Sizes) -> None:
    """Check for one name per nest, and two or more alternatives in each."""
    sizes.agree("parameter", len(made.names), f"{name}.names")
    nest = made.of_alternative
    many = np.bincount(nest[nest >= 0], minlength=len(made.names))
    insist(bool((many >= 2).all()), f"{name} must have two alternatives or more in each nest, got {many.tolist()}.")


def law_of_joint(made: NestedEstimate, name: str, sizes: Sizes) -> None:
    """Check that covariances include coefficients and dissimilarities."""
    sizes.agree("joint", len(made.coefficients) + len(made.nests.names), name)


def law_of_nested(made: LearnedChoices, name: str, sizes: Sizes) -> None:
    """Check that dissimilarities imply nests, and those of a mode imply a mode."""
    of = made.of_directions
    alike = (made.nests is None) == (of.parameters is None)
    insist(alike, f"{name} must have nests and parameters of them, or neither.")
    alike = (of.mode_parameters is not None) == (of.parameters is not None and of.mode_directions is not None)
    insist(alike, f"{name} must have mode_parameters if it has nests and a mode, only then.")


def law_of_measures(made: Any, name: str, sizes: Sizes) -> None:
    """Check that R-hat and effective sample sizes refer to the same quantities."""
    shapes = np.shape(made.rhat), np.shape(made.ess_bulk), np.shape(made.ess_tail)
    insist(len(set(shapes)) == 1, f"{name} must have rhat, ess_bulk and ess_tail of one shape, got {shapes} instead.")


def law_of_diagnostics(made: Any, name: str, sizes: Sizes) -> None:
    """Check that measured quantities are known, and have the sizes of the model."""
    insist(bool(made.groups), f"{name}.groups must name what was measured, got nothing instead.")
    for group, measured in made.groups.items():
        insist(group in DIAGNOSED, f"{name}.groups has {group!r}, expected some of {', '.join(DIAGNOSED)}.")
        DIAGNOSED[group](f"{name}.groups.{group}.rhat", measured.rhat, sizes)
    alike = (made.worst_probability is None) == (made.worst_class is None)
    insist(alike, f"{name} must have worst_probability and worst_class, or neither.")


def law_of_knots(knots: Any, name: str) -> None:
    """Check that sorted values of each covariate end in infinities if fewer, with finite sorted scores."""
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
    """Check that the gates are features, and that without a rotation directions apply to covariates."""
    sizes.agree("feature", made.offsets.size, name)
    if made.rotation is None:
        sizes.agree("axis", len(made.mean), name)
    law_of_knots(made.knots, f"{name}.knots")


def law_of_columns(made: Columns, name: str, sizes: Sizes) -> None:
    """Check that directions apply to covariates."""
    sizes.agree("axis", len(made.mean), name)
    law_of_knots(made.knots, f"{name}.knots")


def law_of_exp(made: Any, name: str, sizes: Sizes) -> None:
    """Check, if fitted, for as many features as formulas."""
    if not hasattr(made, "mean_"):
        return
    n, pairs = made.n_features_in_, bool(made.pair_sums) + bool(made.pair_differences)
    sizes.agree("feature", np.size(made.scales) * (2 * n + n * (n - 1) * pairs) + bool(made.offset), name)
    insist(made.dtype != "auto" or hasattr(made, "dtype_"), f"{name} has no 'dtype_', and its dtype is 'auto'.")


def law_of_design(made: ChoiceDesign, name: str, sizes: Sizes) -> None:
    """Check, if fitted, the number of columns against constants, attributes, bends, traits and their products."""
    if not hasattr(made, "mean_"):
        return
    constants, traits, bent = len(made.with_constant_), len(made.centre_), len(made.bent_)
    attributes = made.typical_.shape[1] + (3 * bent if made.bend == "hinges" else 0)
    if made.drop_first:
        named = ("attribute_bases_", "person_bases_", "base_levels_")
        insist(all(hasattr(made, each) for each in named), f"{name} must have {', '.join(named)}.")
        insist(made.bend == "none", f"{name} must have no bend, since it has base levels.")
        for each in (made.attribute_bases_, made.person_bases_):
            insist(len(np.unique(each)) == len(each), f"{name} must have different base levels.")
        attributes, traits = attributes - len(made.attribute_bases_), traits - len(made.person_bases_)
    if made.by_alternative:
        insist(hasattr(made, "own_") and made.bend == "none", f"{name} must have own_ and no bend.")
        attributes = len(made.own_)
        for place, axis in enumerate(("attribute", "alternative")):
            sizes.below(axis, int(made.own_[:, place].max(initial=0)), f"{name}.own_")
    sizes.agree("column", constants * (1 + traits) + attributes + (traits if made.person else 0), name)
    sizes.agree("axis", len(made.mean_), name)
    scored = made.bend == "scores" and bent > 0
    insist(
        scored == (made.knots_ is not None), f"{name} must have knots_ if attributes are bent into scores, only then."
    )
    law_of_knots(made.knots_, f"{name}.knots_")


def law_of_category(made: Category, name: str, sizes: Sizes) -> None:
    """Check for one share per level, and unique levels."""
    right = len(made.shares) == len(set(made.levels)) == len(made.levels) > 0
    insist(right, f"{name} must have different levels, each with a share.")


def law_of_sets(made: ChoiceSets, name: str, sizes: Sizes) -> None:
    """Check for alternatives and columns without any situation."""
    insist(made.start[0] == 0, f"{name}.start must be 0.")
    sizes.agree("attribute", len(made.attributes), f"{name}.attribute_columns")
    sizes.agree("trait", len(made.person), f"{name}.person_columns")


def is_dtype(value: Any) -> bool:
    """True if `ExpFeatures` accepts it as dtype."""
    try:
        return TEXT.fits(value) and (value == "auto" or np.dtype(value) in FLOOR)
    except TypeError:
        return False


BOUNDED_POSITIVE = Range(1e-50, 1e50, "between 1e-50 and 1e50")
DISSIMILARITY = Range(1e-12, 1.0, "between 0 and 1")
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
    **dict.fromkeys(("shape", "mass", "penalty", "tiers", "concentration"), ONE_MEASURE),
    "parameters": array("parameter", MEASURED),
    "gamma": array("described", MEASURED),
    **dict.fromkeys(("mean", "sd"), array("taste", MEASURED)),
    **{"fixed": array("common", MEASURED), "correlation": array("*", MEASURED)},
}
EARLY_DIAGNOSTICS = {  # fields of version 1
    **{f"{of}{name}": MEASURE for of in ("", "shape_", "probability_") for name in ("rhat", "ess_bulk", "ess_tail")},
    **dict.fromkeys(("coef", "intercept", "penalty"), is_a(Measures)),
    "error": number(MEASURED),
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
    "parameters": array("chain draw parameter", DISSIMILARITY) | NONE,
    "mode_parameters": array("parameter", DISSIMILARITY) | NONE,
}
RUN = {"random_state": whole(high=2**32 - 1) | NONE, "progress": TRUTH}
NAMES = {"feature_names_in_": labels("column", only=str)}
WIDTH = {"n_features_in_": size_of("column")}
FITTED_MAP = fitted(ExpFeatures, Gates)
FEATURE_MAP, GATES = is_a(ExpFeatures, LearnedDirections, Gates), is_a(Gates)

POINT = {
    "weights": array("group feature", SHARE),
    "log_mass": array("", BOUNDED) | NONE,
    "parameters": array("parameter", BOUNDED) | NONE,
    "covariance": array("free free", BOUNDED) | NONE,
}
DRAWS = {
    "log_weights": array("chain draw group feature", LOG_SHARE),
    "shape": array("chain draw"),  # the shape of a GIG may be negative
    "log_mass": array("chain draw", BOUNDED) | NONE,
    "parameters": array("chain draw parameter", BOUNDED) | NONE,
}

RECORDS = by_name(
    Declaration(Point, POINT, law=law_of_point),
    Declaration(DescribedPoint, POINT | {"gamma": array("described", BOUNDED)}, law=law_of_point),
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
    Declaration(Draws, DRAWS, law=law_of_draws),
    Declaration(
        DescribedDraws,
        DRAWS | {"shape": array("chain draw", POSITIVE), "gamma": array("chain draw described", BOUNDED)},
        law=law_of_draws,
    ),
    Declaration(
        TieredDraws,
        DRAWS | {"log_mass": NONE, "concentration": array("chain draw", POSITIVE)},
        law=law_of_tiered,
    ),
    Declaration(
        ItemCovariates,
        {
            "columns": COLUMNS,
            "mean": array("described"),
            "scale": array("described", SCALE),
            "z": array("group described"),
            "others": labels("other"),
            "other_z": array("other described"),
        },
        law=law_of_items,
    ),
    *(
        Declaration(cls, STACKED, law=law_of_stacked)
        for cls in (DirectionDraws, DirectionPoint, SituationDraws, SituationPoint)
    ),
    Declaration(FixedChoices, {"of_weights": is_a(Point, Gammas, GIGs, Draws)}),
    Declaration(
        LearnedChoices,
        {"of_directions": is_a(SituationDraws, SituationPoint), "nests": is_a(Nests) | NONE},
        law=law_of_nested,
    ),
    Declaration(
        Nests,
        {
            "names": each(TEXT),
            "of_alternative": array("alternative", Range(-1, np.inf, "not below -1"), "i", below="parameter"),
            "dissimilarity": array("parameter", DISSIMILARITY),
        },
        law=law_of_nests,
    ),
    Declaration(
        LinearEstimate,
        {
            "coefficients": array("column", BOUNDED),
            **dict.fromkeys(("classical", "robust"), array("column column", BOUNDED)),
            "person": array("column column", BOUNDED) | NONE,
            "spread": number(POSITIVE) | NONE,
            "converged": TRUTH,
        },
    ),
    Declaration(LinearDraws, {"coefficients": array("chain draw column", BOUNDED), "spread": number(POSITIVE)}),
    Declaration(
        TasteChoices,
        {
            "mean": array("chain draw taste", BOUNDED),
            "factor": array("chain draw taste taste", BOUNDED),
            "fixed": array("chain draw common", BOUNDED),
            "persons": array("chain kept group taste", BOUNDED),
            "every": whole(1),
            "random": array("taste", NOT_NEGATIVE, "i", below="column"),
            "sign": array("taste", Range(-1.0, 1.0, "-1, 0 or 1"), "i"),
            "correlated": TRUTH,
            "to_standard": array("column column", BOUNDED),
        },
        law=law_of_tastes,
    ),
    Declaration(
        NestedEstimate,
        {
            "coefficients": array("column", BOUNDED),
            **dict.fromkeys(("classical", "robust"), array("joint joint", BOUNDED)),
            "person": array("joint joint", BOUNDED) | NONE,
            "spread": number(POSITIVE) | NONE,
            "converged": TRUTH,
            "nests": is_a(Nests),
        },
        law=law_of_joint,
    ),
    Declaration(
        NestedDraws,
        {
            "coefficients": array("chain draw column", BOUNDED),
            "spread": number(POSITIVE),
            "dissimilarity": array("chain draw parameter", DISSIMILARITY),
            "nests": is_a(Nests),
        },
    ),
    Declaration(
        SegmentDraws,
        {
            "parameters": array("chain draw segment *", BOUNDED),
            "shares": array("chain draw segment", SHARE),
            "membership": array("chain kept person segment", SHARE) | NONE,
            "every": whole(1),
        },
        law=law_of_segments,
    ),
    Declaration(
        SegmentedChoices,
        {
            "of_segments": is_a(SegmentDraws),
            "places": array("segment column", Range(-1, np.inf, "not below -1"), "i"),
            **dict.fromkeys(("classical", "robust"), array("free free", BOUNDED) | NONE),
            "spread": number(POSITIVE) | NONE,
            "converged": TRUTH,
        },
        law=law_of_segmented_choices,
    ),
    Declaration(
        SegmentedWorths,
        {
            "of_segments": is_a(SegmentDraws),
            "shape": array("chain draw", POSITIVE),
            **dict.fromkeys(("estimate", "converged"), TRUTH),
            "covariance": array("free free", BOUNDED) | NONE,
        },
        law=law_of_segmented_worths,
    ),
    Declaration(Measures, dict.fromkeys(("rhat", "ess_bulk", "ess_tail"), MEASURE), law=law_of_measures),
    Declaration(
        Diagnostics,
        {
            "groups": mapping(TEXT, is_a(Measures)),
            **dict.fromkeys(("error", "error_95", "width", "largest_error", "apart"), number(MEASURED)),
            "prediction_rhat": number(MEASURED),
            **dict.fromkeys(("chains", "draws"), whole()),
            "ended": one_of(*ENDS),
            "worst_probability": array("chain *", SHARE) | NONE,
            "worst_class": whole(below="outcome") | NONE,
            "independent": TRUTH,
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
            **dict.fromkeys(("drop", "attributes"), each(TEXT)),
            "rankings": number(NOT_NEGATIVE),
        },
    ),
    Declaration(
        ChoiceSets,
        {
            "alternatives": labels("alternative"),
            "situations": Check("an empty array", lambda v: ARRAY.fits(v) and v.shape == (0,)),
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

SETTINGS = by_name(
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
    Declaration(Bootstrap, {"draws": COUNT, "max_iter": COUNT, "max_seconds": LIMIT}),
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
            "bend": one_of("auto", *BENDS),
        },
    ),
    Declaration(LinearUtility, {"base": SCALAR | NONE, "constants": TRUTH, "spread": number(POSITIVE) | NONE}),
    Declaration(
        Tastes,
        {
            "random": each(TEXT) | NONE,
            "law": mapping(TEXT, one_of(*LAWS)) | NONE,
            **dict.fromkeys(("correlated", "constants"), TRUTH),
        },
    ),
    Declaration(
        Segments,
        {
            **dict.fromkeys(("starts", "most", "folds"), COUNT),
            "count": COUNT | one_of("auto"),
            **dict.fromkeys(("by", "ignored"), each(TEXT) | NONE),
            "concentration": number(POSITIVE),
        },
    ),
    Declaration(Tiers, {"concentration": number(POSITIVE) | one_of("learn"), "prior": each(number(POSITIVE), size=2)}),
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
        {
            **{"constants": TRUTH, "bend": one_of(*BENDS), "person": TRUTH, "by_alternative": TRUTH},
            **{"base": SCALAR | NONE, "drop_first": TRUTH},
        },
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
        {
            "own_": array("own 2", NOT_NEGATIVE, "i"),
            "attribute_bases_": array("attribute_base", NOT_NEGATIVE, "i", below="attribute"),
            "person_bases_": array("person_base", NOT_NEGATIVE, "i", below="trait"),
            "base_levels_": mapping(TEXT, TEXT),
        },
        law_of_design,
    ),
)
