"""Base of race models: their parts, descriptions of these, and the attributes of a fit."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plackett.capabilities import Combination, Kind, check
from plackett.data.validation import number_or_learn, positive
from plackett.directions import LearnedDirections
from plackett.directions.settings import LENGTH
from plackett.engines.factory import ENGINES, make_engine, offers_of
from plackett.estimator import Model
from plackett.features import ExpFeatures
from plackett.features.mapped import feature_names
from plackett.fit import Run
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit
from plackett.inference.gibbs import USUAL
from plackett.model.race import Array
from plackett.output.stored_models import race_settings
from plackett.priors import GIG

INFERENCES = {"em": EM, "variational": Variational, "gibbs": Gibbs, "bootstrap": Bootstrap}
NAMES = {EM: "EM", Variational: "variational", Gibbs: "Gibbs", Bootstrap: "bootstrap"}
Inference = EM | Variational | Gibbs | Bootstrap
FEATURES = {"exp": ExpFeatures, "learned": LearnedDirections}
STORED = race_settings(INFERENCES, FEATURES, ENGINES)
STALE = (
    *("diagnostics_", "cv_log_loss_", "design_log_loss_", "features_", "gate_shares_", "linear_slopes_"),
    *("segment_log_loss_", "mean_relevance_", "readable_draw_", "notes_", "table_"),
)


class RaceModel(Model):
    """A model with the settings inference, shape, features and prior."""

    kind: Kind
    maps: ClassVar[dict[str, Any]] = FEATURES  # feature maps by name
    inference: Any
    shape: Any
    rate: float
    features: Any
    prior: Any
    engine: str
    inference_: Inference
    features_: Any
    weights_: Array
    shape_: float

    def _run(self, groups: object, partitions: bool = False, without: bool = False) -> Run:
        """Return the parts of a fit, checked; raises for settings that would be ignored."""
        given = self._combination(groups is not None, partitions, without)
        make_engine(self.engine)
        check(given)
        shape = given.shape if given.tailed is None else float(given.tailed.shape)
        parts = self.kind, given.features, given.inference, shape, float(self.rate), given.tailed, self.engine
        return Run(*parts, bool(self.progress), self._run_settings)

    def _combination(self, grouped: bool = False, partitions: bool = False, without: bool = False) -> Combination:
        """Make the parts of a fit and check each; `without` covariates."""
        features, inference = self._make_features(), self._make_inference()
        shape = number_or_learn("shape", self.shape)
        positive("rate", self.rate)
        engine, learned = offers_of(self.engine, partitions), self._learned() and not without
        unread = ((features, features.choices_only),) if learned and self.kind.what != "choices" else ()
        parts = self, features, inference, engine, shape, self._tailed(), self.kind, learned, grouped, partitions
        return Combination(*parts, ignored=unread)

    def _keep(self, inference: Inference, fit: Fit) -> None:
        """Set the attributes of a fit, and delete those of an earlier one."""
        for stale in STALE:
            self.__dict__.pop(stale, None)
        self.inference_ = inference
        self.posterior_ = fit.posterior
        self.shape_ = fit.shape
        self.trace_ = fit.trace
        self.n_iter_ = fit.n_iter
        for name, value in fit.extra.items():
            setattr(self, name, value)

    def _know_columns(self, n_columns: int, names: list[Any] | None) -> None:
        """Store the number of columns, and their names if all are texts, as scikit-learn does."""
        self.n_features_in_ = n_columns
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters of the response."""
        return ()

    def _ties_in_words(self) -> str:
        """Describe how the law of ties was chosen."""
        return ""

    def _counted(self, K: int, p: int) -> str:
        """Describe the number of weights."""
        return f"{K} classes × {p} features"

    def _feature_names(self) -> npt.NDArray[np.object_]:
        names = feature_names(self.features_)
        if names is None:
            names = [f"feature{j}" for j in range(self.weights_.shape[1])]
        return np.asarray(names, dtype=object)

    def _prior_in_words(self) -> str:
        if self._tailed() is not None:
            return f"prior {self.prior!r}"
        return f"shape a = {self.shape_:.3g}{' (learned)' if self.shape == 'learn' else ''}"

    def _inference_in_words(self) -> tuple[str, int]:
        inference = self._used_inference()
        return NAMES[type(inference)], getattr(inference, "tune", 0)

    def _settings(self) -> dict[str, Any]:
        used = self._used_inference().get_params()
        return super()._settings() | {f"inference__{name}": value for name, value in used.items()}

    def _used_inference(self) -> Inference:
        """Return `inference_`, which model files of version 1 do not have."""
        if hasattr(self, "inference_"):
            return self.inference_
        inference = self._make_inference()
        return inference.completed(**(LENGTH if self._learned() else USUAL)) if inference.samples else inference

    def _make_inference(self) -> Inference:
        if isinstance(self.inference, str) and self.inference in INFERENCES:
            return INFERENCES[self.inference]()
        if isinstance(self.inference, (EM, Variational, Gibbs, Bootstrap)):
            return self.inference
        raise ValueError(
            f"inference must be one of {sorted(INFERENCES)} or an EM, Variational, Gibbs or Bootstrap object, "
            f"got {self.inference!r} instead."
        )

    def _tailed(self) -> GIG | None:
        """Return the prior if it is not the Gamma, else None."""
        if isinstance(self.prior, GIG):
            return self.prior.checked()
        if self.prior != "gamma":
            raise ValueError(f"prior must be 'gamma' or a plackett.priors.GIG, got {self.prior!r} instead.")
        return None

    def _learned(self) -> bool:
        return self._has(LearnedDirections)

    def _has(self, kind: type) -> bool:
        """True if the features are of this kind, by name or as settings."""
        named = isinstance(self.features, str)
        return issubclass(self.maps.get(self.features, object) if named else type(self.features), kind)

    def _takes_numbers(self) -> bool:
        """True if the feature map takes a table of numbers; other transformers define their own input."""
        return isinstance(self.features, (str, ExpFeatures, LearnedDirections))

    def _make_features(self) -> Any:
        if isinstance(self.features, str):
            if self.features not in self.maps:
                raise ValueError(
                    f"features must be one of {sorted(self.maps)} or a transformer, got {self.features!r} instead."
                )
            return self.maps[self.features]()
        if not self._learned() and not (hasattr(self.features, "fit") and hasattr(self.features, "transform")):
            raise ValueError(f"features must have fit and transform, got {self.features!r} instead.")
        return clone(self.features)
