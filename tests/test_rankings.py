"""Rankings: one form for one meaning, whatever they are made from; rows by number; clear refusals."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, train_test_split

from conftest import situation_rows
from plackett import Rankings
from plackett.data.components import above
from plackett.data.observations import Situations
from plackett.model.race import Weights
from plackett.responses import make_response

SEEDS = range(40)


def random_orders(rng, n=None, K=None):
    """Orders of some of K items, with buckets."""
    n, K = n or int(rng.integers(1, 8)), K or int(rng.integers(2, 7))
    orders = []
    for _ in range(n):
        some = [f"i{k}" for k in rng.permutation(K)[: rng.integers(1, K + 1)]]
        cuts = np.flatnonzero(rng.random(len(some) - 1) < 0.6) + 1
        buckets = [some[low:high] for low, high in itertools.pairwise([0, *cuts, len(some)])]
        orders.append([bucket[0] if len(bucket) == 1 else set(bucket) for bucket in buckets])
    return orders, [f"i{k}" for k in range(K)]


def as_ranks(orders, items, rng):
    """A table of numbers that rise with the place."""
    table = np.full((len(orders), len(items)), np.nan)
    for t, order in enumerate(orders):
        ranks = np.cumsum(rng.integers(1, 4, size=len(order)))
        for rank, place in zip(ranks, order, strict=True):
            for item in place if isinstance(place, set) else [place]:
                table[t, items.index(item)] = rank
    return table


def without_implied(orders, K):
    """Orders that rank all but one item of K also name that one: the same ranking."""
    return [order for order in orders if sum(len(p) if isinstance(p, set) else 1 for p in order) != K - 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unranked", ["absent", "last"])
def test_orders_come_back(seed, unranked):
    orders, items = random_orders(np.random.default_rng(seed))
    if unranked == "last":
        orders = without_implied(orders, len(items)) or [items]
    R = Rankings.from_orders(orders, unranked=unranked, items=items)
    assert R.to_orders() == orders
    assert Rankings.from_orders(R.to_orders(), unranked=unranked, items=items) == R


def test_the_only_item_left_is_named():
    R = Rankings.from_orders([["b", "a"], ["b", "a", "c"]], unranked="last", items=["a", "b", "c"])
    assert R[0] == R[1]
    assert R.to_orders() == [["b", "a", "c"]] * 2


def test_items_tied_in_the_last_place_are_not_items_left():
    R = Rankings.from_orders([["a", {"b", "c"}], ["a"]], unranked="last", items=["a", "b", "c"])
    assert R[0] != R[1]
    assert R.to_orders() == [["a", {"b", "c"}], ["a"]]
    assert R[0].tied and not R[1].tied


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unranked", ["absent", "last"])
@pytest.mark.parametrize("kind", ["array", "zeros", "pandas", "polars", "nullable"])
def test_ranks_and_orders_agree(seed, unranked, kind):
    rng = np.random.default_rng(seed)
    orders, items = random_orders(rng)
    ranks = as_ranks(orders, items, rng)
    shuffled = rng.permutation(len(items))
    table = {
        "array": ranks,
        "zeros": np.nan_to_num(ranks).astype(int).tolist(),
        "pandas": pd.DataFrame(ranks, columns=items).iloc[:, shuffled],
        "polars": pl.DataFrame({items[k]: [None if r != r else int(r) for r in ranks[:, k]] for k in shuffled}),
        "nullable": pd.DataFrame(ranks, columns=items).astype("Int64"),
    }[kind]
    counts = rng.integers(1, 9, size=len(orders))
    made = Rankings.from_ranks(table, unranked=unranked, items=items, counts=counts)
    assert made == Rankings.from_orders(orders, unranked=unranked, items=items, counts=counts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unranked", ["absent", "last"])
def test_indexing_is_building_anew(seed, unranked):
    rng = np.random.default_rng(seed)
    orders, items = random_orders(rng, n=6)
    counts = np.arange(1.0, 7.0)
    R = Rankings.from_orders(orders, unranked=unranked, items=items, counts=counts)
    mask = np.array([True, False, True, True, False, False])
    for key in (
        3,
        -1,
        slice(1, 5, 2),
        [4, 0, 0],
        np.array([5, 1]),
        mask,
        mask.tolist(),
        pd.Series(mask),
        ([2, 1], ...),
    ):
        rows = np.atleast_1d(np.arange(6)[key[0] if isinstance(key, tuple) else key])
        anew = Rankings.from_orders([orders[t] for t in rows], unranked=unranked, items=items, counts=counts[rows])
        assert R[key] == anew
    assert len(R[[]]) == 0 and R[:0].to_orders() == [] and len(R[:0].components()) == len(items)
    for key in (6, [6], np.ones(5, dtype=bool), (0, 1)):
        with pytest.raises(IndexError):
            R[key]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unranked", ["absent", "last"])
def test_components_by_brute_force(seed, unranked):
    rng = np.random.default_rng(seed)
    orders, items = random_orders(rng, n=int(rng.integers(1, 5)), K=6)
    R = Rankings.from_orders(orders, unranked=unranked, items=items)
    reach = np.eye(6, dtype=bool)
    for order in orders:
        places = [place if isinstance(place, set) else {place} for place in order]
        if unranked == "last":
            places.append(set(items) - set().union(*places))
        for upper, lower in itertools.combinations(places, 2):
            for i, j in itertools.product(upper, lower):
                reach[items.index(i), items.index(j)] = True
    for k in range(6):
        reach |= np.outer(reach[:, k], reach[k])
    parts = {frozenset(np.flatnonzero(reach[i] & reach[:, i])) for i in range(6)}
    found = [[items.index(item) for item in part] for part in R.components()]
    assert {frozenset(part) for part in found} == parts and len(found) == len(parts)
    for better, worse in itertools.combinations(found, 2):
        assert not reach[worse[0], better[0]]


def test_rows_that_were_never_seen_connect_nothing():
    R = Rankings.from_pairs(["a", "b"], ["b", "a"], counts=[1, 0])
    assert R.components() == [["a"], ["b"]]
    assert R[:1].components() == R.components()


def test_a_chain_comes_in_order():
    R = Rankings.from_pairs([5, 1, 3], [1, 3, 2])
    assert R.components() == [[5], [1], [3], [2]]


@pytest.mark.parametrize("seed", SEEDS)
def test_other_items(seed):
    rng = np.random.default_rng(seed)
    orders, items = random_orders(rng)
    R = Rankings.from_orders(orders, unranked="absent", items=items)
    more = [str(label) for label in rng.permutation([*items, "new", "other"])]
    assert R.with_items(more) == Rankings.from_orders(orders, unranked="absent", items=more)
    assert R.with_items(more).with_items(items) == R
    last = Rankings.from_orders(orders, unranked="last", items=items).with_items(more)
    assert set(last.items[last.item]) == set(items)


@pytest.mark.parametrize("unranked", ["absent", "last"])
@pytest.mark.parametrize("seed", SEEDS)
def test_who_was_placed_directly_above_whom(seed, unranked):
    orders, items = random_orders(np.random.default_rng(seed))
    want = np.zeros((len(items), len(items)))
    for order in orders:
        buckets = [place if isinstance(place, set) else {place} for place in order]
        rest = set(items).difference(*buckets)
        if rest and unranked == "last":
            buckets.append(rest)
        for upper, lower in itertools.pairwise(buckets):
            for i, j in itertools.product(upper, lower):
                want[items.index(i), items.index(j)] += 1
    R = Rankings.from_orders(orders, unranked=unranked, items=items)
    np.testing.assert_array_equal(above(R.outcomes, R.item, len(items)).toarray(), want)


@pytest.mark.parametrize("items", [["b", "a", "a"], [3, 1, 1], [2.0, 1.0, 1.0]], ids=str)
def test_pairs_from_any_column(items):
    others = items[::-1][:1] + items[:1] + items[:1]
    want = Rankings.from_pairs(items, others)
    arrow = pd.Series(items).astype(pd.ArrowDtype(pa.string()) if isinstance(items[0], str) else "Float64")
    for kind in (np.array, pd.Series, pd.Index, pl.Series, tuple, pd.Categorical, lambda x: pd.Series(x, dtype=object)):
        found = Rankings.from_pairs(kind(items), kind(others))
        assert found == want and found.items.dtype == want.items.dtype
    assert Rankings.from_pairs(arrow, others) == want == Rankings.from_pairs(iter(items), iter(others))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_pairs_without_a_label_are_refused(missing):
    for column in (["a", missing], pd.Series(["a", missing]), pd.Series(["a", missing], dtype="category")):
        with pytest.raises(ValueError, match="the label of an item must be a text or a number, got"):
            Rankings.from_pairs(["b", "b"], column)


def test_pairs():
    R = Rankings.from_pairs(["a", "b", "a"], ["b", "c", "c"], ties=[False, True, False], counts=[3, 1, 0.5])
    assert Rankings.from_orders([["a", "b"], [{"b", "c"}], ["a", "c"]], unranked="absent", counts=[3, 1, 0.5]) == R
    assert Rankings.from_pairs(["b"], ["a"], items=["b", "a", "c"]).item.tolist() == [0, 1]


def test_the_likelihood_is_that_of_the_orders():
    """By hand: a, b, c have the rates 1, 2, 4."""
    R = Rankings.from_orders([["b", "a"], ["b", "a", "c"], [{"a", "b"}, "c"]], unranked="absent")
    one_row = np.zeros(len(R.item), dtype=np.int64)
    rows = situation_rows(
        "auto", np.ones((1, 1)), Situations(R.outcomes, R.item, one_row), make_response("unknown-order"), 3
    )
    values = rows.values(Weights.point(np.log([[1.0], [2.0], [4.0]])))
    expected = [2 / 3, 2 / 7 * 1 / 5, 2 / 7 * 1 / 5 + 1 / 7 * 2 / 6]
    np.testing.assert_allclose(np.exp(values), expected, rtol=1e-9)


def test_labels_and_their_order():
    assert Rankings.from_orders([["b", "a"]]).items.tolist() == ["a", "b"]
    assert Rankings.from_orders(np.array([[10, 9], [9, 10]])).items.tolist() == [9, 10]
    assert Rankings.from_orders([["b", 1]]).items.tolist() == ["b", 1]
    assert Rankings.from_ranks([[1, 2]]).items.tolist() == [0, 1]
    padded = pd.DataFrame({"first": [3, 2], "second": [2, np.nan]})
    for table in (padded, padded.to_numpy()):
        R = Rankings.from_orders(table, unranked="absent")
        assert R.items.dtype == np.int64 and R.to_orders() == [[3, 2], [2]]
    frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", None], "third": ["c", None]})
    for table in (frame, pl.from_pandas(frame), frame.convert_dtypes()):
        assert Rankings.from_orders(table, unranked="absent").to_orders() == [["a", "b", "c"], ["b"]]


def test_immutable_equal_and_stored():
    R = Rankings.from_orders([["b", "a", "c"], [{"a", "c"}, "b"]], unranked="last", counts=[2, 1])
    for array in (R.items, R.item, *R.outcomes, *pickle.loads(pickle.dumps(R)).outcomes):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = array[:1]
    with pytest.raises(AttributeError):
        R.items = R.items
    assert pickle.loads(pickle.dumps(R)) == R != "R"
    assert Rankings.from_orders(R.to_orders(), unranked="last") != R  # other counts
    assert R.situation.tolist() == [0, 0, 0, 1, 1, 1] and R.counts.dtype == np.float64
    assert repr(R) == "Rankings(2 rows, 3 rankings, 3 items, ties, unranked='last')"
    with pytest.raises(TypeError, match="no array"):
        np.asarray(R)


def test_what_was_given_stays_the_callers():
    counts, items = np.array([1.0, 2.0]), np.array(["a", "b"])
    Rankings.from_orders([["a", "b"], ["b", "a"]], counts=counts, items=items)
    counts[0], items[0] = 3.0, "c"


class Recorder(BaseEstimator):
    """Scores 1 if rankings and covariates belonged together in training and test."""

    def __init__(self, setting=0):
        self.setting = setting

    def fit(self, X, y):
        self.right_ = agreeing(X, y)
        return self

    def score(self, X, y):
        return float(agreeing(X, y) and self.right_) + self.setting


def agreeing(X, R):
    """Whether the rows are those that the covariate counts."""
    return isinstance(R, Rankings) and len(R) == len(X) and np.array_equal(R.counts, X[:, 0])


def test_scikit_learn_takes_them_as_they_are():
    rng = np.random.default_rng(0)
    orders, items = random_orders(rng, n=30, K=4)
    X = np.arange(1.0, 31.0)[:, None]
    R = Rankings.from_orders(orders, unranked="last", items=items, counts=X[:, 0])
    train_X, test_X, train_R, test_R = train_test_split(X, R, random_state=0)
    assert agreeing(train_X, train_R) and agreeing(test_X, test_R) and len(train_R) + len(test_R) == 30
    for cv, groups in ((KFold(3, shuffle=True, random_state=0), None), (GroupKFold(3), np.arange(30) // 5), (4, None)):
        np.testing.assert_array_equal(cross_val_score(Recorder(), X, R, groups=groups, cv=cv), 1.0)
    search = GridSearchCV(Recorder(), {"setting": [0, 1]}, cv=3).fit(X, R)
    assert search.best_params_ == {"setting": 1} and search.best_score_ == 2.0


REFUSED = {
    "twice": (lambda: Rankings.from_orders([["a", "b"], ["b", "b"]], unranked="last"), "row 1 ranks item 'b' twice"),
    "twice in a bucket": (lambda: Rankings.from_orders([["a", {"b", "a"}]]), "row 0 ranks item 'a' twice"),
    "itself": (lambda: Rankings.from_pairs(["a", "b"], ["b", "b"]), "row 1 ranks item 'b' twice"),
    "unsaid": (lambda: Rankings.from_orders([["a", "b"], ["b"]]), "row 1 ranks 1 of 2 items: say unranked='absent'"),
    "unsaid ranks": (lambda: Rankings.from_ranks([[1, 2], [0, 1]]), "row 1 ranks 1 of 2 items"),
    "unknown": (lambda: Rankings.from_orders([["a", "b"]], unranked="first"), r"one of \['absent', 'last'\], got 'fi"),
    "empty": (lambda: Rankings.from_orders([["a", "b"], []], unranked="last"), "row 1 is an empty ranking"),
    "empty row": (lambda: Rankings.from_ranks([[1, 2], [0, np.nan]], unranked="last"), "row 1 is an empty ranking"),
    "nothing": (lambda: Rankings.from_orders([]), "no rankings"),
    "no pairs": (lambda: Rankings.from_pairs([], []), "no rankings"),
    "one item": (lambda: Rankings.from_orders([["a"]]), "two items or more"),
    "gap": (lambda: Rankings.from_orders([["a", None, "b"]]), "place 2 of row 0 must be an item"),
    "empty bucket": (lambda: Rankings.from_orders([["a", set(), "b"]]), "place 2 of row 0"),
    "list": (lambda: Rankings.from_orders([["a", ["b", "c"]]]), "set of tied items, got \\['b', 'c'\\]"),
    "array": (lambda: Rankings.from_orders([["a", np.array(["b", "c"])]]), "set of tied items"),
    "flat": (lambda: Rankings.from_orders(["ab", "ba"]), "an order is a list of items"),
    "new item": (lambda: Rankings.from_orders([["a", "z"]], items=["a", "b"], unranked="last"), "no item 'z'"),
    "new column": (lambda: Rankings.from_ranks(pd.DataFrame({"a": [1], "z": [2]}), items=["a", "b"]), "no item 'z'"),
    "prediction": (lambda: Rankings.from_pairs(["a"], ["z"]).with_items(["a", "b"]), "no item 'z'; there are 'a', 'b'"),
    "same items": (lambda: Rankings.from_orders([["a", "b"]], items=["a", "b", "a"]), "items names 'a' twice"),
    "a text": (lambda: Rankings.from_orders([["a", "b"]], items="ab"), "a list of labels"),
    "columns": (lambda: Rankings.from_ranks([[1, 2]], items=["a", "b", "c"]), "the 2 columns of the array, got 3"),
    "negative": (lambda: Rankings.from_ranks([[1, 2], [1, -1]]), "got -1 in row 1"),
    "infinite": (lambda: Rankings.from_ranks([[1, np.inf]]), "got inf in row 0"),
    "texts": (lambda: Rankings.from_ranks(pd.DataFrame({"a": ["x"], "b": ["y"]})), "column 'a' must hold numbers"),
    "a vector": (lambda: Rankings.from_ranks([1, 2, 3]), "got shape \\(3,\\)"),
    "uneven": (lambda: Rankings.from_pairs(["a", "b"], ["b"]), "equally long, got 2, 1 and 2"),
    "counted ties": (lambda: Rankings.from_pairs(["a"], ["b"], ties=[3]), "true or false for each pair, got 3"),
    "counts": (lambda: Rankings.from_pairs(["a"], ["b"], counts=[1, 2]), "each of the 1 rows, got shape \\(2,\\)"),
    "less than none": (lambda: Rankings.from_pairs(["a"], ["b"], counts=[-1]), "not negative, got -1.0 in row 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_words(case):
    make, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        make()
