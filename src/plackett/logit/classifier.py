"""Estimator of the sparse logit: validate, standardise, run the chains, predict."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from plackett.capabilities import check_target, refuse
from plackett.compute.blas import one_blas_thread
from plackett.data.model_input import encoded, numbers, taken
from plackett.data.validation import (
    all_alike,
    check_whole,
    class_labels,
    coded_labels,
    number_or_learn,
    positive,
    row_weights,
)
from plackett.estimator import Classifier, whole_or_not_at_all
from plackett.features.standardise import FARTHEST, mean_and_scale
from plackett.inference.base import check_run, open_ended
from plackett.inference.driver import Source
from plackett.inference.gibbs import TARGET_LIMIT
from plackett.logit.posterior import LogitDraws
from plackett.logit.run import LogitRun
from plackett.model.race import Array

SAMPLERS = ("auto", "polya-gamma", "holmes-held")
MOVES = ("all", "none")
FAR = 1e12  # limit of unstandardised covariates: Pólya-gamma weights of larger predictors cannot be drawn
DRAWS, LIMIT = 1000, 10_000  # defaults: minimum of draws, and maximum of a run without a target


class SparseLogitClassifier(Classifier):
    """Sparse Bayesian multinomial logit (Appendix A): Pr(Y=k|x) ∝ exp(intercept_k + x·coef_k), 0 for the last class.

    Each coefficient of a standardised covariate has a Laplace prior with rate √θ, θ ~ Gam(c, d) or fixed.

    Parameters
    ----------
    sampler : {"auto", "polya-gamma", "holmes-held"}
        Pólya-gamma weights, which need ``pip install 'plackett[logit]'``, or the latent variables of Holmes & Held
        (2006, corrected 2011), as in the paper, which mix more slowly. The posterior is the same. "auto": Pólya-gamma
        if the package polyagamma is installed, else Holmes–Held; name one for draws that do not depend on the
        installation.
    penalty : "learn" or float
        θ, sampled or fixed; larger values shrink the coefficients more.
    penalty_prior : (float, float)
        Shape c and rate d of θ. With c > 1 the coefficients have a posterior variance even if classes are separable.
    penalize_intercept : bool
        Give the intercepts the Laplace prior as well; otherwise each is normal with mean 0 and standard deviation
        `intercept_scale`.
    intercept_scale : float
        Standard deviation of an unpenalised intercept, for covariates at their means.
    standardize : bool
        Subtract the mean and divide by the standard deviation of each column before the prior applies. Coefficients
        are reported for the original covariates in either case; that of a constant column is 0.
    draws : int, optional
        Draws kept per chain (with ``target_ess``: at least this many, at most twice as many). None: at least 1,000, and
        then until predictions are settled, as with `Gibbs`, or to ``max_draws``; at most 2,000 are kept. Chains of
        more than 10,000 draws are thinned as with `Gibbs` if they would take too much memory.
    tune, chains : int
        Sweeps discarded before the draws, and number of chains, which start dispersed and run in parallel.
    moves : {"all", "none"}
        "none": exactly the sampler of Appendix A, corrected. "all": with three further moves, which preserve the
        posterior and mix better: a shift of all classes, a common scale, and θ drawn with τ integrated out.
    target_ess : float, optional
        Run until the bulk and tail effective sample size of every coefficient, every intercept, ln θ and predictive
        probabilities is this large and R-hat is at most 1.01, the usual standard for interpreting single coefficients;
        draws are thinned so that memory stays bounded.
    max_draws : int, optional
        Maximum number of sweeps per chain after tuning. None: 200,000 with ``target_ess``, else 10,000.
    max_seconds : float, optional
        Stop after about this time with the draws made so far; raises if there are none. The limit includes tuning and
        excludes compilation, which happens once.
    checkpoint : path, optional
        Write draws and states to this file during the run. A killed fit continues from it and ends with the draws of an
        uninterrupted one. Data, prior and settings must be the same, and ``random_state`` if it is given; draws, target
        and limits may change, so that a run can be extended. Only one fit at a time may use the file.
    random_state : int, RandomState or None
        Seed; results do not depend on the number of threads or the order of the rows.
    progress : bool
        Show a progress bar.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels, in the order of all outputs; the last is the baseline.
    coef_, intercept_ : arrays (K, d), (K,)
        Posterior means: ``X @ coef_.T + intercept_`` is the mean of the log-odds against the last class.
    posterior_ : LogitDraws
        `.coef` (chain, draw, K, d), `.intercept` (chain, draw, K) and `.penalty` (chain, draw).
    sampler_ : str
        Sampler in use.
    penalty_ : float
        Fixed θ, or its estimate (geometric mean over the draws).
    trace_ : (chain, draw) array
        Log-likelihood.
    diagnostics_ : Diagnostics
        R-hat and effective sample sizes of `.coef`, `.intercept`, `.penalty` and `.probability` of some rows.
    mean_, scale_ : (d,) arrays
        Centre and scale of the columns; the scale of a constant column is infinite.
    n_iter_ : int
        Number of sweeps per chain.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett import SparseLogitClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.where(X[:, 0] + rng.logistic(size=200) > 0, "yes", "no")
    >>> clf = SparseLogitClassifier(random_state=0).fit(X, y)
    >>> clf.coef_.shape, bool(clf.coef_[0, 0] < -0.5)  # log-odds of "no" against "yes"
    ((2, 3), True)
    """

    posterior_: LogitDraws

    def __init__(
        self,
        sampler: str = "auto",
        penalty: float | str = "learn",
        penalty_prior: tuple[float, float] = (2.0, 0.1),
        penalize_intercept: bool = False,
        intercept_scale: float = 10.0,
        standardize: bool = True,
        draws: int | None = None,
        tune: int = 1000,
        chains: int = 4,
        moves: str = "all",
        target_ess: float | None = None,
        max_draws: int | None = None,
        max_seconds: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        progress: bool = False,
    ):
        self.sampler = sampler
        self.penalty = penalty
        self.penalty_prior = penalty_prior
        self.penalize_intercept = penalize_intercept
        self.intercept_scale = intercept_scale
        self.standardize = standardize
        self.draws: Any = draws  # a number after `_completed`
        self.tune = tune
        self.chains = chains
        self.moves = moves
        self.target_ess = target_ess
        self.max_draws: Any = max_draws
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseLogitClassifier:
        """Run the chains.

        Parameters
        ----------
        X : array or data frame (n, d)
            Covariates. Texts and missing values of a data frame become numbers as by `TableEncoder`.
        y : (n,) array
            Labels: texts, whole numbers or booleans, all of one kind and none missing.
        sample_weight : (n,) array, optional
            Whole numbers: a row of weight 2 is two rows.

        Returns
        -------
        self
        """
        settings = self._completed()
        penalty, prior = settings._check_settings()
        check_target(self)
        y = class_labels(y)
        with whole_or_not_at_all(self):
            X = numbers(self, encoded(self, X))
            check_consistent_length(X, y)
            classes, codes = coded_labels(y)
            weight = row_weights(sample_weight, codes, classes)
            check_whole(weight, "SparseLogitClassifier", "PlackettLuceClassifier() takes others.")
            if weight is not None:
                repeats = weight.astype(np.intp)
                X, codes = np.repeat(X, repeats, axis=0), np.repeat(codes, repeats)
            d = X.shape[1]
            all_alike(X, stacklevel=3)
            if not self.standardize and np.abs(X).max() > FAR:
                raise ValueError(
                    f"X holds numbers as large as {np.abs(X).max():g}, too large for standardize=False, which takes "
                    f"them up to {FAR:g}: use standardize=True, or divide the columns."
                )
            mean, scale = mean_and_scale(X, np.ones(len(X))) if self.standardize else (np.zeros(d), np.ones(d))
            with one_blas_thread():
                source, goes_on = Source(*self._run_settings()), open_ended(self)
                run = LogitRun(settings, source, X, codes, mean, scale, penalty, prior, goes_on)
                draws = run.run(stacklevel=2)
                self.posterior_, self.diagnostics_ = run.posterior(), run.diagnose()
            self.classes_, self.sampler_ = classes, settings.sampler
            self.coef_ = self.posterior_.coef.mean(axis=(0, 1))
            self.intercept_ = self.posterior_.intercept.mean(axis=(0, 1))
            self.penalty_ = float(np.exp(np.log(draws["theta"]).mean()))
            self.mean_, self.scale_ = mean, scale
            self.trace_ = draws["value"]
            self.n_iter_ = run.settings.tune + run.store.iterations
        return self

    def _inference_in_words(self) -> tuple[str, int]:
        return getattr(self, "sampler_", self.sampler), min(
            self.tune, self.n_iter_
        )  # early files store it in the settings

    def _settings(self) -> dict[str, Any]:
        return self._completed().get_params(deep=True) | {"sampler": self._inference_in_words()[0]}

    def _completed(self) -> SparseLogitClassifier:
        """Return the settings with defaults for the sampler and the length of the chains."""
        usual = {"draws": DRAWS, "max_draws": LIMIT if self.target_ess is None else TARGET_LIMIT}
        left_open: dict[str, Any] = {name: value for name, value in usual.items() if getattr(self, name) is None}
        if self.sampler == "auto":
            left_open["sampler"] = "polya-gamma" if find_spec("polyagamma") is not None else "holmes-held"
        return SparseLogitClassifier(**self.get_params(deep=False) | left_open)

    def _check_settings(self) -> tuple[float | None, tuple[float, float]]:
        """Return the fixed θ, or None to learn it, and c and d."""
        for name, choices in (("sampler", SAMPLERS), ("moves", MOVES)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ValueError(f"{name} must be one of {list(choices)}, got {value!r} instead.")
        check_run(self)
        positive("intercept_scale", self.intercept_scale)
        try:
            shape, rate = self.penalty_prior
        except (TypeError, ValueError):
            raise ValueError(
                f"penalty_prior must be the two numbers (shape, rate), got {self.penalty_prior!r} instead."
            ) from None
        prior = positive("the shape in penalty_prior", shape), positive("the rate in penalty_prior", rate)
        penalty = number_or_learn("penalty", self.penalty)
        if penalty is not None:
            refuse(self, ("penalty_prior",), f"it is for penalty='learn', and penalty={penalty:g} is given.")
        if self.penalize_intercept:
            refuse(self, ("intercept_scale",), "it is for intercepts that are not penalised: penalize_intercept=False.")
        return penalty, prior

    def _rows(self, X: Any) -> Array:
        """Return new rows; raises for rows so far out that a linear predictor overflows."""
        check_is_fitted(self)
        X = numbers(self, taken(self, X), reset=False)
        with np.errstate(over="ignore"):
            lowest, highest = self.mean_ - FARTHEST * self.scale_, self.mean_ + FARTHEST * self.scale_
        clipped: Array = np.clip(X, lowest, highest)
        return clipped
