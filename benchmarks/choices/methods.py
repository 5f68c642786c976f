"""Ours and the rivals: each is given the training half and predicts the outcomes of the other, as ln Pr."""

import numpy as np

from benchmarks.choices import logit
from benchmarks.choices.latent import latent_classes
from plackett import PlackettLuceChooser, PlackettLuceRanker, Rankings, Tastes
from plackett.linear import LinearUtility


def ours(data, train, test, seed):
    """The defaults, with persons' rows held out together."""
    kind = PlackettLuceRanker if isinstance(data.y, Rankings) else PlackettLuceChooser
    X = data.X.iloc[train] if isinstance(data.y, Rankings) else data.X[train]
    new = data.X.iloc[test] if isinstance(data.y, Rankings) else data.X[test]
    fitted = kind(random_state=seed).fit(X, data.y[train], groups=data.person[train])
    return fitted.log_likelihood(new, data.y[test])


def utility(data):
    """Linear utilities as papers print them, with a prior so weak that it matters where choices are separated alone."""
    return LinearUtility(constants=data.labelled, spread=10)


def linear(data, train, test, seed):
    """Conditional logit."""
    return of_choices(data, train, test, PlackettLuceChooser("em", features=utility(data)))


def tastes(data, train, test, seed):
    """Independent normal tastes for all attributes; new persons from the population."""
    features = Tastes(constants=data.labelled)
    return of_choices(data, train, test, PlackettLuceChooser(features=features, random_state=seed))


def nests(data, train, test, seed):
    """Nested logit, where the labels of alternatives suggest nests."""
    return of_choices(data, train, test, PlackettLuceChooser("em", features=utility(data), nests=data.nests))


def segments(data, train, test, seed):
    """Latent classes of persons, as many as held-out persons support; new ones by the shares."""
    model = PlackettLuceChooser("em", features=utility(data), segments="auto", random_state=seed)
    return of_choices(data, train, test, model)


def of_choices(data, train, test, model):
    """Log-probabilities of the choices of the other half by a model that is fitted to one."""
    model.fit(data.X[train], data.y[train], groups=data.person[train])
    return model.log_likelihood(data.X[test], data.y[test])


def conditional_logit(data, train, test, seed):
    """Constants, attributes and interactions of constants and persons; the penalty by held-out persons."""
    columns, start, placed, free = entries(data, train)
    padded = logit.Padded(columns, start, placed)
    theta, _ = logit.tuned(padded.rows(train), data.person[train], free)
    return padded.rows(test).values(theta)[0]


def constants_alone(data, train, test, seed):
    """What shares of the alternatives say."""
    columns, start, placed, free = entries(data, train)
    padded = logit.Padded(columns[:, :free], start, placed)
    return padded.rows(test).values(logit.fit(padded.rows(train), 0.0, free))[0]


def entries(data, train):
    """Columns of every entry, those of an outcome in its order: constants, attributes, interactions, standardised."""
    if isinstance(data.y, Rankings):
        R = data.y
        start, item, situation = R.outcomes.start, R.item, R.situation
        placed = np.diff(R.outcomes.bucket_start)
        attributes, person = np.empty((len(item), 0)), data.X.to_numpy(dtype=float)
    else:
        X = data.X
        situation, order = X.situation, np.arange(len(X.alternative))
        order[X.chosen(data.y)] = -1
        order = np.lexsort((order, situation))
        start, item, placed = X.start, X.alternative[order], np.ones(len(X), dtype=int)
        attributes, person = X.values[order], X.context
    constants = np.eye(item.max() + 1)[item][:, 1:]
    seen = np.isin(situation, train)
    person = standard(person, person[train])[situation]
    interactions = (constants[:, :, None] * person[:, None, :]).reshape(len(item), -1)
    return (
        np.column_stack([constants, standard(attributes, attributes[seen]), interactions]),
        start,
        placed,
        constants.shape[1],
    )


def standard(values, seen):
    """Mean 0 and deviation 1 over the training half."""
    return (values - seen.mean(axis=0)) / np.where(seen.std(axis=0) > 0, seen.std(axis=0), 1.0)


METHODS = {
    "plackett": ours,
    "linear": linear,
    "tastes": tastes,
    "segments": segments,
    "nests": nests,
    "logit": conditional_logit,
    "constants": constants_alone,
    "latent-classes": latent_classes,
}
CHOICES_ALONE = {"latent-classes", "linear", "tastes", "segments", "nests"}  # methods that are not tried on rankings


def applies(method, data):
    """Whether a method can be tried on a set."""
    of_kind = method not in CHOICES_ALONE or not isinstance(data.y, Rankings)
    return of_kind and (method != "nests" or data.nests is not None)
