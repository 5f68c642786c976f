"""One fit for all estimators: weights of a feature map, or weights and directions, of data in memory or in partitions.

An estimator decodes its data into `Observations` and covariates, or into a table of partitions, and names the results.
Each kind of data declares its differences in its `Kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from plackett.capabilities import SPARSE, Kind, check_moves, moves_between_modes
from plackett.cluster.blocks import hold_classes, make_blocks
from plackett.cluster.choice_parts import ChoiceRecipe, ChoiceTable
from plackett.cluster.class_parts import ClassTable
from plackett.cluster.directions import all_on_client, class_task_of, send_classes, send_situations
from plackett.cluster.held_out import choice_folds, class_folds, ranking_folds
from plackett.cluster.maps import fitted_map
from plackett.cluster.observed import observe
from plackett.cluster.ranking_parts import RankingTable
from plackett.data.choice_outcomes import Chosen
from plackett.data.observations import Codes, Observations
from plackett.data.rankings import Rankings
from plackett.data.rows import take_rows
from plackett.data.validation import all_alike
from plackett.directions.class_task import make_class_task, training_rows
from plackett.directions.learning import learn
from plackett.directions.settings import SHAPE
from plackett.directions.situation_task import make_situation_task
from plackett.directions.task import Task
from plackett.engines.base import Engine, Features, Rows
from plackett.engines.factory import choose_engine, make_engine
from plackett.engines.merged import merge_equal
from plackett.engines.situations import canonical
from plackett.features.choice_design import ChoiceDesign
from plackett.features.mapped import dense, fit_features, nonempty_rows, transform
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit, Probe, Problem
from plackett.inference.described import draw_described, held_out_shape_described, maximise_described
from plackett.inference.driver import Source
from plackett.inference.folds import (
    Fold,
    Folds,
    MakeFold,
    fold_losses,
    held_out_shape,
    path_of,
    situation_fold,
    situation_splits,
    splits,
)
from plackett.inference.limits import Clock
from plackett.inference.maximum import check_maximum, shapes_with_maximum
from plackett.inference.worth_mode import DENSE, QUICK, covariance_at
from plackett.linear.estimation import LinearTask, estimate
from plackett.linear.likelihood import pack_linear
from plackett.linear.newton import maximise
from plackett.linear.utility import SPREAD, LinearUtility
from plackett.model.race import Array
from plackett.model.taste_law import TasteLaw
from plackett.posterior.learned import of_classes, of_situations
from plackett.posterior.taste_choices import TasteChoices
from plackett.posterior.weights import Point
from plackett.priors import GIG
from plackett.responses import UnknownOrder
from plackett.responses.nests import Nests
from plackett.segments.choices import ChoicesOfPersons, check_columns
from plackett.segments.estimation import SegmentTask, estimate_choices, estimate_rankings
from plackett.segments.rankings import rankings_of_persons
from plackett.segments.segments import Segments
from plackett.tastes.panel import check_panel, make_panel
from plackett.tastes.settings import complete
from plackett.tastes.taste_chains import TasteRun
from plackett.tiers.tier_chains import draw_tiers
from plackett.tiers.tiers import Tiers


@dataclass(frozen=True)
class Run:
    """Parts and settings of one fit, checked."""

    kind: Kind
    features: Any  # unfitted feature map
    inference: EM | Variational | Gibbs | Bootstrap
    shape: float | None  # None: learned
    rate: float
    tailed: GIG | None  # prior if it is not the Gamma
    engine: str
    progress: bool
    source: Callable[[], Source]

    @property
    def moves(self) -> bool:
        """True if the sampler moves between modes, which needs the processor and a Gamma prior."""
        return moves_between_modes(self.inference) and self.tailed is None

    @property
    def samples(self) -> bool:
        """True if the inference draws from the posterior."""
        return self.inference.samples


class Prepared(NamedTuple):
    """Features and observations of one fit, in memory or on workers.

    Attributes
    ----------
    rows : callable
        Makes the rows for passes, with caching.
    folds : callable
        Makes the folds of EM(cv=...): training rows and held-out losses.
    engine : str
        Name of the engine.
    features : transformer, optional
        Fitted map; None without covariates.
    mirrors : array, optional
        Index of the inverse of each feature.
    spread : Features, optional
        Rows of W that vary if any do; None if identical rows need no warning.
    network : Rankings, optional
        Who was placed above whom, which determines whether EM has a maximum; None: it has one.
    probe : callable, optional
        Computes the probabilities to diagnose from draws of weights.
    """

    rows: Callable[[], Rows]
    folds: Callable[[Any], tuple[Folds, MakeFold]]
    engine: str
    features: Any = None
    mirrors: Codes | None = None
    spread: Features | None = None
    network: Rankings | None = None
    probe: Probe | None = None


def fit_weights(run: Run, data: Prepared) -> Fit:
    """Fit the weights of a feature map that does not depend on the outcomes, or worths without a map."""
    shape, found = run.shape, dict[str, Any]()
    if data.spread is not None and all_alike(data.spread) and shape is None and not run.samples:
        shape = 1.0  # such rows have little information about a; with 1, EM returns the shares
    if run.inference.maximises:
        if shape is None:
            shape, found["cv_log_loss_"] = _cross_validated_shape(run.inference, run, data)
        elif data.network is not None and run.tailed is None:
            check_maximum(data.network, data.rows(), shape)
    rows = data.rows()
    small = data.engine in ("auto", "numba") and rows.work < run.kind.side_by_side_below
    beside = data.engine == "dask" or (run.samples and small)
    if beside:
        rows.set_threads(1)
    run_of = run.rate, *run.source(), run.tailed, run.kind.shape_steps, beside
    fit = run.inference.fit(Problem(rows, *run_of, data.mirrors, data.probe), shape)  # type: ignore[arg-type]
    if data.features is not None:
        found["features_"] = data.features
    return replace(fit, extra=fit.extra | found)


def fit_worths(run: Run, data: Prepared) -> Fit:
    """Fit worths of items without covariates; an estimate gets the covariance of the worths if it can be had soon."""
    fit = fit_weights(run, data)
    rows, point = data.rows(), fit.posterior
    if not isinstance(point, Point) or run.tailed is not None or fit.shape < 1.0 or rows.n_groups > DENSE:
        return fit
    likelihood = rows.likelihood()
    if likelihood is None or likelihood.work_of_curvature > QUICK:
        return fit
    with np.errstate(divide="ignore"):
        log_weights = np.log(point.weights[:, 0]) + (0.0 if point.log_mass is None else point.log_mass)
    found = covariance_at(likelihood, fit.shape, run.rate, log_weights, point.parameters)
    return replace(fit, posterior=replace(point, covariance=found))


def fit_described(run: Run, data: Prepared, z: Array) -> Fit:
    """Fit worths of items with covariates z (K, d), and their coefficients."""
    shape, found = run.shape, dict[str, Any]()
    if run.inference.maximises and shape is None:
        folds = data.folds(run.inference.cv)
        shape, found["cv_log_loss_"] = held_out_shape_described(run.inference, *folds, z, run.progress)
    rows = data.rows()
    beside = run.samples and rows.work < run.kind.side_by_side_below
    if beside:
        rows.set_threads(1)
    problem = Problem(rows, run.rate, *run.source(), None, run.kind.shape_steps, beside)
    if run.inference.samples:
        fit = draw_described(run.inference, problem, shape, z)
    else:
        assert shape is not None
        fit = maximise_described(problem, shape, z)
    return replace(fit, extra=fit.extra | found)


def _cross_validated_shape(em: EM, run: Run, data: Prepared) -> tuple[float, dict[float, float]]:
    """Return the shape with the lowest held-out log-loss, and the loss of each."""
    shapes = path_of(em)
    if data.network is not None:
        shapes = shapes_with_maximum(em, shapes, data.network, data.rows())
    return held_out_shape(em, shapes, *data.folds(em.cv), run.rate, run.progress)


def prepare_map(run: Run, X: Any, seen: Observations, network: Rankings | None = None) -> Prepared:
    """Prepare rows of X with the feature map of the run, which every fold refits."""
    fitted = fit_features(run.features, X, seen.codes, seen.counts)
    W = transform(fitted, X)
    classes, on_processor = seen.situations is None, run.moves or sparse.issparse(W)
    if not classes:
        dense(W)
    elif sparse.issparse(W):
        check_moves(run.inference, SPARSE)
    name = run.engine if on_processor else choose_engine(run.engine, W.shape, seen)
    engine = make_engine(name, exact=not run.samples)

    @cache
    def rows() -> Rows:
        counts = seen.counts
        if not (classes and run.samples and counts is not None and counts.sum() <= run.kind.repeated_up_to):
            return engine.rows(W, seen)
        places = np.repeat(np.arange(len(seen)), counts.astype(np.intp))
        return engine.rows(transform(fitted, X, places), replace(seen.part(places), counts=None))

    def folds(cv: Any) -> tuple[Folds, MakeFold]:
        dealt = splits(cv, lambda: W, X, seen.class_codes) if classes else _situation_folds(cv, rows(), seen)
        return dealt, lambda train, test: _refitted(run.features, X, seen, engine, train, test)

    mirrors = getattr(fitted, "mirrors_", None)
    return Prepared(rows, folds, name, fitted, mirrors, W if classes else None, network)


def prepare_situations(
    run: Run,
    W: Array | None,
    seen: Observations,
    features: Any = None,
    network: Rankings | None = None,
    probe: Probe | None = None,
    refitted: Callable[[Codes], Array] | None = None,
) -> Prepared:
    """Prepare situations with features W of their entries, or without covariates.

    ``refitted(train)`` returns the features of all entries by a map fitted to the training situations of a fold.
    """
    chosen = W is not None and not run.moves
    name = choose_engine(run.engine, W.shape, seen) if W is not None and chosen else run.engine
    engine = make_engine(name)
    whole = cache(lambda: engine.rows(W, seen))
    # Without covariates, equal rankings with ties are merged; pairs always are, and untied ones by their sets.
    merged = W is None and isinstance(seen.response, UnknownOrder) and name in ("auto", "numba", "numpy")
    merged = merged and not (run.samples and run.inference.moves == "none")  # plain sweeps draw each copy separately
    rows = cache(lambda: engine.rows(W, merge_equal(seen))) if merged else whole

    def make(train: Codes, test: Codes) -> Fold:
        train, test = (np.arange(len(seen))[some] for some in (train, test))
        features = W if refitted is None else refitted(train)
        return situation_fold(*(engine.rows(features, seen.part(some)) for some in (train, test)))

    def folds(cv: Any) -> tuple[Folds, MakeFold]:
        return _situation_folds(cv, whole(), seen), make

    mirrors = getattr(features, "mirrors_", None)
    return Prepared(rows, folds, name, features, mirrors, None, network, probe)


def _situation_folds(cv: Any, rows: Rows, seen: Observations) -> Folds:
    return situation_splits(cv, rows.order, seen.units)


def _refitted(features: Any, X: Any, seen: Observations, engine: Engine, train: Any, test: Any) -> Fold | None:
    """Return a fold with a map fitted to its training rows; None if these have fewer than two classes."""
    train, test = (np.arange(len(seen))[some] for some in (train, test))
    part, others, some = seen.part(train), seen.part(test), take_rows(X, train)
    fitted = fit_features(clone(features), some, part.codes, part.counts)
    W, kept = nonempty_rows(fitted, some)
    if seen.situations is not None:
        both = zip((W, transform(fitted, X, test, empty=True)), (part, others), strict=True)
        return situation_fold(*(engine.rows(features, _with_own_rows(each)) for features, each in both))
    part = part.part(np.arange(len(part))[kept])
    present, codes = np.unique(part.class_codes, return_inverse=True)
    if len(present) < 2:
        return None
    W_test = transform(fitted, X, test, empty=True)

    def losses(log_weights: Sequence[Array]) -> list[tuple[Array, float]]:
        known = W_test, others.class_codes, others.weights, present, seen.n_groups
        return [(fold_losses(*known, log_weights), others.weights.sum())]

    return Fold(engine.rows(W, replace(part, codes=codes, n_groups=len(present))), losses)


def _with_own_rows(part: Observations) -> Observations:
    """Return a part of the rankings with its own rows of W."""
    outcomes, item, _ = part.all_situations
    return Observations.of_rankings(outcomes, item, part.response, part.n_groups)


def prepare_class_parts(run: Run, table: ClassTable, factors: Array) -> Prepared:
    """Prepare rows in partitions, with weights of classes; each fold refits the map."""
    recipe = table.recipe(factors, run.samples and table.repeats(factors, run.kind.repeated_up_to))
    recipe = recipe._replace(features=fitted_map(table, run.features, recipe))
    blocks = hold_classes(table.client, table.parts, recipe)

    def folds(cv: Any) -> tuple[Folds, MakeFold]:
        codes, make = class_folds(table, blocks, run.features, recipe)
        return splits(cv, lambda: blocks.features, np.empty((len(codes), 0)), codes), make

    rows, spread = cache(lambda: blocks.placed() if run.samples else blocks.rows), np.array([blocks.low, blocks.high])
    return Prepared(rows, folds, "dask", recipe.features, getattr(recipe.features, "mirrors_", None), spread)


def prepare_ranking_parts(run: Run, table: RankingTable) -> Prepared:
    """Prepare rankings in partitions; each fold refits the map."""
    recipe = table.recipe(run.features)
    rows = table.hold(recipe, run.samples)

    def folds(cv: Any) -> tuple[Folds, MakeFold]:
        order, groups, make = ranking_folds(table, run.features, recipe)
        return situation_splits(cv, order, groups), make

    network = table.network() if run.inference.maximises else None
    return Prepared(lambda: rows, folds, "dask", recipe.features, network=network)


def prepare_choice_parts(run: Run, table: ChoiceTable, recipe: ChoiceRecipe, probe: Probe) -> Prepared:
    """Prepare choices in partitions; each fold refits the design and the map."""
    rows = table.hold(recipe, run.samples)

    def folds(cv: Any) -> tuple[Folds, MakeFold]:
        order, make = choice_folds(table, rows, run.features, recipe)
        return situation_splits(cv, order, None), make

    return Prepared(lambda: rows, folds, "dask", recipe.features, probe=probe)


class Directed(NamedTuple):
    """Covariates and observations for learned directions."""

    task: Task
    training: tuple[Array, Array] | None = None  # rows and weights for summaries of the gates of classes


def fit_directions(run: Run, data: Directed) -> Fit:
    """Fit weights and directions together."""
    fit = learn(run.inference, data.task, run.features, SHAPE if run.shape is None else run.shape)
    return of_situations(fit) if data.training is None else of_classes(fit, *data.training)


def direct_classes(run: Run, X: Array, seen: Observations) -> Directed:
    """Prepare classes in memory; the passes may run on workers."""
    all_alike(X)
    engine = choose_engine(run.engine, X.shape, seen, learned=True)
    if engine == "dask":
        task = send_classes(X, seen.class_codes, seen.counts, run.source())
    else:
        task = make_class_task(X, seen.class_codes, seen.counts, run.source(), seen.units, engine)
    return Directed(task, training_rows(task))


def direct_class_parts(run: Run, table: ClassTable, factors: Array) -> Directed:
    """Prepare classes in partitions; in memory with engine="auto" if all rows come to the client anyway."""
    all_alike(np.array([table.low, table.high]))
    held = make_blocks(table.client, observe, table.parts, table.recipe(factors))
    task = class_task_of(held, run.source())
    training = training_rows(task)
    if run.engine == "auto" and all_on_client(task):
        task = make_class_task(training[0], task.seen.class_codes, training[1], run.source())
    return Directed(task, training)


def direct_situations(
    run: Run,
    designs: Sequence[Array],
    seen: Observations,
    owned: bool,
    nests: Nests | None = None,
    nest: Codes | None = None,
) -> Directed:
    """Prepare situations in memory with candidate covariates; `owned`: True if each group owns components.

    `nest` is the nest of each row, −1 for an alternative that stands alone.
    """
    engine = choose_engine(run.engine, designs[-1].shape, seen) if nests is None else "numba"
    task = make_situation_task(designs, seen, run.source(), owned, engine, nests, nest)
    return Directed(send_situations(task) if engine == "dask" else task)


def fit_linear(
    run: Run,
    design: ChoiceDesign,
    Z: Array,
    alternative: Codes,
    labels: Any,
    seen: Observations,
    nests: Nests | None = None,
) -> Fit:
    """Fit conditional or nested logit: coefficients of the columns Z of entries with these alternatives."""
    found, order, used = canonical(Z, seen.all_situations)
    entries = used[found.row]
    marked = np.append(design.with_constant_, design.base_) if design.base_ >= 0 else design.with_constant_
    return estimate(
        run.inference,
        run.features,
        LinearTask(
            pack_linear(Z[entries], found.outcomes),
            design.names_,
            alternative[entries],
            labels,
            marked,
            None if seen.units is None else seen.units[order],
            run.source(),
            nests,
        ),
    )


def fit_tastes(
    run: Run, Z: Array, seen: Chosen, person: Codes | None, law: TasteLaw, to_standard: Array, names: Any
) -> tuple[Fit, Codes]:
    """Fit random tastes: the law of coefficients of columns Z; also return the input position of each situation."""
    panel = make_panel(Z, seen.outcomes, seen.entry, person)
    loose = check_panel(panel, names, law.random)
    assert run.inference.samples
    settings = complete(run.inference)
    chains = TasteRun(settings, run.source(), panel, law, Clock(settings.max_seconds), loose)
    draws = chains.run(stacklevel=5)
    persons, every = chains.kept_tastes()
    posterior = TasteChoices(
        *law.rescaled(draws["mean"], draws["factor"], draws["fixed"], panel.scale),
        law.rescaled_tastes(persons, panel.scale).astype(np.float32),
        every,
        law.random,
        law.sign,
        law.correlated,
        to_standard,
    )
    found = {"diagnostics_": chains.diagnose(), "inference_": settings}
    n_iter = settings.tune + chains.store.iterations
    return Fit(posterior, 1.0, draws["value"], n_iter, found), panel.order  # type: ignore[arg-type]


def fit_segmented_choices(run: Run, segments: Segments, design: ChoiceDesign, Z: Array, seen: Observations) -> Fit:
    """Linear choices of persons in segments, with columns Z of entries."""
    settings: LinearUtility = run.features
    outcomes, _, row = seen.all_situations
    panel = make_panel(Z, outcomes, row, seen.units, np.ones(Z.shape[1]))
    own, ignored = segments.own_columns(design.names_, design.source_)
    precision = settings.precision(run.samples)
    persons = ChoicesOfPersons(panel.packed, panel.owned, own, ignored, precision)
    check_columns(persons, design.names_)
    task = SegmentTask(run.inference, segments, run.source(), seen.units is not None, 6)
    spread = float(settings.spread or SPREAD) if run.samples else settings.spread
    return estimate_choices(task, persons, spread)


def fit_segmented_rankings(run: Run, segments: Segments, seen: Observations) -> Fit:
    """Worths of rankers in segments."""
    if seen.units is None and (np.diff(seen.all_situations.outcomes.start) <= 2).all():
        raise ValueError(
            "a single comparison of each person does not tell segments apart. Give fit(None, R, groups=...): who made "
            "each of them."
        )
    task = SegmentTask(run.inference, segments, run.source(), seen.units is not None, 5)
    person = None if seen.units is None else np.unique(seen.units, return_inverse=True)[1].ravel()
    return estimate_rankings(task, rankings_of_persons(seen, person, 1.0), run.shape)


def fit_tiers(run: Run, tiers: Tiers, data: Prepared) -> Fit:
    """Fit worths of items in tiers, without covariates."""
    assert run.inference.samples
    rows = data.rows()
    small = rows.work < run.kind.side_by_side_below
    if small:
        rows.set_threads(1)
    problem = Problem(rows, run.rate, *run.source(), shape_steps=run.kind.shape_steps, side_by_side=small)
    return draw_tiers(run.inference, tiers, problem, run.shape)


def straight(Z: Array, seen: Observations) -> Array:
    """Return coefficients of conditional logit of standardised columns, under a nearly flat prior."""
    outcomes, _, row = seen.all_situations
    return maximise(pack_linear(Z[row], outcomes), SPREAD**-2).beta
