"""Choice sets: long and wide tables say the same; rows by number; the columns of a model; clear refusals."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score, train_test_split

from plackett import ChoiceSets, Rankings
from plackett.data.columns import TableWarning

SEEDS = range(20)
MODES = ["bus", "car", "walk"]
KEYS = {"situation": "trip", "alternative": "by"}


def random_trips(seed, n=8):
    """A wide table of n trips with unequal sets, and the long one of the same trips, its rows shuffled."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, 3)) < 0.7
    there[np.arange(n), rng.integers(3, size=n)] = True
    there[there.sum(axis=1) < 2] = True
    wide = pd.DataFrame({"income": rng.normal(size=n).round(2), "purpose": rng.choice(["work", "shop", "visit"], n)})
    long = []
    for k, mode in enumerate(MODES):
        wide[f"cost_{mode}"], wide[f"seat_{mode}"] = rng.normal(size=n).round(2), rng.choice(["hard", "soft"], n)
        wide[f"there_{mode}"] = there[:, k].astype(int)
        part = wide[["income", "purpose", f"cost_{mode}", f"seat_{mode}", f"there_{mode}"]]
        part = part.set_axis(["income", "purpose", "cost", "seat", "there"], axis=1)
        long.append(part.assign(by=mode, trip=np.arange(n)))
    table = pd.concat(long, ignore_index=True)
    first = table["trip"].drop_duplicates().index  # situations come as they first occur
    others = rng.permutation(np.setdiff1d(table.index, first))
    return wide, table.loc[[*first, *others]].reset_index(drop=True), there


NAMED = {"attributes": ["cost", "seat"], "person": ["income", "purpose"], "available": "there"}


@pytest.mark.parametrize("seed", SEEDS)
def test_long_and_wide_agree(seed):
    wide, long, there = random_trips(seed)
    X = ChoiceSets.from_wide(wide, alternatives=MODES, **NAMED)
    assert ChoiceSets.from_long(long, **KEYS, **NAMED) == X
    assert (
        ChoiceSets.from_long(long[long["there"] == 1].sort_values("trip"), **KEYS, **NAMED | {"available": None}) == X
    )
    assert ChoiceSets.from_wide(pl.from_pandas(wide), alternatives=MODES, **NAMED) == X
    assert ChoiceSets.from_long(pl.from_pandas(long), **KEYS, **NAMED) == X
    named = {mode: f"there_{mode}" for mode in MODES}
    assert ChoiceSets.from_wide(wide, alternatives=MODES, **NAMED | {"available": named}) == X
    turned = wide.rename(columns=lambda name: "_".join(reversed(name.split("_"))))
    assert ChoiceSets.from_wide(turned, alternatives=MODES, **NAMED) == X
    np.testing.assert_array_equal(X.available, there)
    for t, k in np.argwhere(there):
        e = X.chosen(np.where(np.arange(8) == t, MODES[k], np.array(MODES)[there.argmax(axis=1)]))[t]
        assert X.situation[e] == t and X.alternative[e] == k
        soft = wide[f"seat_{MODES[k]}"][t] == "soft"
        assert X.values[e].tolist() == [wide[f"cost_{MODES[k]}"][t], float(soft)]
    assert X.attributes == ("cost", "seat=soft") and X.person[0] == "income"
    np.testing.assert_array_equal(X.context[:, 0], wide["income"])


def test_attributes_that_are_not_named():
    wide, long, _ = random_trips(0)
    X = ChoiceSets.from_long(long, **KEYS, person=["income"], available="there")
    assert X.attributes == ("cost",)  # numbers that vary within a trip; income is the person's
    X = ChoiceSets.from_wide(wide, alternatives=MODES, available="there")
    assert X.attributes == ("cost", "seat=soft") and X.person == ()
    assert ChoiceSets.from_long(long[["trip", "by"]], **KEYS).values.shape == (24, 0)


@pytest.mark.parametrize("sep", ["", ".", "_of_"])
def test_other_names_of_columns(sep):
    frame = pd.DataFrame({f"price{sep}1": [3.0, 2.0], f"price{sep}2": [1.0, 5.0]})
    X = ChoiceSets.from_wide(frame, alternatives=[2, 1], sep=sep)
    assert X.alternatives.tolist() == [2, 1] and X.values.tolist() == [[1.0], [3.0], [5.0], [2.0]]


