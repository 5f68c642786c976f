"""A small model of every kind that a model file can hold, and probabilities that it predicts for rows of its own.

``python tests/model_kinds.py FOLDER [NAMES]`` fits them and writes ``v2-NAME.plk`` and ``v2-probabilities.json``, in
``tests/models``.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from plackett import (
    EM,
    Bootstrap,
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    Segments,
    SparseLogitClassifier,
    Tastes,
    Tiers,
    Variational,
)
from plackett.data.ballots import Ballots
from plackett.data.columns import Category, Number
from plackett.data.long_table import LongTable
from plackett.data.table import Table
from plackett.directions import Gates, LearnedDirections
from plackett.features import ExpFeatures
from plackett.linear import LinearUtility
from plackett.priors import GIG, Gamma

STORED = Path(__file__).parent / "models"
SHORT = Gibbs(draws=4, tune=4, chains=2)
FEW = LearnedDirections(components=1, leapfrogs=2)
FEW_COMPONENTS = LearnedDirections(components=2)
SOME = {"inference": Variational(draws=5)}
ITEMS = ["a", "b", "c"]


def classifier(labels=("a", "b", "c"), **settings):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(42, 2)), np.arange(42) % len(labels)
    X[:, 0] += y
    return PlackettLuceClassifier(random_state=0, **settings).fit(X, np.array(labels)[y])


def handed_on():
    """A model with the gates of another as its feature map, on rotated axes and normal scores."""
    rng = np.random.default_rng(0)
    knots = np.array([[[-1.0, 0.0, 2.0], [0.0, 1.0, np.inf]], [[-1.0, 0.0, 1.0], [-0.5, 0.5, 0.5]]])
    axes = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    gates = Gates(
        rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3)), np.zeros(2), np.array([1.0, np.inf]), axes, knots
    )
    return classifier(inference="em", shape=1.0, features=gates)


def logit():
    rng = np.random.default_rng(0)
    return SparseLogitClassifier(draws=4, tune=4, chains=2, random_state=0).fit(
        rng.normal(size=(40, 2)), np.arange(40) % 2 == 0
    )


def encoded():
    """As ``plackett fit`` leaves it: a model that knows its table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 40), "home": np.array(["farm", "town", "city"])[np.arange(40) % 3]})
    frame.loc[3, "age"] = np.nan
    frame["y"] = np.where(rng.normal(size=40) + frame["age"].fillna(40) > 40, "old", "young")
    table = Table.learn(frame, "y")
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(table.covariates(frame), frame["y"].to_numpy())
    clf.table_ = table
    return clf


def described(**settings):
    rng = np.random.default_rng(0)
    R = Rankings.from_orders([rng.permutation(ITEMS).tolist() for _ in range(30)])
    items = {item: {"age": 2.0 * k * k, "kind": "ab"[k % 2]} for k, item in enumerate([*ITEMS, "new"])}
    return PlackettLuceRanker(random_state=0, **settings).fit(None, R, items=items)


def ranker(d=0, ballots=False, **settings):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(ITEMS).tolist() for _ in range(30)]
    X = rng.normal(size=(30, d)) if d else None
    model = PlackettLuceRanker(random_state=0, **settings).fit(X, Rankings.from_orders(orders))
    if ballots:
        model.table_ = Ballots("ranks", "absent", "n", ("age",), 30.0)
    return model


def comparisons(styled=False, **settings):
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(ITEMS, 2, replace=False) for _ in range(40)])
    seen = {"ties": rng.random(40) < 0.3, "first": pairs[np.arange(40), rng.integers(0, 2, 40)]}
    if styled:
        seen["attributes"] = pd.DataFrame(rng.normal(size=(40, 2)), columns=["style", "length"])
    R = Rankings.from_pairs(*pairs.T, **seen)
    model = PlackettLuceRanker(random_state=0, order_effect=True, **settings).fit(None, R)
    model.table_ = Ballots("pairs", counts="n", rankings=40.0, attributes=R.attribute_names)
    return model


def segmented_ranker(**settings):
    rng = np.random.default_rng(0)
    R = Rankings.from_orders([rng.permutation(ITEMS).tolist() for _ in range(30)])
    return PlackettLuceRanker(random_state=0, **settings).fit(None, R, groups=np.arange(30) % 10)


