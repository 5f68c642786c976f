"""Choices between alternatives with attributes: estimator for choice sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from plackett.capabilities import Combination, Ignored, Kind
from plackett.choosing import choice_sets, in_partitions
from plackett.cluster.choice_parts import read_choices
from plackett.cluster.client import cluster, cluster_for
from plackett.cluster.gathering import gather_choices
from plackett.compute.blas import one_blas_thread
from plackett.data.base_levels import with_seen_levels
from plackett.data.choice_nests import check_nests, nests_of
from plackett.data.choice_outcomes import Chosen, Codes, chosen, coded_persons, situation_weights
from plackett.data.observations import Observations, Situations
from plackett.data.validation import check_whole, plain
from plackett.estimator import whole_or_not_at_all
from plackett.features.choice_design import FEW, ChoiceDesign, EntryTable
from plackett.features.entry_features import features_of_entries, fit_entries
from plackett.fit import (
    Run,
    direct_situations,
    fit_directions,
    fit_linear,
    fit_segmented_choices,
    fit_tastes,
    fit_weights,
    prepare_choice_parts,
    prepare_situations,
    straight,
)
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit
from plackett.linear import LinearUtility
from plackett.model.diagnostics import probed
from plackett.model.race import Array
from plackett.output import stored_models
from plackett.output.progress import progress_bar
from plackett.output.what_if import spread_out
from plackett.posterior.base import refuse
from plackett.posterior.choosers import NO_RANKINGS, FixedChoices, LearnedChoices
from plackett.posterior.pool import Pool
from plackett.priors import GIG
from plackett.race_model import FEATURES, STORED
from plackett.responses import make_response
from plackett.responses.choice import Choice
from plackett.responses.nests import Nests
from plackett.responses.ranking import Ranking
from plackett.segments import Segments
from plackett.tastes import Tastes
from plackett.tasting import TastingModel

if TYPE_CHECKING:
    from plackett.data.choice_sets import ChoiceSets

WEIGHTS = ("shared", "alternative", "person")
MANY = 300  # number of columns up to which conditional logit is fitted for comparison
MAPS = FEATURES | {"linear": LinearUtility}


class PlackettLuceChooser(ClassifierMixin, TastingModel):
    """Bayesian choice model: Pr(a | A) = r_a / Σ_{b ∈ A} r_b with the rate r_a = W(a)·λ of each available alternative.

    Parameters
    ----------
    inference : {"gibbs", "bootstrap", "variational", "em"} or EM, Variational, Gibbs or Bootstrap
        Method of inference; the bootstrap is for learned directions, the variational approximation for fixed features.
    shape : float or "learn"
        Shape a of the Gamma prior of the weights.
    rate : float
        Rate b of the Gamma prior. It sets the scale of the weights, which has no effect on choices: values other than 1
        are refused.
    features : "learned", "exp", "linear" or transformer
        "learned" is `LearnedDirections`: W_j = exp(z·β_j), β_j learned with the weights; z has constants of the
        alternatives, their attributes, the person's columns, and these by alternative. With a single component this is
        conditional logit. "exp" is `ExpFeatures` of the same columns, with a weight to read for every feature.
        "linear" is `LinearUtility`, conditional logit: ln r = z·β, by maximum likelihood with "em", and its posterior
        with "gibbs". `Tastes` gives coefficients that differ between persons a law over the population (mixed logit).
        Or any transformer of these columns with non-negative, dense output.
    weights : {"shared", "alternative", "person"}
        Groups of weights: shared by all entries; one per alternative, which then has no constants in z; or one per
        person, ``groups`` of `fit`, under a common prior. With ``features="linear"``,
        "alternative" gives every alternative its own coefficients of attributes.
    prior : "gamma" or GIG
        Prior of the weights of fixed features.
    engine : {"auto", "numba", "numpy", "cupy", "dask"}
        Place of the passes over the situations; "dask" is the cluster of the current Dask client, or a local one.
        "auto": on a GPU if present and entries are many, on Dask if X is in partitions, and otherwise compiled.
    random_state : int, RandomState or None
        Seed of everything random; results depend neither on threads nor on the order of the situations.
    progress : bool
        Show a progress bar; in a terminal it appears anyway after five seconds.
    nests : dict, optional
        Alternatives that substitute more closely for each other, by the name of their nest, such as
        ``{"existing": ["train", "car"]}`` (nested logit); those not named stand alone. The dissimilarity of each nest,
        between 0 and 1, is learned: see `parameters`. For features="linear", and "learned" with shared weights.
    segments : int, "auto" or Segments
        Number of segments (latent classes) of persons, ``groups`` of `fit`, each with coefficients of its own; see
        `segments_`. "auto" chooses the number by held-out persons, and `Segments` says which coefficients differ. For
        features="linear".

    Attributes
    ----------
    schema_ : ChoiceSets
        Alternatives and columns of the fit, without any situation.
    alternatives_, classes_ : (A,) array
        Labels of the alternatives, in the order of all outputs.
    attributes_, person_ : lists
        Names of attributes and of persons' columns.
    design_ : ChoiceDesign
        Design that converts choice sets to rows of numbers.
    features_ : transformer
        Fixed features only: the fitted map of these rows.
    group_labels_ : array
        Labels of the groups of weights: "all", the alternatives, or the persons.
    posterior_ : FixedChoices, LearnedChoices, LinearEstimate, LinearDraws, SegmentedChoices or TasteChoices
        Posterior.
    linear_slopes_ : (p,) array
        Learned directions only: slopes of the attributes in conditional logit of the same data; 0 where unknown.
    segment_log_loss_ : dict
        ``segments="auto"``: log-loss of a held-out person by the number of segments.
    design_log_loss_ : dict
        Learned directions, Gibbs: held-out log-loss of each bend that was tried, by its number.
    shape_, trace_, n_iter_, inference_, diagnostics_, cv_log_loss_
        As in `PlackettLuceClassifier`.

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

    maps = MAPS
    kind = Kind(
        "choices",
        "these choices are in partitions",
        "Use engine='auto', or make them from a table in memory, frame.compute().",
        "groups would be ignored: they are the persons of weights='person', or situations that features='learned' "
        "holds out together, and these weights are shared and features are fixed.",
        scale_free="choices",
        side_by_side_below=1 << 22,
    )

    def __init__(
        self,
        inference: str | EM | Variational | Gibbs | Bootstrap = "gibbs",
        shape: float | str = "learn",
        rate: float = 1.0,
        features: Any = "learned",
        weights: str = "shared",
        prior: str | GIG = "gamma",
        engine: str = "auto",
        random_state: Any = None,
        progress: bool = False,
        nests: Mapping[str, Sequence[Any]] | None = None,
        segments: int | str | Segments = 1,
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
        self.nests = nests
        self.segments = segments

    def fit(
        self, X: ChoiceSets, y: Any, *old: Any, sample_weight: Any = None, groups: Any = None
    ) -> PlackettLuceChooser:
        """Fit the model.

        Parameters
        ----------
        X : ChoiceSets
            Situations. From a Dask data frame, they stay in their partitions, except for learned directions, which
            need them on the client; y, groups and weights are then Dask arrays with the same partitions, or arrays.
        y : (n,) array or Rankings
            Label of the chosen alternative of each situation, or a ranking of available alternatives.
        sample_weight : (n,) array, optional
            Non-negative weights of the situations; a weight of 2 equals two situations. Gibbs with fixed features
            accepts whole numbers only.
        groups : (n,) array, optional
            Person of each situation, required with ``weights="person"``. With learned directions situations of one
            person are held out together.
        *old
            Groups and weights by position, in the order of earlier versions; deprecated.

        Returns
        -------
        self
        """
        if old:
            warnings.warn(
                "groups and sample_weight by position are deprecated, since their order differs from that of other "
                "models. Give them by name: fit(X, y, sample_weight=..., groups=...).",
                FutureWarning,
                stacklevel=2,
            )
            groups, sample_weight = (*old, *(groups, sample_weight)[len(old) :])
        parted = in_partitions(X)
        run = self._run(groups, parted)
        given = {"X": X, "y": y, "groups": groups, "sample_weight": sample_weight}
        if not parted:
            return self._fit_here(run, **given)
        with one_blas_thread(), cluster() as client:
            table = read_choices(client, **given)
            if self._learned():
                return self._fit_here(run, **gather_choices(table, self.weights != "alternative"))
            with whole_or_not_at_all(self):
                self._forget()
                self._know(table.schema, table.persons)
                recipe = table.recipe(run.features, self.weights, run.samples)
                self.design_, self.features_ = recipe.design, recipe.features
                probe = self._probe(*table.diagnosed())
                return self._keep_weights(run, fit_weights(run, prepare_choice_parts(run, table, recipe, probe)))

    def _fit_here(self, run: Run, X: Any, y: Any, groups: Any, sample_weight: Any) -> PlackettLuceChooser:
        """Fit to situations in memory."""
        X = choice_sets(X)
        weight = situation_weights(sample_weight, len(X))
        if self._linear() or self._tasting():
            X = with_seen_levels(X, weight)
        table = EntryTable.of(X)
        if self._tasting():
            return self._fit_tastes(run, X, chosen(X, y), sample_weight, groups)
        self._no_weights_with_segments(weight)
        if run.samples and not (self._learned() or self._linear()):
            others = "inference='variational', inference='em' or features='learned'"
            check_whole(weight, "Gibbs with fixed features", f"Use {others} for other weights.", "situation")
        given = chosen(X, y, weight)
        labels, person = coded_persons(groups, len(X))
        with whole_or_not_at_all(self):
            self._forget()
            self._know(X[:0], labels)
            nests = None if self.nests is None else nests_of(self.nests, self.alternatives_)
            refuse(NO_RANKINGS if nests is not None and given.response != "choice" else None)
            self._seen = table.take(spread_out(len(X)))
            situations = Situations(given.outcomes, self._group(table, person)[given.entry], given.entry)
            units = None if self.weights == "person" or not self._learned() else person
            response, n_groups = make_response(given.response), len(self.group_labels_)
            if not self._linear():
                _note_one_choice(X, given, weight)
            else:
                seen = Observations.of_situations(situations, response, 1, person)
                return self._fit_linear(run, X, weight, seen, nests)
            seen = Observations.of_situations(situations, response, n_groups, units)
            with one_blas_thread(), cluster_for(self.engine):
                if not self._learned():
                    fitted = partial(fit_entries, ChoiceDesign(self.weights != "alternative"), run.features, X, weight)
                    self.design_, self.features_ = fitted(np.arange(len(X)))
                    W, which = features_of_entries(self.design_, self.features_, table), probed(len(X))
                    probe = self._probe(table.take(which), None if person is None else person[which])
                    data = prepare_situations(
                        run,
                        W,
                        seen,
                        self.features_,
                        probe=probe,
                        refitted=lambda train: features_of_entries(*fitted(train), table),
                    )
                    return self._keep_weights(run, fit_weights(run, data))
                with progress_bar(False, "preparing the situations", 1):  # thousands of alternatives have constants
                    bends, constants = run.features.bends(), self.weights != "alternative"
                    designs = [ChoiceDesign(constants, bend).fit(X, weight) for bend in bends]
                    if bends[0] != "none" and not len(designs[0].bent_):
                        raise ValueError(
                            f"LearnedDirections(bend={bends[0]!r}) would be ignored: no attribute has {FEW} different "
                            "values. Leave it out."
                        )
                    designs = designs[:1] if not len(designs[-1].bent_) else designs
                    Zs, owned = [design.transform(table) for design in designs], self.weights == "alternative"
                    nest = None if nests is None else nests.of_alternative[table.alternative]
                directed = direct_situations(run, Zs, seen, owned, nests, nest)
                fit = fit_directions(run, directed)
            self.design_ = designs[fit.extra.pop("design_")]
            posterior = LearnedChoices(fit.posterior, nests)  # type: ignore[arg-type]
            self._keep(run.inference, replace(fit, posterior=posterior))  # type: ignore[arg-type]
            self.linear_slopes_ = self._straight(X, weight, seen)
        return self

    def _straight(self, X: ChoiceSets, weight: Array | None, seen: Observations) -> Array:
        """Return slopes of the attributes in conditional logit of the same data, for comparison with learned ones."""
        design, p = ChoiceDesign(person=False), len(X.attributes)
        if not isinstance(seen.response, (Choice, Ranking)) or len(X.alternatives) * (1 + len(X.person)) > MANY:
            return np.zeros(p)
        Z = design.fit(X, weight).transform(EntryTable.of(X))
        slopes = design.to_units() @ straight(Z, seen)
        first = len(design.with_constant_)
        return slopes[first : first + p]

    def _fit_linear(
        self, run: Run, X: ChoiceSets, weight: Array | None, seen: Observations, nests: Nests | None
    ) -> PlackettLuceChooser:
        """Fit conditional logit, or nested logit."""
        if not isinstance(seen.response, (Choice, Ranking)):
            raise ValueError(
                "features='linear' takes choices, and rankings in which no alternatives are tied. Leave tied rankings "
                "out, or use features='learned'."
            )
        settings: LinearUtility = run.features
        settings.check(len(X.person))
        own = self.weights == "alternative"
        design = ChoiceDesign(settings.constants, person=False, by_alternative=own, base=settings.base, drop_first=True)
        self.design_ = design.fit(X, weight)
        Z = self.design_.transform(EntryTable.of(X))
        segments = self._segmented()
        with one_blas_thread():
            if segments is not None:
                named = segments.with_levels((*X.attribute_columns, *X.person_columns), self.design_.source_)
                fit = fit_segmented_choices(run, named, self.design_, Z, seen)
            else:
                fit = fit_linear(run, self.design_, Z, X.alternative, X.alternatives, seen, nests)
        self._keep(run.inference, fit)
        return self

    def _fit_tastes(self, run: Run, X: ChoiceSets, seen: Chosen, weight: Any, groups: Any) -> PlackettLuceChooser:
        """Fit random tastes."""
        if weight is not None or (seen.outcomes.counts != 1).any():
            raise ValueError(
                "sample_weight and counts would be ambiguous: two of a situation may be two persons, or one person who "
                "chose twice. Leave them out, and give every situation as often as it was seen."
            )
        settings: Tastes = run.features
        settings.check(len(X.person))
        labels, person = coded_persons(groups, len(X))
        with whole_or_not_at_all(self), one_blas_thread():
            self._forget()
            self._know(X[:0], labels)
            self._seen = EntryTable.of(X).take(spread_out(len(X)))
            self.design_ = ChoiceDesign(settings.constants, person=False, drop_first=True).fit(X)
            own = np.delete(np.array(self.attributes_, dtype=object), self.design_.left_out()[0]).tolist()
            named = settings.with_levels((*X.attribute_columns, *X.person_columns), self.design_.source_)
            law = named.of_columns(self.design_.names_, self.design_.source_, own)
            units = self.design_.to_units()
            units[np.diag_indices(len(units))] += np.diag(units) == 0  # constant columns, refused below
            to_standard = np.asarray(np.linalg.inv(units), dtype=np.float64)
            Z = self.design_.in_units(EntryTable.of(X), to_standard)
            fit, order = fit_tastes(run, Z, seen, person, law, to_standard, self.design_.names_)
            self.group_labels_ = labels if person is not None else X.situations[order]
            self._keep(run.inference, fit)
        return self

    def _keep_weights(self, run: Run, fit: Fit) -> PlackettLuceChooser:
        """Set the attributes of a fit of weights."""
        self._keep(run.inference, replace(fit, posterior=FixedChoices(fit.posterior)))  # type: ignore[arg-type]
        self.weights_ = fit.posterior.weights
        return self

    def _run(self, groups: object, partitions: bool = False, without: bool = False) -> Run:
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {list(WEIGHTS)}, got {plain(self.weights)} instead.")
        if self._tasting() and self.weights != "shared":
            raise ValueError(
                f"weights={self.weights!r} would be ignored: with features=Tastes(...) persons have tastes of their "
                "own. Leave it out, and give fit(X, y, groups=...)."
            )
        if self.weights == "person" and self._linear():
            raise ValueError(
                "features='linear' has the same coefficients for all persons. For tastes that differ by person use "
                "features=Tastes(random=[...]), or leave weights='person' out and give fit(X, y, groups=...) for "
                "standard errors by person."
            )
        if self.weights == "person" and groups is None:
            raise ValueError("weights='person' needs fit(X, y, groups=...): the person of each situation.")
        return super()._run(groups, partitions, without)

    def _combination(self, grouped: bool = False, partitions: bool = False, without: bool = False) -> Combination:
        given = super()._combination(grouped, partitions, without)
        linear = self._linear() or self._tasting()
        given = replace(given, holds_out=given.learned or linear or self.weights == "person")
        if self.nests is not None:
            check_nests(self.nests)
            given = replace(given, refused=self._no_nests(given.learned or self._linear()))
        given = self._with_segments(given)
        if linear:
            return self._linear_combination(given)
        if not given.learned:
            ignored = getattr(given.features, "logs_ignore", None)
            return given if ignored is None else replace(given, ignored=((given.features, ignored),))
        if self.weights == "alternative":
            return given
        why = f"it is for components that others own, and with weights={self.weights!r} nobody owns one."
        unowned = [(self, Ignored(("shape",), f"{why} Leave it out, or set LearnedDirections(own_shape=...)."))]
        if given.features.components == 1:
            why = "all entries of a situation have the same weight of the only component, which cancels."
            more = f"{why} Leave it out, or give LearnedDirections more components."
            unowned += [(given.features, Ignored(("own_shape",), more)), (self, Ignored(("weights",), more))]
        return replace(given, ignored=tuple(unowned))

    def _no_nests(self, possible: bool) -> str | None:
        """Return why nests are impossible, or None."""
        if self._tasting():
            return "random tastes have no nests. Leave nests out, or use features='linear'."
        if not possible:
            return (
                "nests would need draws of weights that are not conjugate, so there are none with these features. Use "
                "features='linear' or 'learned', or leave nests out."
            )
        if self.weights != "shared" and not self._linear():
            return f"nests are for weights='shared', and these are weights={self.weights!r}. Leave one of the two out."
        if self.engine not in ("auto", "numba"):
            return f"engine={self.engine!r} has no pass over nests. Use engine='auto', or leave nests out."
        return None

    def _linear_combination(self, given: Combination) -> Combination:
        """Declare what conditional logit ignores, and where it is impossible."""
        settings, inference = given.features, given.inference
        refused = given.refused
        if self._tasting() and not inference.samples:
            refused = (
                "random tastes are drawn, by inference='gibbs': neither EM nor a variational approximation is made for "
                "them. For one set of coefficients by maximum likelihood use features='linear'; the log-likelihood "
                "integrated over persons is integrated_log_likelihood(X, y, groups)."
            )
        elif not (inference.samples or inference.maximises):
            refused = (
                "features='linear' has neither a variational approximation nor a bootstrap: use inference='em', which "
                "gives standard errors in a fraction of a second, or 'gibbs'."
            )
        elif given.partitions or self.engine not in ("auto", "numba"):
            where = "situations in partitions" if given.partitions else f"engine={self.engine!r}"
            refused = (
                f"a linear utility is compiled for situations in memory, not for {where}. Use engine='auto', and "
                "choice sets made from frame.compute()."
            )
        unread = (self, settings.unread), (inference, settings.unread_by.get(type(inference).__name__, Ignored((), "")))
        return replace(given, refused=refused, ignored=unread)

    def _forget(self) -> None:
        """Delete the attributes of an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.__dict__.pop("_seen", None)

    def _probe(self, table: EntryTable, person: Codes | None) -> Callable[[Any], Array]:
        """Return probabilities (chain, draw, situation, alternative) of some situations from draws of weights."""
        entries = self._entries(table, person)

        def probe(draws: Any) -> Array:
            shares = Pool.of(FixedChoices(draws).members(every=True), entries).shares()
            return shares.reshape(*draws.shape.shape, *shares.shape[1:])

        return probe

    def _know(self, schema: ChoiceSets, persons: npt.NDArray[Any]) -> None:
        """Store alternatives, columns and persons of a fit."""
        self.schema_ = schema
        self.alternatives_ = self.classes_ = schema.alternatives
        self.attributes_, self.person_ = list(schema.attributes), list(schema.person)
        names = {"shared": np.array(["all"]), "alternative": schema.alternatives, "person": persons}
        whose = "shared" if self._linear() else self.weights
        whose = "person" if self._tasting() or (self._segmented() is not None and len(persons)) else whose
        self.group_labels_ = names[whose]

    def score(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the share of situations in which the most probable alternative was chosen, or ranked first."""
        X = self._known_sets(X)
        seen = chosen(X, y, situation_weights(sample_weight, len(X)))
        right = self.alternatives_[X.alternative[seen.first]] == self.predict(X, groups)
        return float(np.average(right, weights=seen.outcomes.counts))


def _note_one_choice(X: ChoiceSets, given: Chosen, weight: Array | None) -> None:
    """Warn if all situations with positive weight chose the same alternative."""
    first = X.alternative[given.first] if weight is None else X.alternative[given.first][weight > 0]
    if (first == first[0]).all():
        warnings.warn(
            f"every situation chose {plain(X.alternatives[first[0]])}: the data do not say what speaks for the others.",
            UserWarning,
            stacklevel=4,
        )


stored_models.register(stored_models.chooser(PlackettLuceChooser, STORED, WEIGHTS, MAPS))