@pytest.mark.parametrize("seed", SEEDS)
def test_indexing_is_building_anew(seed):
    wide, long, _ = random_trips(seed)
    named = {"attributes": ["cost"], "person": ["income"], "available": "there"}
    X = ChoiceSets.from_long(long, **KEYS, **named)
    mask = np.arange(8) % 3 == 0
    for key in (5, -1, slice(2, 7, 2), [6, 0, 3], np.array([1, 7]), mask, mask.tolist(), ([2, 1], ...)):
        rows = np.atleast_1d(np.arange(8)[key[0] if isinstance(key, tuple) else key])
        kept = long.set_index("trip").loc[rows].reset_index()
        anew = ChoiceSets.from_long(kept, **KEYS, **named).with_schema(X)
        assert X[key] == anew
    assert X[[3, 3]].start.tolist() == [0, *np.cumsum([len(X[3].alternative)] * 2)]
    assert len(X[[]]) == 0 and X[:0].attributes == X.attributes
    with pytest.raises(IndexError):
        X[8]


MARKS = {
    "numbers": lambda long: long["taken"].astype(int),
    "booleans": lambda long: long["taken"],
    "words": lambda long: long["taken"].map({True: "yes", False: "no"}),
    "labels": lambda long: long["trip"].map(long[long["taken"]].set_index("trip")["by"]),
}


@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_choices_of_a_long_table(kind, seed):
    _, long, there = random_trips(seed)
    rng = np.random.default_rng(seed + 100)
    y = np.array([MODES[rng.choice(np.flatnonzero(some))] for some in there])
    long["taken"] = long["by"] == y[long["trip"]]
    long["taken"] = MARKS[kind](long)
    X, found = ChoiceSets.read_choices(long, **KEYS, choice="taken", available="there")
    assert found.tolist() == y.tolist()
    assert ChoiceSets.from_long(long.drop(columns="taken"), **KEYS, available="there") == X
    np.testing.assert_array_equal(X.alternatives[X.alternative[X.chosen(y)]], y)


def test_labels_that_are_0_and_1():
    """A mark differs within a situation, a label does not."""
    frame = pd.DataFrame({"trip": [1, 1, 2, 2], "by": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    for taken in ([1, 1, 0, 0], [0, 1, 1, 0]):
        _, y = ChoiceSets.read_choices(frame.assign(taken=taken), **KEYS, choice="taken")
        assert y.tolist() == [1, 0]


def test_a_ranking_of_each_situation():
    wide, _, _ = random_trips(0, n=2)
    X = ChoiceSets.from_wide(wide, alternatives=["walk", "bus", "car"], attributes=["cost"])
    R = Rankings.from_orders([["car", "bus", "walk"], ["walk"]], unranked="last")
    assert X.ranked(R).tolist() == [2, 1, 0, 3, 4, 5]
    fewer = ChoiceSets.from_wide(wide.assign(no=[1, 0]), alternatives=MODES, available={"car": "no"})
    with pytest.raises(ValueError, match="'car' is ranked in situation 1, where it is not available"):
        fewer.ranked(R)
    with pytest.raises(ValueError, match="one ranking for each of 2 situations, got 1"):
        X.ranked(R[:1])


def test_the_columns_of_a_model():
    train, test = random_trips(0)[0], random_trips(1)[0]
    fitted = ChoiceSets.from_wide(train, alternatives=MODES, **NAMED)
    new = ChoiceSets.from_wide(
        test, alternatives=MODES[::-1], attributes=["seat", "cost"], person=["purpose", "income"], available="there"
    )
    both = pd.concat([train, test], ignore_index=True)
    expected = ChoiceSets.from_wide(both, alternatives=MODES, **NAMED)[8:]
    for schema in (fitted, fitted[:0]):
        again = new.with_schema(schema)
        np.testing.assert_array_equal(again.values, expected.values)
        np.testing.assert_array_equal(again.context, expected.context)
        np.testing.assert_array_equal(again.alternative, expected.alternative)
        assert again.attributes == fitted.attributes and again.with_schema(fitted) == again


def test_levels_that_differ_from_those_of_a_model():
    def trips(seats, purpose):
        frame = pd.DataFrame({"seat_bus": seats[0], "seat_car": seats[1], "purpose": purpose})
        return ChoiceSets.from_wide(frame, alternatives=["bus", "car"], person=["purpose"])

    fitted = trips([["a", "b", "c"], ["a", "a", "a"]], ["work", "shop", "shop"])
    fewer = trips([["c"], ["a"]], ["shop"]).with_schema(fitted)
    assert fewer.values.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]] and fewer.context.tolist() == [[0.0]]
    two = trips([["c"], ["b"]], ["work"]).with_schema(fitted)
    assert two.values.tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]] and two.context.tolist() == [[1.0]]
    with pytest.warns(TableWarning, match="'seat' has 1 value that did not occur in training, such as 'd'"):
        new = trips([["d"], ["b"]], ["work"]).with_schema(fitted)
    np.testing.assert_allclose(new.values, [[4 / 6, 1 / 6, 1 / 6], [0.0, 1.0, 0.0]])