def chooser(persons=False, texts=False, **settings):
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame({"trip": np.repeat(np.arange(n), 3), "by": np.tile(["bus", "car", "walk"], n)})
    frame["cost"], frame["time"] = rng.normal(5, 2, 3 * n), rng.normal(30, 9, 3 * n)
    frame["wet"] = np.repeat(np.array(["no", "yes"])[rng.integers(2, size=n)], 3)
    names = {"situation": "trip", "alternative": "by", "attributes": ("cost", "time"), "person": ("wet",)}
    if texts:
        frame["seat"] = np.array(["best", "good", "poor"])[rng.integers(3, size=3 * n)]
        names["attributes"] = ("cost", "time", "seat")
    X, who = ChoiceSets.from_long(frame, **names), np.arange(n) % 4
    utility = -X.values[:, 0] - X.values[:, 1] / 9 + rng.gumbel(size=3 * n)
    y = X.alternatives[np.argmax(utility.reshape(n, 3), axis=1)]
    model = PlackettLuceChooser(random_state=0, **settings).fit(X, y, groups=who if persons else None)
    counts = {str(label): int((y == label).sum()) for label in X.alternatives}
    seen = np.arange(n, dtype=np.uint32)
    model.table_ = LongTable(**names, choice="taken", constants=np.array([0.1, 0.0, -0.1]), counts=counts, seen=seen)
    return model


KINDS = {
    "learned-gibbs": lambda: classifier(inference=SHORT, features=FEW),
    "learned-em": lambda: classifier(inference="em", features=LearnedDirections(components=1)),
    "learned-bootstrap": lambda: classifier(inference=Bootstrap(draws=4, max_iter=5), features=FEW_COMPONENTS),
    "gates": handed_on,
    "exp-em": lambda: classifier(inference=EM(shapes=(1.0, 0.9), cv=2), features=ExpFeatures(scales=(0.5, 1))),
    "exp-variational": lambda: classifier(**SOME, shape=1.0, features="exp", class_weight={"a": 2.0}),
    "exp-gibbs": lambda: classifier(labels=(3, 5), inference=SHORT, features="exp", shape=0.5),
    "exp-gibbs-prior": lambda: classifier(
        inference=Gibbs(draws=4, tune=4, chains=2, shape_prior=Gamma(1, 1)), features="exp"
    ),
    "exp-gig-em": lambda: classifier(inference="em", features="exp", prior=GIG(0.5, 0.1, 1.0)),
    "exp-gig-variational": lambda: classifier(**SOME, features="exp", prior=GIG(0.5, 0.1, 1.0)),
    "exp-gig-gibbs": lambda: classifier(inference=SHORT, features="exp", prior=GIG(0.5, 0.1, 1.0)),
    "encoded": encoded,
    "logit": logit,
    "ranker-em": lambda: ranker(inference="em", shape=2.0, ballots=True),
    "ranker-race-em": lambda: ranker(inference="em", ties="race", shape=2.0),
    "ranker-variational": lambda: ranker(**SOME),
    "ranker-gibbs": lambda: ranker(inference=SHORT),
    "ranker-race": lambda: ranker(inference=SHORT, ties="race", shape=1.0),
    "ranker-davidson": lambda: comparisons(inference=SHORT, ties="davidson"),
    "ranker-photo-finish-em": lambda: comparisons(inference="em", ties="photo-finish", shape=2.0),
    "ranker-described-em": lambda: described(inference="em", shape=2.0),
    "ranker-described-gibbs": lambda: described(inference=SHORT),
    "ranker-attributes": lambda: comparisons(inference=SHORT, ties="davidson", styled=True),
    "ranker-auto-em": lambda: comparisons(inference="em", ties="auto", shape=2.0, styled=True),
    "ranker-tiers": lambda: ranker(inference=SHORT, tiers=True, ballots=True),
    "ranker-tiers-photo-finish": lambda: comparisons(
        inference=SHORT, ties="photo-finish", tiers=Tiers("learn", prior=(2.0, 1.0))
    ),
    "ranker-exp": lambda: ranker(d=2, inference=SHORT, shape=1.0, features="exp"),
    "ranker-learned-em": lambda: ranker(d=2, inference="em", features=LearnedDirections(components=1)),
    "ranker-learned-gibbs": lambda: ranker(d=2, inference=SHORT, features=FEW),
    "ranker-segments-em": lambda: segmented_ranker(inference=EM(max_iter=30), shape=2.0, segments=2),
    "ranker-segments-gibbs": lambda: segmented_ranker(
        inference=SHORT, segments=Segments("auto", starts=2, most=2, folds=2, concentration=2.0)
    ),
    "chooser-learned-em": lambda: chooser(inference="em", features=LearnedDirections(components=2)),
    "chooser-learned-gibbs": lambda: chooser(
        inference=SHORT, features=LearnedDirections(components=2, leapfrogs=2), weights="alternative"
    ),
    "chooser-nests-em": lambda: chooser(
        inference="em", features=LearnedDirections(components=1), nests={"road": ["bus", "car"]}
    ),
    "chooser-nests-gibbs": lambda: chooser(inference=SHORT, features=FEW, nests={"road": ["bus", "car"]}),
    "chooser-linear-nests-em": lambda: chooser(inference="em", features="linear", nests={"slow": ["bus", "walk"]}),
    "chooser-linear-nests-gibbs": lambda: chooser(inference=SHORT, features="linear", nests={"road": ["bus", "car"]}),
    "chooser-learned-bootstrap": lambda: chooser(inference=Bootstrap(draws=4, max_iter=5), features=FEW_COMPONENTS),
    "chooser-exp-gibbs": lambda: chooser(inference=SHORT, shape=1.0, features="exp"),
    "chooser-exp-variational": lambda: chooser(**SOME, shape=1.0, features="exp", weights="alternative"),
    "chooser-tastes": lambda: chooser(
        inference=SHORT,
        features=Tastes(random=["cost", "constant: car"], law={"cost": "-lognormal"}, correlated=True),
        persons=True,
    ),
    "chooser-tastes-alone": lambda: chooser(inference=SHORT, features=Tastes(random=["time"])),
    "chooser-linear-em": lambda: chooser(inference="em", features=LinearUtility(base="walk"), persons=True),
    "chooser-linear-own-em": lambda: chooser(inference="em", features=LinearUtility(spread=2.0), weights="alternative"),
    "chooser-linear-texts-em": lambda: chooser(inference="em", features="linear", texts=True),
    "chooser-linear-texts-own-em": lambda: chooser(
        inference="em", features=LinearUtility(spread=2.0), weights="alternative", texts=True
    ),
    "chooser-linear-gibbs": lambda: chooser(inference=SHORT, features="linear"),
    "chooser-segments-em": lambda: chooser(
        inference=EM(max_iter=30), features="linear", segments=Segments(2, by=["cost"], ignored=["cost"]), persons=True
    ),
    "chooser-segments-gibbs": lambda: chooser(inference=SHORT, features="linear", segments=2, persons=True),
    "chooser-segments-alone": lambda: chooser(
        inference=SHORT, features="linear", segments=Segments("auto", starts=2, most=2, folds=2)
    ),
    "chooser-persons": lambda: chooser(inference="em", shape=1.0, features="exp", weights="person", persons=True),
    "chooser-persons-learned": lambda: chooser(
        inference=SHORT, features=LearnedDirections(components=2, leapfrogs=2), weights="person", persons=True
    ),
}


