"""Sections of a report on choices: data, effects and elasticities, predictions and explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plackett import plots
from plackett.choosing import choice_sets
from plackett.data.choice_outcomes import chosen
from plackett.data.labels import Codes
from plackett.data.types import LabelsLike, MatrixLike
from plackett.explaining import explain
from plackett.model.race import Array
from plackett.output.constants import choice_constants, quality_of_choices, quality_of_constants
from plackett.output.html import text
from plackett.output.published import note_of
from plackett.plots.style import REST, colour, label
from plackett.posterior.linear_choices import LinearEstimate
from plackett.report import sections, segment_sections, words
from plackett.report.figures import figure
from plackett.report.markup import Cell, Head, Section, facts, paragraph, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from plackett.chooser import PlackettLuceChooser
    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.rankings import Rankings


PROB = 0.9  # of intervals
FEW = 12  # alternatives up to which effects of one on all others are listed
LISTED = 300  # rows of a table
WHY = 12  # lines of an explanation
LINEAR = {
    False: (
        "By how much the log-rate of an alternative rises per unit of a column, by maximum likelihood, with classical "
        "standard errors and 90 % intervals; p is that of a two-sided test of 0. Constants are against the alternative "
        "that has none, for a person whose columns are all 0."
    ),
    True: (
        "By how much the log-rate of an alternative rises per unit of a column: posterior mean, standard deviation and "
        "90 % interval. Constants are against the alternative that has none, for a person whose columns are all 0."
    ),
}
TASTES = (
    "The law of tastes over the population: means and standard deviations of the coefficients with 90 % intervals, of "
    "a log-normal law those of its logarithm; the median and the mean of the coefficient itself, and the share of the "
    "population with a positive one. Fixed coefficients are the same for all."
)


@dataclass(frozen=True)
class ReportedChoices:
    """Situations with their outcomes, and their persons if these have separate weights."""

    X: ChoiceSets
    y: LabelsLike | Rankings
    groups: LabelsLike | None = None

    @classmethod
    def of(
        cls,
        model: PlackettLuceChooser,
        X: MatrixLike | ChoiceSets | None,
        y: LabelsLike | Rankings,
        groups: LabelsLike | None = None,
    ) -> ReportedChoices:
        """Situations with the alternatives and columns of the model."""
        sets = choice_sets(X).with_schema(model.schema_)
        if not len(sets) or len(sets) != len(y):
            raise ValueError(f"a report needs situations and as many choices, got {len(sets)} and {len(y)} instead.")
        return cls(sets, y, groups)

    @property
    def first(self) -> npt.NDArray[np.intp]:
        """Code of the alternative that was chosen, or ranked first, in each situation."""
        return self.X.alternative[chosen(self.X, self.y).first]


def pages(
    model: PlackettLuceChooser, fit: ReportedChoices, test: ReportedChoices | None
) -> tuple[str, str, list[Section]]:
    """Title, lead and sections of the report."""
    judged = fit if test is None else test
    own = quality_of_choices(model, judged.X, judged.y, judged.groups)
    which = "held-out situations" if test is not None else "situations of the fit itself"
    lead = f"{own.right:.1%} of {len(judged.X):,} {which} predicted right, {len(model.alternatives_)} alternatives."
    parts = [
        data(fit, test),
        sections.model(model),
        segment_sections.segments(model),
        coefficients(model),
        nests(model),
        statistics(model, fit),
        effects(model, fit),
        predictions(model, fit, test),
        why(model, judged) if model._no_explanation() is None else None,
        sections.colophon(model),
    ]
    several = f"{len(model.alternatives_)} alternatives, {len(fit.X):,} situations"
    return f"Choices between {several}", lead, [part for part in parts if part is not None]


def data(fit: ReportedChoices, test: ReportedChoices | None) -> Section:
    """Situations, alternatives and columns."""
    X, first = fit.X, fit.first
    there, times = X.available.sum(axis=0), np.bincount(first, minlength=len(X.alternatives))
    numbers = [("Situations", f"{len(X):,}"), ("Alternatives", f"{len(X.alternatives):,}")]
    if test is not None and test.X is X:
        numbers[0] = ("Situations, all held out", f"{len(X):,}")
    elif test is not None:
        numbers.insert(1, ("Situations held out", f"{len(test.X):,}"))
    numbers += [("Attributes", f"{len(X.attributes):,}"), ("Columns of the person", f"{len(X.person):,}")]
    rows = [
        [name, int(there[a]), int(times[a]), 100 * times[a] / there[a] if there[a] else np.nan]
        for a, name in enumerate(X.alternatives.tolist())
    ]
    heads = [Head("Alternative"), *(Head(name, True) for name in ("Available", "Chosen", "% where available"))]
    body = [facts(numbers), table("Alternatives", heads, rows, sortable=True)]
    span = [Head("Column"), Head("Of"), *(Head(name, True) for name in ("Lowest", "Mean", "Highest"))]
    columns = [*_spans(X.attributes, X.values, "alternatives"), *_spans(X.person, X.context, "the person")]
    if columns:
        body.append(table("Columns", span, columns))
    return Section("data", "Data", "\n".join(body))


def _spans(names: tuple[str, ...], block: Array, of: str) -> list[list[Cell]]:
    return [[name, of, *map(float, (x.min(), x.mean(), x.max()))] for name, x in zip(names, block.T, strict=True)]


def coefficients(model: PlackettLuceChooser) -> Section:
    """Marginal utilities of learned directions, or weights of fixed features."""
    title, found = model.posterior_.largest(model, LISTED)
    names = [name for name in found if found[name].dtype.kind in "OU"]
    heads = [Head(name.capitalize(), name not in names) for name in found]
    rows = [list(row) for row in zip(*found.values(), strict=True)]
    if model._linear():
        told = LINEAR[model.posterior_.no_chains is None]
        if isinstance(model.posterior_, LinearEstimate) and model.posterior_.person is not None:
            by_person = model.coefficients(PROB, "person")["std_error"]
            heads.append(Head("Std_error by person", True))
            rows = [[*row, float(error)] for row, error in zip(rows, by_person, strict=False)]
    elif model._tasting():
        told = TASTES
    elif "coefficient" in found:
        told = (
            "By how much the log-rate of an alternative rises per unit of a column, at average alternatives and for an "
            "average person. With one direction these are the coefficients of conditional logit; constants are against "
            "the alternative that has none."
        )
    else:
        told = "Each weight says how fast a feature is: the larger, the more it speaks for an alternative that has it."
    levels = model.design_.known_base_levels()
    told += f" {note_of(levels)}." if levels else ""
    return Section(
        "weights", title.capitalize(), paragraph(told) + table(title.capitalize(), heads, rows, sortable=True)
    )


def statistics(model: PlackettLuceChooser, fit: ReportedChoices) -> Section | None:
    """Measures of fit as papers print them; None for rankings with ties."""
    if (chosen(fit.X, fit.y).outcomes.sizes != 1).any():
        return None
    found = model.fit_statistics(fit.X, fit.y, groups=fit.groups)
    heads = [Head("Statistic"), Head("Value")]
    told = (
        "On the situations of the fit, so that AIC and BIC, not the log-likelihood, compare models of different size."
    )
    return Section("fit", "Fit", paragraph(told) + table("Fit statistics", heads, found.rows()))


def nests(model: PlackettLuceChooser) -> Section | None:
    """Alternatives of each nest, and its dissimilarity; None without nests."""
    found, certain = model.posterior_.nests, model.posterior_.no_chains is not None and not model._linear()
    if found is None:
        return None
    frame = model.parameters(PROB)
    numbers = ["mean", *(["lower", "upper"] if not certain else []), *(["std_error"] if "std_error" in frame else [])]
    titles = {"mean": "Dissimilarity", "lower": "5%", "upper": "95%", "std_error": "Standard error"}
    rows = [
        [name, ", ".join(map(str, model.alternatives_[found.of_alternative == g])), *map(float, frame[numbers].iloc[g])]
        for g, name in enumerate(found.names)
    ]
    told = (
        "Alternatives of a nest substitute for each other more than for others, the more the smaller its dissimilarity "
        "is, a number between 0 and 1; at 1 the nest makes no difference. Some programs print 1/dissimilarity."
    )
    heads = [Head("Nest"), Head("Alternatives"), *(Head(titles[name], True) for name in numbers)]
    return Section("nests", "Nests", paragraph(told) + table("Nests", heads, rows))


def effects(model: PlackettLuceChooser, fit: ReportedChoices) -> Section | None:
    """Elasticities and average marginal effects; None for more than FEW alternatives."""
    if len(model.alternatives_) > FEW or not (model.attributes_ or model.person_):
        return None
    certain = model.posterior_.no_interval is not None
    body = [paragraph(words.choice_effects(certain))]
    quantities = [name for f, name in enumerate(model.attributes_) if _is_quantity(fit.X.values[:, f])]
    found = {name: model.elasticities(fit.X, name, PROB, fit.groups) for name in quantities}
    drawn = [_elasticities(k, name, frame, certain) for k, (name, frame) in enumerate(found.items()) if k < 4]
    if drawn:
        body.append(f'<div class="figures">{"".join(drawn)}</div>')
    numbers = ["lower", "upper", "positive"][: 0 if certain else 3]
    ends = [Head({"lower": "5%", "upper": "95%", "positive": "Above 0"}[name], True) for name in numbers]
    if found:
        heads = [Head("Attribute"), Head("Of"), Head("Probability of"), Head("Elasticity", True), *ends]
        rows = [
            [name, *row]
            for name, frame in found.items()
            for row in frame[["of", "alternative", "elasticity", *numbers]].itertuples(index=False, name=None)
        ]
        body.append(_listed("Elasticities", heads, rows))
    frame = model.effects(fit.X, PROB, fit.groups)
    heads = [Head("Column"), Head("Of"), Head("Probability of")]
    heads += [Head("Per standard deviation", True), Head("Per unit", True), *ends]
    shown = frame[["attribute", "of", "alternative", "effect_per_sd", "effect", *numbers]]
    body.append(_listed("Average marginal effects", heads, list(map(list, shown.itertuples(index=False, name=None)))))
    return Section("effects", "Effects and elasticities" if found else "Effects", "\n".join(body))


def _is_quantity(x: Array) -> bool:
    """True if percentages make sense: all values are non-negative and not just 0 and 1."""
    return bool((x >= 0).all() and not np.isin(x, (0.0, 1.0)).all())


def _listed(caption: str, heads: list[Head], rows: list[list[Cell]]) -> str:
    more = f", {LISTED} of {len(rows)}" if len(rows) > LISTED else ""
    return table(caption + more, heads, rows[:LISTED], sortable=True)


def _elasticities(k: int, name: str, frame: pd.DataFrame, certain: bool) -> str:
    """Own elasticities of one attribute."""
    own = frame[(frame["of"] == frame["alternative"]) & frame["elasticity"].notna()]
    places = np.arange(len(own))

    def draw(ax: Axes) -> None:
        if not certain:
            ax.hlines(places, own["lower"], own["upper"], color=colour(0), linewidth=2)
        ax.plot(own["elasticity"], places, "o", color=colour(0))
        ax.axvline(0, color=REST, linewidth=0.8, zorder=0)
        ax.set_yticks(places, [label(each, 22) for each in own["of"]])
        ax.set_ylim(len(own) - 0.5, -0.5)
        ax.set_xlabel("own elasticity" + ("" if certain else f", {100 * PROB:g} % intervals"))
        ax.set_title(label(name), fontsize="medium")

    told = "; ".join(f"{of} {value:.2f}" for of, value in zip(own["of"], own["elasticity"], strict=True))
    caption = f"{name}: by how many per cent an alternative is chosen more if its own {name} rises by one."
    return figure(f"elasticity{k}", draw, f"Own elasticities of {name}: {told}.", caption, 1.2 + 0.3 * len(own))


def predictions(model: PlackettLuceChooser, fit: ReportedChoices, test: ReportedChoices | None) -> Section:
    """Log-likelihood and accuracy, compared with constants alone and equal chances, and the confusion matrix."""
    judged, A = fit if test is None else test, len(model.alternatives_)
    own = quality_of_choices(model, judged.X, judged.y, judged.groups)
    equal = quality_of_constants(np.zeros(A), judged.X, judged.y)
    rows = [["This model", own.log_likelihood, 100 * own.right]]
    constants = _constants(model, fit, test)
    if constants is not None:
        alone = quality_of_constants(constants, judged.X, judged.y)
        rows.append(["Constants alone", alone.log_likelihood, 100 * alone.right])
    rows.append(["Equal chances", equal.log_likelihood, np.nan])
    heads = [Head("Prediction"), Head("Log-likelihood a situation", True), Head("% right", True)]
    measured = [
        ("Situations", f"{len(judged.X):,}"),
        ("Log-likelihood a situation", f"{own.log_likelihood:.3f}"),
        ("Predicted right", f"{own.right:.1%}"),
    ]
    if constants is not None:
        measured.append(("Log-likelihood of constants alone", f"{alone.log_likelihood:.3f}"))
    predicted = model.alternatives_[model.predict_proba(judged.X, judged.groups).argmax(axis=1)]
    body = [
        sections.seen(test is not None, "situations"),
        facts(measured),
        table("How well choices are predicted", heads, rows),
        sections.confusion(model.alternatives_[judged.first], predicted, model.alternatives_, "alternative"),
    ]
    return Section("predictions", "Predictions", "\n".join(body))


def _constants(model: PlackettLuceChooser, fit: ReportedChoices, test: ReportedChoices | None) -> Array | None:
    """Constants fitted to the situations of the fit; None if these were not given."""
    if hasattr(model, "table_"):
        return np.asarray(model.table_.constants)
    return None if test is not None and test.X is fit.X else choice_constants(fit.X, fit.y)


def why(model: PlackettLuceChooser, judged: ReportedChoices) -> Section:
    """Explanations of three situations: the least certain, the most surprising and the most certain."""
    X, first = judged.X, judged.first
    p = model.predict_proba(X)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    picked = {
        int(np.argmax(entropy)): "the least certain",
        int(np.argmin(p[np.arange(len(X)), first])): "the most surprising",
        int(np.argmin(entropy)): "the most certain",
    }
    body = [paragraph(words.why_choices(model.weights == "person"))]
    for k, (t, kind) in enumerate(picked.items()):
        body.append(_situation(model, X[t], model.alternatives_[first[t]], kind, k))
    return Section("why", "Why? A few situations", "\n".join(body))


def _situation(model: PlackettLuceChooser, one: ChoiceSets, came: object, kind: str, k: int) -> str:
    """One situation: its alternatives, their predicted probabilities and an explanation."""
    p, there = model.predict_proba(one)[0], one.alternative
    said, name = model.alternatives_[int(p.argmax())], f"Situation {one.situations[0]}"
    known = [*(p[there],), *_intervals(model, one, there)]
    rows = [
        [label, *(part[e] for part in known), *one.values[e], "chosen" if label == came else ""]
        for e, label in enumerate(model.alternatives_[there].tolist())
    ]
    ends = ["5%", "95%"][: 2 * (len(known) - 1)]
    heads = [Head("Alternative"), *(Head(head, True) for head in ("Probability", *ends, *one.attributes))]
    person = "; ".join(f"{name} = {value:.4g}" for name, value in zip(one.person, one.context[0], strict=True))
    body = [
        f"<h3>{text(name)}, {text(kind)}: predicted is {text(said)}, chosen was {text(came)}</h3>",
        table(f"{name}{f' ({person})' if person else ''}", [*heads, Head("")], rows),
    ]
    found = explain(model, one, PROB)
    if "contribution" not in found:
        columns = [Head(head.capitalize(), head in ("probability", "lower", "upper")) for head in found]
        lines = [list(row) for row in found.head(WHY).itertuples(index=False, name=None)]
        body.append(table(f"{name}: who arrives first, the most probable of {len(found)}", columns, lines))
    elif len(found):
        best = "; ".join(
            f"{w.of} {w.feature} = {words.held(w.value)}: {w.contribution:+.2f}" for w in found.head(4).itertuples()
        )
        body.append(
            figure(
                f"why{k}",
                lambda ax: plots.contributions(model, one, prob=PROB, ax=ax),
                f"What attributes contribute to the log-odds of {said} in {name}. {best}.",
                f"{name}: from {found.attrs['reference_is']}, to the prediction. Each bar is what an attribute adds to "
                f"the log-odds of {said}, or in grey takes from them.",
                2.5 + 0.25 * min(11, len(found)),
            )
        )
    return "\n".join(body)


def _intervals(model: PlackettLuceChooser, one: ChoiceSets, there: Codes) -> tuple[Array, ...]:
    if model.posterior_.no_interval is not None:
        return ()
    lower, upper = model.predict_interval(one, PROB)
    return lower[0, there], upper[0, there]