def test_immutable_equal_and_stored():
    wide, _, _ = random_trips(0)
    X = ChoiceSets.from_wide(wide, alternatives=MODES, **NAMED)
    for array in (X.values, X.start, pickle.loads(pickle.dumps(X)).context):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = array[:1]
    assert pickle.loads(pickle.dumps(X)) == X != "X" and X[:3] != X
    assert repr(X[:2]) == (
        "ChoiceSets(2 situations, 3 alternatives, attributes: cost, seat=soft; person: income, purpose=shop, "
        "purpose=visit, purpose=work)"
    )
    with pytest.raises(TypeError, match="no array"):
        np.asarray(X)


class Recorder(BaseEstimator):
    """Scores 1 if choices and situations belonged together in training and test."""

    _estimator_type = "classifier"

    def __init__(self, setting=0):
        self.setting = setting

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.right_ = agreeing(X, y)
        return self

    def score(self, X, y):
        return float(agreeing(X, y) and self.right_) + self.setting


def agreeing(X, y):
    """Whether the chosen alternative is the cheapest in each situation."""
    return isinstance(X, ChoiceSets) and bool((X.values[X.chosen(y), 0] == -1.0).all())


def test_scikit_learn_takes_them_as_they_are():
    rng = np.random.default_rng(0)
    best = rng.integers(3, size=30)
    frame = pd.DataFrame({f"cost_{mode}": np.where(best == k, -1.0, 1.0) for k, mode in enumerate(MODES)})
    X, y = ChoiceSets.from_wide(frame, alternatives=MODES), np.array(MODES)[best]
    train_X, test_X, train_y, test_y = train_test_split(X, y, stratify=y, random_state=0)
    assert agreeing(train_X, train_y) and agreeing(test_X, test_y) and len(train_X) + len(test_X) == 30
    for cv, groups in ((StratifiedKFold(3, shuffle=True, random_state=0), None), (GroupKFold(3), np.arange(30) // 5)):
        np.testing.assert_array_equal(cross_val_score(Recorder(), X, y, groups=groups, cv=cv), 1.0)
    search = GridSearchCV(Recorder(), {"setting": [0, 1]}, cv=3).fit(X, y)
    assert search.best_params_ == {"setting": 1} and search.best_score_ == 2.0


def trips(**columns):
    frame = {"trip": [1, 1, 2, 2], "by": ["bus", "car", "bus", "car"], "cost": [1.0, 2.0, 3.0, 4.0]}
    return pd.DataFrame(frame | columns)


def wide(**columns):
    return pd.DataFrame({"cost_bus": [1.0], "cost_car": [2.0]} | columns)


def read(frame, **options):
    return lambda: ChoiceSets.read_choices(frame, **KEYS, choice="taken", **options)


def long(frame, **options):
    return lambda: ChoiceSets.from_long(frame, **KEYS | options)


def from_wide(frame, **options):
    return lambda: ChoiceSets.from_wide(frame, **{"alternatives": ["bus", "car"]} | options)


REFUSED = {
    "chosen but not there": (
        read(trips(trip=[1] * 4, by=["bus", "car", "rail", "walk"], taken=[1, 0, 0, 0], there=[0, 1, 1, 0]),
             available="there"),
        "'bus' is chosen in situation 1, where it is not available; there are 'car', 'rail'",
    ),
    "two chosen": (read(trips(taken=[1, 1, 1, 0])), "in situation 1 'bus', 'car' are all chosen"),
    "none chosen": (read(trips(taken=[1, 0, 0, 0])), "in situation 2 no alternative is chosen"),
    "marks": (read(trips(taken=[1, 0, 2, 0])), "must mark the chosen alternative by 1 or true"),
    "missing choice": (read(trips(taken=[1, 0, np.nan, 1])), "'taken' is missing in situation 2"),
    "label": (read(trips(taken=["bus", "bus", "rail", "rail"])), "must mark the chosen alternative"),
    "leak": (long(trips(taken=[1, 0, 0, 1])), "'taken' marks one alternative in each situation, as a choice does"),
    "alone": (long(trips(trip=[1, 1, 2, 3])), r"situation 2 has 1 available alternative, .* \(2 of 3\)"),
    "nothing there": (long(trips(there=[1, 1, 0, 0]), available="there"), "situation 2 has 0 available alternatives"),
    "twice": (long(trips(by=["bus", "bus", "bus", "car"])), "situation 1 has alternative 'bus' twice"),
    "person": (long(trips(income=[1, 1, 2, 3]), person=["income"]), "'income' belongs .* in situation 2 it is 2, 3"),
    "missing": (long(trips(cost=[1.0, 2.0, np.nan, 4.0])), "'cost' is missing .* 'bus' in situation 2\\. Fill it in"),
    "two missing": (long(trips(cost=[1.0, np.nan, 3.0, np.inf])), "'car' in situation 1 and in 1 other row\\."),
    "infinite": (long(trips(cost=[1.0, 2.0, 3.0, np.inf])), "'cost' is missing or infinite .* 'car' in situation 2"),
    "no column": (long(trips(), attributes=["costs"]), "no column 'costs'; did you mean cost"),
    "no situation": (long(trips(), situation="chid"), "no column 'chid'"),
    "missing label": (long(trips(by=["bus", "car", None, "car"])), "'by' is missing in row 2"),
    "dates": (long(trips(cost=["2020-01-01"] * 4), attributes=["cost"]), "'cost' holds dates"),
    "both": (long(trips(), attributes=["cost"], person=["cost"]), "'cost' is named as an attribute and as a column of"),
    "a text": (long(trips(), attributes="cost"), "attributes must be a list of columns, got 'cost'"),
    "availability": (long(trips(there=[1, 2, 1, 1]), available="there"), "must hold 0 and 1, or true and false, got 2"),
    "no rows": (long(trips()[:0]), "no rows"),
    "no table": (long([[1, 2]]), "expected a data frame"),
    "wide column": (from_wide(wide(time_bus=[3]), attributes=["time"]), "'time' has no column 'time_car'"),
    "wide none": (from_wide(wide(), attributes=["time"]), "no column 'time_bus'"),
    "two forms": (from_wide(wide(bus_cost=[1], car_cost=[2])), "'cost' may mean the columns cost_bus, cost_car or"),
    "wide person": (from_wide(wide(), person=["income"]), "no column 'income'"),
    "same alternative": (from_wide(wide(), alternatives=["bus", "bus"]), "alternatives names 'bus' twice"),
    "strange availability": (from_wide(wide(no=[0]), available={"rail": "no"}), "no alternative 'rail'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_words(case):
    make, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        make()


def test_refused_by_what_was_fitted():
    X = ChoiceSets.from_wide(wide(income=[1.0], class_bus=["a"], class_car=["b"]), alternatives=["bus", "car"])
    assert X.attributes == ("cost", "class=b")
    with pytest.raises(ValueError, match="no alternative 'rail'; there are 'bus', 'car'"):
        X.chosen(["rail"])
    with pytest.raises(ValueError, match="one label for each of the 1 situations, got 2"):
        X.chosen(["bus", "car"])
    with pytest.raises(ValueError, match="no alternative is chosen in situation 0"):
        X.chosen(np.array([None]))
    other = ChoiceSets.from_wide(wide(cost_rail=[1.0]), alternatives=["bus", "rail"])
    with pytest.raises(ValueError, match="no alternative 'rail'"):
        other.with_schema(X)
    with pytest.raises(ValueError, match="no attribute 'class'; there are cost"):
        ChoiceSets.from_wide(wide(), alternatives=["bus", "car"]).with_schema(X)
    richer = ChoiceSets.from_wide(wide(income=[1.0]), alternatives=["bus", "car"], person=["income"])
    with pytest.raises(ValueError, match="no column of the person 'income'; there are none"):
        X.with_schema(richer)
    texts = ChoiceSets.from_wide(wide(cost_bus=["a"], cost_car=["b"]), alternatives=["bus", "car"])
    with pytest.raises(ValueError, match="attribute 'cost' held numbers in training, and holds texts here"):
        texts.with_schema(richer[:0])