def table_of(columns, n):
    """Rows of a table with these columns."""
    rng = np.random.default_rng(1)
    frame = {}
    for column in columns:
        if isinstance(column, Number):
            frame[column.name] = rng.normal(column.median, 1, n)
        elif isinstance(column, Category):
            frame[column.name] = rng.choice(np.array(column.levels, dtype=object), n)
    return pd.DataFrame(frame)


def probabilities(model, n=4):
    """What a model predicts for n rows that are made from what it says of itself; they sum to 1 or an error comes."""
    rng = np.random.default_rng(1)
    if isinstance(model, PlackettLuceChooser):
        schema, A = model.schema_, len(model.alternatives_)
        start, alternative = np.arange(0, n * A + 1, A), np.tile(np.arange(A), n)
        values, context = rng.normal(size=(n * A, len(schema.attributes))), rng.normal(size=(n, len(schema.person)))
        columns = schema.attribute_columns, schema.person_columns
        X = ChoiceSets(schema.alternatives, np.arange(n), start, alternative, values, context, *columns)
        found = model.predict_proba(X)
        if model.weights == "person" or model._tasting() or (model._segmented() and len(model.group_labels_) > 1):
            found = np.append(found, model.predict_proba(X, groups=np.resize(model.group_labels_, n)), axis=0)
    elif hasattr(model, "items_"):
        found = model.predict_proba(rng.normal(size=(n, model.n_features_in_)) if model.n_features_in_ else None)
        if model._segmented():
            found = np.append(found[None], model.predict_proba(groups=np.resize(model.group_labels_, n)), axis=0)
    elif hasattr(model, "table_"):
        found = model.predict_proba(table_of(model.table_.columns, n))
    else:
        X = rng.normal(size=(n, model.n_features_in_))
        names = getattr(model, "feature_names_in_", None)
        found = model.predict_proba(X if names is None else pd.DataFrame(X, columns=names))
    return found


def write(folder, names=()):
    """Fit some and write them, beside those that are there."""
    path = folder / "v2-probabilities.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name, make in ((name, KINDS[name]) for name in names or KINDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        model.save(folder / f"v2-{name}.plk")
        found[name] = probabilities(model).tolist()
        print(name, (folder / f"v2-{name}.plk").stat().st_size, flush=True)
    path.write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
