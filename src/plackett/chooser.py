"""Choices between alternatives with attributes: the face of the model for choice sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from plackett.choosing import ChoosingModel
from plackett.cluster.client import cluster, cluster_for
from plackett.compute.blas import one_blas_thread
from plackett.data.chosen import Chosen, chosen
from plackett.data.validation import check_prob, check_whole, number_or_learn, plain, positive
from plackett.directions.learning import SHAPE
from plackett.directions.situations import learn, make_situation_task
from plackett.engines import make_engine
from plackett.engines.situations import Situations, part_of, prepare_situations
from plackett.estimator import whole_or_not_at_all
from plackett.features import ExpFeatures
from plackett.features.choices import BENDS, ChoiceDesign, EntryTable
from plackett.features.mapped import feature_names, transform
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.base import Fit, Problem, SeenSituations
from plackett.inference.folds import path_of
from plackett.inference.ranking_folds import Make, folds_of, held_out_shape
from plackett.model.race import Array
from plackett.posterior.choices import ChoicePosterior, Codes, Entries
from plackett.posterior.choosers import FixedChoices, LearnedChoices
from plackett.posterior.diagnostics import probed
from plackett.priors import GIG
from plackett.responses import make_response
from plackett.settings import check_all_read_of_choices, check_all_read_of_parts

if TYPE_CHECKING:
    from plackett.data.choices import ChoiceSets

WEIGHTS = ("shared", "alternative", "person")
LOWEST = -600.0  # ln W of an entry below the largest of its situation


class PlackettLuceChooser(ClassifierMixin, ChoosingModel):
    """Bayesian choice model: Pr(a | A) = r_a / Σ_{b ∈ A} r_b with the rate r_a = W(a)·λ of each alternative at hand.

    Parameters
    ----------
    inference : {"gibbs", "variational", "em"} or EM, Variational or Gibbs
        How the posterior is found; a variational approximation is for fixed features.
    shape : float or "learn"
        The Gamma prior's shape a of the weights.
    rate : float
        The Gamma prior's rate b. It sets the scale of the weights, which has no effect on choices: others than 1 are
        refused.
    features : "learned", "exp" or transformer
        "learned" is `LearnedDirections`: W_j = exp(z·β_j), β_j learned with the weights; z has constants of the
        alternatives, their attributes, the person's columns, and these by alternative. Where one component is enough,
        that is conditional logit. "exp" is `ExpFeatures` of the same columns, with a weight to read for every feature.
        Or any transformer of them with non-negative, dense output.
    weights : {"shared", "alternative", "person"}
        Whose weights an entry uses: the same for all; those of its alternative, which then has no constants in z; or
        those of the person who chooses, ``groups`` of `fit`, under a common prior.
    prior : "gamma" or GIG
        The prior of the weights of fixed features.
    engine : {"auto", "numba", "numpy", "cupy", "dask"}
        Where the passes over the situations run; "dask" is the cluster of the Dask client in use, or a local one.
    random_state : int, RandomState or None
        Seed of everything random; results depend neither on threads nor on the order of the situations.
    progress : bool
        Show a progress bar; in a terminal one comes by itself after five seconds.

    Attributes
    ----------
    schema_ : ChoiceSets
        Alternatives and columns of the fit, without any situation.
    alternatives_, classes_ : (A,) array
        Labels of the alternatives, in the order of all outputs.
    attributes_, person_ : lists
        Names of attributes and of persons' columns.
    design_ : ChoiceDesign
        How choice sets become rows of numbers.
    features_ : transformer
        Fixed features only: the fitted map of these rows.
    group_labels_ : array
        Whose weights they are: "all", the alternatives, or the persons.
    posterior_ : FixedChoices or LearnedChoices
        What the inference left.
    shape_, trace_, n_iter_, inference_, diagnostics_, cv_log_loss_
        As those of `PlackettLuceClassifier`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from plackett import ChoiceSets, PlackettLuceChooser
    >>> rng = np.random.default_rng(0)
    >>> trips = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, 200) for a in ("bus", "car") for x in ("cost", "time")})
    >>> X = ChoiceSets.from_wide(trips, alternatives=["bus", "car"], attributes=["cost", "time"])
    >>> gain = trips.cost_car - trips.cost_bus + 2 * (trips.time_car - trips.time_bus)
    >>> y = np.where(gain + rng.logistic(size=200) > 0, "bus", "car")
    >>> model = PlackettLuceChooser("em").fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> model.willingness_to_pay("time", "cost").columns.tolist()
    ['alternative', 'value', 'lower', 'upper']
    """

    posterior_: ChoicePosterior
    inference_: EM | Variational | Gibbs

    def __init__(
        self,
        inference: str | EM | Variational | Gibbs = "gibbs",
        shape: float | str = "learn",
        rate: float = 1.0,
        features: Any = "learned",
        weights: str = "shared",
        prior: str | GIG = "gamma",
        engine: str = "auto",
        random_state: Any = None,
        progress: bool = False,
    ):
        self.inference = inference
        self.shape = shape
        self.rate = rate
        self.features = features
        self.weights = weights
        self.prior = prior
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: ChoiceSets, y: Any, groups: Any = None, sample_weight: Any = None) -> PlackettLuceChooser:
        """Fit the model.

        Parameters
        ----------
        X : ChoiceSets
            The situations. Made from a Dask data frame, they stay where they are, but for learned directions, for
            which they come here; y, groups and weights are then Dask arrays that are cut alike, or arrays.
        y : (n,) array or Rankings
            The label of the chosen alternative of each, or a ranking of alternatives that were available.
        groups : (n,) array, optional
            The person of each situation. With ``weights="person"`` needed. With learned directions situations of one
            person are held out together, where situations are held out.
        sample_weight : (n,) array, optional
            Non-negative weights of the situations; a weight of 2 is two of them. Gibbs with fixed features takes whole
            numbers alone.

        Returns
        -------
        self
        """
        inference, shape = self._checked_parts(groups)
        if in_partitions(X):
            if self._learned():
                return self._gather(inference, shape, X, y, groups, sample_weight)
            with whole_or_not_at_all(self):
                self._forget()
                with one_blas_thread():
                    self._keep_run(inference, self._fit_partitions(inference, shape, X, y, groups, sample_weight))
            return self
        return self._fit_here(inference, shape, X, y, groups, sample_weight)

    def _gather(
        self, inference: EM | Variational | Gibbs, shape: float | None, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> PlackettLuceChooser:
        """Fit learned directions to situations in partitions, which come here."""
        from plackett.cluster.gathering import gather_choices

        check_all_read_of_parts(self, True, inference, "choices")
        with one_blas_thread(), cluster():
            return self._fit_here(inference, shape, **gather_choices(self, X, y, groups, sample_weight))

    def _fit_here(
        self,
        inference: EM | Variational | Gibbs,
        shape: float | None,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: Any,
    ) -> PlackettLuceChooser:
        """Fit to situations in memory."""
        X = choice_sets(X)
        table, weight = EntryTable.of(X), situation_weights(sample_weight, len(X))
        if isinstance(inference, Gibbs) and not self._learned():
            others = "inference='variational', inference='em' or features='learned'"
            check_whole(weight, "Gibbs with fixed features", f"Use {others} for other weights.")
        seen = chosen(X, y, weight)
        labels, person = coded_persons(groups, len(X))
        with whole_or_not_at_all(self):
            self._forget()
            self._know(X[:0], labels)
            with one_blas_thread(), cluster_for(self.engine):
                if self._learned():
                    fit = self._learn_directions(inference, X, table, seen, person, shape, weight)
                else:
                    fit = self._learn_weights(inference, X, table, seen, person, shape, weight)
            self._keep_run(inference, fit)
        return self

    def _keep_run(self, inference: EM | Variational | Gibbs, fit: Fit) -> None:
        """How a fit went."""
        self.inference_ = inference
        self.shape_, self.trace_, self.n_iter_ = fit.shape, fit.trace, fit.n_iter
        for name, value in fit.extra.items():
            setattr(self, name, value)

    def _checked_parts(self, groups: Any) -> tuple[EM | Variational | Gibbs, float | None]:
        """The inference, and the shape, None to learn it; settings that nobody would read are refused."""
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {list(WEIGHTS)}, got {plain(self.weights)} instead.")
        if self.weights == "person" and groups is None:
            raise ValueError("weights='person' needs fit(X, y, groups=...): the person of each situation.")
        inference, tailed = self._make_inference(), self._tailed()
        shape = number_or_learn("shape", self.shape)
        positive("rate", self.rate)
        make_engine(self.engine)
        check_all_read_of_choices(self, self._make_features(), inference, shape, groups is not None)
        return inference, shape if tailed is None else float(tailed.shape)

    def _forget(self) -> None:
        """Nothing of a fit before is left."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _learn_weights(
        self,
        inference: EM | Variational | Gibbs,
        X: ChoiceSets,
        table: EntryTable,
        seen: Chosen,
        person: Codes | None,
        shape: float | None,
        weight: Array | None,
    ) -> Fit:
        """Weights of a feature map that does not know the outcomes."""
        self.design_ = ChoiceDesign(constants=self.weights != "alternative").fit(X, weight)
        self.features_ = self._make_features().fit(self.design_.columns(table))
        W, situations = self._situations(table, seen, person)
        held = make_response(seen.response), len(self.group_labels_), self.engine
        rows, found = prepare_situations(W, situations, *held), dict[str, Any]()
        if isinstance(inference, EM) and shape is None:

            def parts(*folds: Codes) -> tuple[Any, Any]:
                train, test = (prepare_situations(W, part_of(situations, some), *held) for some in folds)
                return train, test

            shape, found["cv_log_loss_"] = self._held_out_shape(inference, rows.order, parts)

        which = probed(len(X))
        probe = self._probe(table.take(which), None if person is None else person[which])
        shared = (float(self.rate), *self._run_settings(), self._tailed())
        seen_sets = SeenSituations(rows, probe, getattr(self.features_, "mirrors_", None))
        problem = Problem(rows, seen_sets, *shared, side_by_side=self.engine == "dask")
        fit = inference.fit(problem, shape)  # type: ignore[arg-type]
        self.weights_ = fit.posterior.weights
        self.posterior_ = FixedChoices(fit.posterior)
        return replace(fit, extra=fit.extra | found)

    def _held_out_shape(self, em: EM, order: Codes, make: Make) -> tuple[float, dict[float, float]]:
        """The shape that predicts held-out situations best, and the loss of each."""
        folds = folds_of(em.cv, order, None)
        return held_out_shape(em, path_of(em), folds, make, float(self.rate), bool(self.progress))

    def _situations(self, table: EntryTable, seen: Chosen, person: Codes | None) -> tuple[Array, Situations]:
        """W (entries, p), the largest of a situation 1, and the situations, as engines take them."""
        log_W = self._log_features(table)
        top = np.maximum.reduceat(log_W.max(axis=1), table.start[:-1])[table.situation]
        W = np.exp(np.maximum(log_W - top[:, None], LOWEST))
        W[np.isneginf(log_W)] = 0.0
        return W, Situations(seen.outcomes, self._group(table, person)[seen.entry], seen.entry)

    def _probe(self, table: EntryTable, person: Codes | None) -> Callable[[Any], Array]:
        """Probabilities (chain, draw, situation, alternative) of some situations, given draws of weights."""
        entries = self._entries(table, person)

        def probe(draws: Any) -> Array:
            shares = FixedChoices(draws).outlook(entries, every=True).shares()
            return shares.reshape(*draws.shape.shape, *shares.shape[1:])

        return probe

    def _fit_partitions(
        self,
        inference: EM | Variational | Gibbs,
        shape: float | None,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: Any,
    ) -> Fit:
        """Weights of a fixed map, fitted to situations in partitions, which stay where they are."""
        from plackett.cluster.fit_choices import prepare_choices

        check_all_read_of_parts(self, False, inference, "choices")
        with cluster():
            held = prepare_choices(self, inference, X, y, groups, sample_weight, self._know)
            found = dict[str, Any]()
            if isinstance(inference, EM) and shape is None:
                from plackett.cluster.situation_folds import choice_folds

                shape, found["cv_log_loss_"] = self._held_out_shape(inference, *choice_folds(held.rows))
            seen = SeenSituations(held.rows, self._probe(*held.some))
            shared = (float(self.rate), *self._run_settings(), self._tailed())
            fit = inference.fit(Problem(held.rows, seen, *shared, side_by_side=True), shape)  # type: ignore[arg-type]
        self.weights_ = fit.posterior.weights
        self.posterior_ = FixedChoices(fit.posterior)
        return replace(fit, extra=fit.extra | found)

    def _know(self, schema: ChoiceSets, persons: npt.NDArray[Any]) -> None:
        """Alternatives, columns and persons of a fit."""
        self.schema_ = schema
        self.alternatives_ = self.classes_ = schema.alternatives
        self.attributes_, self.person_ = list(schema.attributes), list(schema.person)
        names = {"shared": np.array(["all"]), "alternative": schema.alternatives, "person": persons}
        self.group_labels_ = names[self.weights]

    def _learn_directions(
        self,
        inference: EM | Variational | Gibbs,
        X: ChoiceSets,
        table: EntryTable,
        seen: Chosen,
        person: Codes | None,
        shape: float | None,
        weight: Array | None,
    ) -> Fit:
        """Weights and directions together, on the design that held-out situations choose.

        Where persons have weights of their own, these are learned from their other situations: situations are then held
        out, and not persons.
        """
        designs = [ChoiceDesign(self.weights != "alternative", bend).fit(X, weight) for bend in BENDS]
        designs = designs[:1] if not len(designs[-1].bent_) else designs
        seed, progress, seeded = self._run_settings()
        task = make_situation_task(
            [design.transform(table) for design in designs],
            Situations(seen.outcomes, self._group(table, person)[seen.entry], seen.entry),
            make_response(seen.response),
            len(self.group_labels_),
            seed,
            owned=self.weights == "alternative",
            persons=None if self.weights == "person" else person,
            progress=progress,
            seeded=seeded,
            engine=self.engine,
        )
        fit = learn(inference, task, self._make_features(), SHAPE if shape is None else shape)
        self.design_ = designs[fit.extra.pop("design_")]
        self.posterior_ = LearnedChoices(fit.posterior)
        return fit

    def _log_features(self, table: EntryTable) -> Array:
        """ln W (entries, p), comparable within a situation."""
        columns = self.design_.columns(table)
        if isinstance(self.features_, ExpFeatures):
            return self.features_.exponents(columns)
        W = transform(self.features_, columns, empty=True)[:]
        if sparse.issparse(W):
            raise ValueError("features of alternatives must be dense; give a map with dense output.")
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(W, dtype=np.float64))

    def _group(self, table: EntryTable, person: Codes | None) -> Codes:
        """Whose weights each entry uses; −1 for a person who is not known."""
        if self.weights == "person" and person is not None:
            return person[table.situation]
        return table.alternative if self.weights == "alternative" else np.zeros_like(table.alternative)

    def _entries(self, table: EntryTable, person: Codes | None) -> Entries:
        """Situations as the posterior takes them."""
        features = self.design_.transform(table) if self._learned() else self._log_features(table)
        group = self._group(table, person)
        return Entries(features, table.start, table.alternative, group, len(self.alternatives_))

    def _known_sets(self, X: ChoiceSets) -> ChoiceSets:
        """New choice sets with the alternatives and columns of the fit."""
        check_is_fitted(self)
        return choice_sets(X).with_schema(self.schema_)

    def _known(self, groups: Any, n: int) -> Codes:
        """The place of each person among those known; −1 for new ones, and where nobody is named."""
        if groups is None:
            return np.full(n, -1)
        if self.weights != "person":
            raise ValueError(
                "groups would be ignored: only with weights='person' do persons have weights of their own."
            )
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise ValueError(f"groups must have one label for each of the {n} situations, got shape {labels.shape}.")
        place = {label: k for k, label in enumerate(self.group_labels_.tolist())}
        return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)

    def _rows(self, X: Any, groups: Any = None) -> Entries:
        X = self._known_sets(X)
        return self._entries(EntryTable.of(X), self._known(groups, len(X)))

    def predict_proba(self, X: ChoiceSets, groups: Any = None) -> Any:
        """Probabilities (n, A) of all alternatives, averaged over the posterior; 0 where one is not available.

        Of situations in partitions, a Dask array.

        Parameters
        ----------
        X : ChoiceSets
            New situations.
        groups : (n,) array, optional
            With ``weights="person"``, who chooses. Those who were in the fit are predicted with their own weights; a
            new one, as one of those known drawn at random.
        """
        if in_partitions(X):
            return self._lazily("predict_proba", X, groups)
        return self.posterior_.predict(self._rows(X, groups))

    def _lazily(self, method: str, X: Any, groups: Any) -> Any:
        """Predictions of situations in partitions, made where they lie when they are asked for."""
        from plackett.cluster.predicting import lazily

        check_is_fitted(self)
        if groups is not None:
            raise ValueError(
                "of situations in partitions, predictions are for persons who are not named: leave groups."
            )
        return lazily(self, method, X)

    def predict_interval(self, X: ChoiceSets, prob: float = 0.9, groups: Any = None) -> tuple[Array, Array]:
        """Equal-tailed credible intervals of the probabilities, two arrays (n, A)."""
        rows = self._rows(X, groups)
        return self.posterior_.interval(rows, check_prob(prob))

    def predict(self, X: ChoiceSets, groups: Any = None) -> Any:
        """The most probable alternative of each situation."""
        if in_partitions(X):
            return self._lazily("predict", X, groups)
        labels: npt.NDArray[Any] = self.alternatives_[np.argmax(self.predict_proba(X, groups), axis=1)]
        return labels

    def score(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """The share of situations in which the most probable alternative was chosen, or ranked first."""
        X = self._known_sets(X)
        seen = chosen(X, y, situation_weights(sample_weight, len(X)))
        right = self.alternatives_[X.alternative[seen.first]] == self.predict(X, groups)
        return float(np.average(right, weights=seen.outcomes.counts))

    def log_likelihood(self, X: ChoiceSets, y: Any, groups: Any = None) -> Array:
        """ln of the predicted probability of what was seen in each situation, (n,)."""
        X = self._known_sets(X)
        return self.posterior_.log_probability(self._rows(X, groups), chosen(X, y))

    def _one(self, X: ChoiceSets) -> tuple[EntryTable, Codes]:
        """The table of one situation, of a person who is not known."""
        if len(choice_sets(X)) != 1:
            raise ValueError(f"expected one situation, got {len(X)} instead. Take one, such as X[0].")
        return EntryTable.of(self._known_sets(X)), np.array([-1])

    def to_arviz(self, X: Any = None, y: Any = None, raw: bool = False, groups: Any = None) -> Any:
        """The draws as ArviZ InferenceData (DataTree with ArviZ 1.x), as those of `PlackettLuceClassifier`.

        Parameters
        ----------
        X : ChoiceSets, optional
            Situations to predict.
        y : (n,) array or Rankings, optional
            What was seen, for the log-likelihood: ``az.loo`` is over situations. Of rankings it has no κ in it, and no
            mode beside the draws, and there is no group of observed data.
        raw : bool
            Export also draws that are not identified one by one.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        InferenceData or DataTree
            ``probability`` and ``y`` have alternatives where those of a classifier have classes.
        """
        from plackett.output.arviz import to_arviz

        check_is_fitted(self)
        return to_arviz(self, X, y, raw, groups=groups)

    def _observed(self, X: Any, y: Any, groups: Any = None) -> tuple[Entries, Any]:
        X = self._known_sets(X)
        seen = chosen(X, y)
        return self._rows(X, groups), X.alternative[seen.first] if seen.response == "choice" else seen

    def _feature_names(self) -> npt.NDArray[np.object_]:
        names = feature_names(self.features_, self.design_.names_)
        if names is None:
            names = [f"feature{j}" for j in range(self.weights_.shape[1])]
        return np.asarray(names, dtype=object)

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "weights of", self.group_labels_


def in_partitions(X: Any) -> bool:
    """Whether these are situations that stay where their partitions are."""
    from plackett.cluster.choices import PartedChoices

    return isinstance(X, PartedChoices)


def choice_sets(X: Any) -> ChoiceSets:
    """The same, where they are choice sets."""
    from plackett.data.choices import ChoiceSets

    if in_partitions(X):
        raise ValueError(
            "these situations are in partitions, which fit, predict and predict_proba take; here give some that are in "
            "memory, made from frame.partitions[0].compute()."
        )
    if not isinstance(X, ChoiceSets):
        raise ValueError(
            f"X must be ChoiceSets, got {type(X).__name__} instead. Make them with ChoiceSets.from_long(frame, ...) or "
            "ChoiceSets.from_wide(frame, ...)."
        )
    return X


def situation_weights(sample_weight: Any, n: int) -> Array | None:
    """Finite, non-negative weights of n situations; None where all are 1."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one number for each of the {n} situations, got {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all of it zero.")
    return None if (weight == 1).all() else weight


def coded_persons(groups: Any, n: int) -> tuple[npt.NDArray[Any], Codes | None]:
    """Labels of persons and the person of each of n situations; None where nobody is named."""
    if groups is None:
        return np.array([]), None
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups must have one label for each of the {n} situations, got shape {labels.shape}.")
    found, place = np.unique(labels, return_inverse=True)
    if len(found) < 2:
        raise ValueError("groups must hold at least two persons.")
    return found, place.ravel().astype(np.intp)
