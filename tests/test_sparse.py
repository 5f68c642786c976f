"""Sparse features: the same model as with the dense twin of W, and W never becomes dense."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder

from conftest import class_rows
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, explain, win_probabilities
from plackett.compute import memory
from plackett.data.observations import Observations
from plackett.engines import base
from plackett.engines.base import canonical_order
from plackett.engines.factory import make_engine
from plackett.engines.numba import SparseRows
from plackett.features import ExpFeatures
from plackett.inference.checkpoint import fingerprint
from plackett.model.race import Weights
from plackett.output.modelfile import ModelFileError
from plackett.posterior import weights as posterior_weights

SIZES = [(7, 1, 2), (40, 3, 3), (500, 37, 4), (9000, 101, 5)]
PASSED_ON = FunctionTransformer(accept_sparse=True, feature_names_out="one-to-one")
SUBJECTS = {
    "sport": ["match", "goal", "team", "league", "player", "coach", "season"],
    "food": ["soup", "bread", "oven", "recipe", "salt", "butter", "spoon"],
    "money": ["bank", "loan", "interest", "share", "market", "profit", "tax"],
}
COMMON = ["the", "a", "of", "in", "today", "people", "new", "very"]


def sparse_problem(n, p, n_classes, seed=0, density=0.2):
    """W, codes and weights; every row has something."""
    rng = np.random.default_rng(seed)
    W = rng.random((n, p)) * (rng.random((n, p)) < density)
    W[np.arange(n), rng.integers(p, size=n)] = 1.0
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return W, codes, np.log(rng.gamma(0.5, size=(n_classes, p)))


def texts(n=150, seed=0):
    """Short texts, mostly of words of their subject, with the subjects."""
    rng = np.random.default_rng(seed)
    y = rng.choice(list(SUBJECTS), n)
    return [" ".join([*rng.choice(SUBJECTS[k], 4), *rng.choice(COMMON, 3)]) for k in y], y


def assert_same(a, b, rtol=1e-11):
    np.testing.assert_allclose(a.wins, b.wins, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.exposure, b.exposure, rtol=rtol)
    assert a.value == pytest.approx(b.value, rel=rtol)


def every_engine(W, codes, weight, n_classes):
    """Dense and sparse rows of the reference and of the fast engine; the first is what the others must equal."""
    kinds = (np.asarray, sparse.csr_array)
    return [class_rows(name, kind(W), codes, n_classes, weight) for name in ("numpy", "numba") for kind in kinds]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_expectations_are_those_of_the_dense_twin(size, weighted):
    W, codes, log_weights = sparse_problem(*size)
    weight = np.random.default_rng(1).gamma(1, size=len(codes)) if weighted else None
    first, *others = every_engine(W, codes, weight, size[2])
    for weights in (Weights.point(log_weights), Weights(log_weights - 1, log_weights + 2)):
        for rows in others:
            assert_same(first.expect(weights), rows.expect(weights))


def test_rows_of_a_weight_are_drawn_together():
    """A multinomial and a Gamma for each: compiled as in the reference, with the means that theory has."""
    W, codes, log_weights = sparse_problem(60, 9, 3)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0, 7.0, 1000.0], size=60)
    weights = Weights.point(log_weights)
    reference, fast = (class_rows(n, sparse.csr_array(W), codes, 3, weight) for n in ("numpy", "numba"))
    for key in range(3):
        assert_same(reference.sample(weights, key), fast.sample(weights, key))
    drawn, expected = [fast.sample(weights, key) for key in range(4000)], fast.expect(weights)
    for name in ("wins", "exposure"):
        found = np.array([getattr(stats, name) for stats in drawn])
        error = found.std(axis=0) / np.sqrt(len(found))
        difference = np.abs(found.mean(axis=0) - getattr(expected, name))
        assert (difference <= 4.5 * error + 1e-9 * np.abs(found).max()).all()
    with pytest.raises(ValueError, match="whole numbers"):
        class_rows("numba", sparse.csr_array(W), codes, 3, weight + 0.5).sample(weights, 0)


@pytest.mark.parametrize("size", SIZES)
def test_draws_are_those_of_the_dense_twin(size):
    W, codes, log_weights = sparse_problem(*size)
    first, *others = every_engine(W, codes, None, size[2])
    for key in (0, 1, 2**61 + 12345):
        wanted = first.sample(Weights.point(log_weights), key)
        for rows in others:
            got = rows.sample(Weights.point(log_weights), key)
            np.testing.assert_array_equal(got.wins, wanted.wins)
            assert_same(got, wanted)


def test_single_precision_is_kept_and_close():
    W, codes, log_weights = sparse_problem(500, 37, 4)
    double, single = (class_rows("numba", sparse.csr_array(w), codes, 4) for w in (W, W.astype("f4")))
    assert double.entries.values.dtype == np.float64 and single.entries.values.dtype == np.float32
    assert_same(double.expect(Weights.point(log_weights)), single.expect(Weights.point(log_weights)), 1e-5)


def test_zero_weights_and_vast_differences():
    """Exact zeros count for nothing, a row without support makes the value minus infinity, nothing underflows."""
    W, codes, log_weights = sparse_problem(60, 9, 3)
    W[:, 0] = 0.5
    first, *others = every_engine(W, codes, None, 3)
    pruned = Weights.point(np.where((log_weights < -1) & (np.arange(9) > 0), -np.inf, log_weights))
    assert np.isneginf(pruned.log_own).sum() > 3
    for rows in others:
        assert_same(first.expect(pruned), rows.expect(pruned))
        stats = rows.expect(Weights.point(2000 * (log_weights - log_weights.max())))
        assert np.isfinite(stats.value) and np.isfinite(stats.wins).all() and np.isfinite(stats.exposure).all()
    W, log_weights = np.eye(2)[[0, 1, 0]], np.array([[0.0, -np.inf], [0.0, 0.0]])
    for rows in every_engine(W, np.array([0, 0, 1]), None, 2):
        assert rows.expect(Weights.point(log_weights)).value == -np.inf


@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_order_of_the_rows_changes_no_bit(name):
    """Also where rows are zeros and ones, whose projections are often equal."""
    W, codes, log_weights = sparse_problem(3000, 40, 3)
    W[::2] = W[::2] > 0
    shuffle = np.random.default_rng(3).permutation(len(codes))
    engine, weights = make_engine(name), Weights.point(log_weights)
    rows, same = (
        engine.rows(sparse.csr_array(W[i]), Observations.of_classes(codes[i], 3)) for i in (slice(None), shuffle)
    )
    for a, b in ((rows.expect(weights), same.expect(weights)), (rows.sample(weights, 5), same.sample(weights, 5))):
        np.testing.assert_array_equal(a.wins, b.wins)
        np.testing.assert_array_equal(a.exposure, b.exposure)
        assert a.value == b.value


def test_the_order_is_that_of_the_dense_twin(monkeypatch):
    W, codes, _ = sparse_problem(700, 30, 3)
    dense, _ = canonical_order(W, codes)
    monkeypatch.setattr(base, "RUN", 64)
    order, _ = canonical_order(sparse.csr_array(W), codes)
    np.testing.assert_array_equal(order, dense)


def test_number_of_threads_changes_nothing():
    W, codes, log_weights = sparse_problem(4000, 1000, 3, density=0.025)
    rows, weights = (
        class_rows("numba", sparse.csr_array(W), codes, 3),
        Weights.point(log_weights),
    )
    assert isinstance(rows, SparseRows) and len(rows.entries.block_class) > 10
    results = []
    for n_threads in (1, 2, 7):
        rows.set_threads(n_threads)
        results.append((rows.expect(weights), rows.sample(weights, 11)))
    for pair in results[1:]:
        for a, b in zip(results[0], pair, strict=True):
            np.testing.assert_array_equal(a.wins, b.wins)
            np.testing.assert_array_equal(a.exposure, b.exposure)
            assert a.value == b.value


TWINS = [  # nothing is extrapolated, so that rounding stays what it is
    (EM(accelerate=False, tol=1e-4, shapes=(1.5, 1.0), cv=2), "learn"),
    (EM(accelerate=False, tol=1e-4), 0.8),
    (Variational(accelerate=False, tol=1e-3, draws=50), "learn"),
    (Variational(accelerate=False, tol=1e-3, draws=50), 0.5),
    (Gibbs(draws=30, tune=30, chains=2, moves="none"), "learn"),
    (Gibbs(draws=30, tune=30, chains=2, moves="none"), 0.5),
]


@pytest.mark.brief(3)
@pytest.mark.parametrize(("inference", "shape"), TWINS)
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_are_those_of_the_dense_twin(inference, shape, weighted, quiet):
    X, y, _ = sparse_problem(120, 12, 3)
    weight = np.random.default_rng(4).integers(0, 3, 120) if weighted else None
    model = PlackettLuceClassifier(inference, shape=shape, features=PASSED_ON, random_state=0)
    dense = clone(model).fit(X, y, sample_weight=weight)
    new, _, _ = sparse_problem(50, 12, 3, seed=9)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        same = clone(model).fit(kind(X), y, sample_weight=weight)
        np.testing.assert_allclose(same.weights_, dense.weights_, rtol=1e-9, atol=1e-10)
        assert same.shape_ == pytest.approx(dense.shape_, rel=1e-9)
        np.testing.assert_allclose(same.predict_proba(kind(new)), dense.predict_proba(new), rtol=1e-9, atol=1e-10)
    if isinstance(inference, Gibbs):
        np.testing.assert_allclose(same.posterior_.log_weights, dense.posterior_.log_weights, rtol=1e-9)


def test_many_rows_are_averaged_by_compiled_code_to_the_same(monkeypatch):
    X, y, _ = sparse_problem(600, 12, 3)
    clf = PlackettLuceClassifier("variational", shape=0.5, features=PASSED_ON, random_state=0).fit(X, y)
    few = clf.predict_proba(sparse.csr_array(X))
    monkeypatch.setattr(posterior_weights, "MANY", 0)
    np.testing.assert_allclose(clf.predict_proba(sparse.csr_array(X)), few, rtol=1e-12)


MAPS = {
    "tfidf": TfidfVectorizer(),
    "counts": CountVectorizer(ngram_range=(1, 2)),
    "scaled": make_pipeline(CountVectorizer(), MaxAbsScaler()),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("inference", ["em", "variational", Gibbs(draws=100, tune=100, chains=2)])
def test_texts(name, inference, quiet):
    X, y = texts()
    clf = PlackettLuceClassifier(inference, shape=0.5, features=MAPS[name], random_state=0).fit(X, y)
    new, wanted = texts(60, seed=1)
    assert clf.score(new, wanted) > 0.9
    probability = clf.predict_proba(new)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    if inference != "em":
        lower, upper = clf.predict_interval(new)
        assert (lower <= probability + 1e-12).all() and (probability <= upper + 1e-12).all()
    table = clf.summary()
    assert set(table.feature[0].split()) & {word for words in SUBJECTS.values() for word in words}
    assert "features" in repr(clf)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(new), probability)


@pytest.mark.long
def test_held_out_texts_choose_the_shape():
    """The log-loss of the chosen shape is the smallest, and that of far too small a shape is worse."""
    X, y = texts()
    model = PlackettLuceClassifier(EM(shapes=(2.0, 1.0, 0.5), cv=3), features=TfidfVectorizer(min_df=2))
    clf = clone(model).fit(X, y)
    assert clf.shape_ == min(clf.cv_log_loss_, key=clf.cv_log_loss_.get)
    assert all(0 < loss < np.log(3) for loss in clf.cv_log_loss_.values())
    assert cross_val_score(model, X, y, cv=3).min() > 0.85


@pytest.mark.long
def test_one_hot_columns():
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b", "c", "d"], size=(200, 3))
    y = np.where(rng.random(200) < 0.9, X[:, 0] == "a", X[:, 1] == "b")
    dense, whole = (
        PlackettLuceClassifier(EM(shapes=(1.5, 1.0), cv=3), features=OneHotEncoder(sparse_output=kind)).fit(X, y)
        for kind in (False, True)
    )
    np.testing.assert_allclose(whole.weights_, dense.weights_, atol=1e-10)
    np.testing.assert_allclose(whole.predict_proba(X), dense.predict_proba(X), atol=1e-10)
    assert (
        cross_val_score(make_pipeline(OneHotEncoder(), clone(whole).set_params(features=PASSED_ON)), X, y).min() > 0.7
    )


@pytest.mark.parametrize("inference", ["em", "variational"])
def test_a_text_is_explained_by_its_words(inference):
    X, y = texts()
    clf = PlackettLuceClassifier(inference, shape=1.1, features=TfidfVectorizer(), random_state=0).fit(X, y)
    why = explain(clf, "the goal of the team")
    assert set(why.feature) == {"the", "goal", "of", "team"} and len(why) == 12
    assert why["class"][0] == "sport" and why.probability.sum() == pytest.approx(1)
    wins = win_probabilities(clf, X[:5])
    np.testing.assert_allclose(wins.sum(axis=2), clf.predict_proba(X[:5]))
    row = clf.features_.transform(["the goal of the team"])
    passed = PlackettLuceClassifier(inference, shape=1.1, features=PASSED_ON, random_state=0)
    passed.fit(clf.features_.transform(X), y)
    np.testing.assert_allclose(explain(passed, row).probability, why.probability, atol=1e-10)


def test_a_text_of_unknown_words_gets_the_shares_of_the_classes():
    """As one does that no weight answers to; a row of zeros of a dense map likewise."""
    X, y = texts()
    clf = PlackettLuceClassifier("em", shape=1.0, features=TfidfVectorizer()).fit(X, y)
    known, unknown = clf.predict_proba(["goal", "zebra"])
    np.testing.assert_allclose(unknown, clf.weights_.sum(axis=1))
    np.testing.assert_allclose(known, clf.predict_proba(["goal"])[0])
    assert explain(clf, "zebra").probability.sum() == pytest.approx(1)
    W, codes, _ = sparse_problem(50, 6, 3)
    passed = PlackettLuceClassifier("em", shape=1.0, features=PASSED_ON).fit(W, codes)
    np.testing.assert_allclose(passed.predict_proba(np.zeros((1, 6)))[0], passed.weights_.sum(axis=1))


def test_a_checkpoint_knows_the_entries(tmp_path, quiet):
    X, y, _ = sparse_problem(60, 8, 3)
    settings = {"tune": 10, "chains": 2, "checkpoint": tmp_path / "chains"}
    model = PlackettLuceClassifier(Gibbs(draws=10, **settings), features=PASSED_ON, random_state=0)
    short = model.fit(sparse.csr_array(X), y).posterior_.log_weights
    long = model.set_params(inference=Gibbs(draws=20, **settings)).fit(sparse.csr_array(X), y).posterior_.log_weights
    np.testing.assert_array_equal(long[:, :10], short)
    assert fingerprint(sparse.csr_array(X)) == fingerprint(sparse.csr_array(X.copy()))
    other = X.copy()
    other[0, np.flatnonzero(X[0])[0]] += 0.1
    wider, moved = np.pad(X, ((0, 0), (0, 1))), np.pad(X, ((0, 0), (1, 0)))
    assert len({fingerprint(sparse.csr_array(each)) for each in (X, other, wider, moved)}) == 4


def test_arviz_has_the_log_likelihood_of_sparse_rows(quiet):
    X, y, _ = sparse_problem(60, 8, 3)
    clf = PlackettLuceClassifier(Gibbs(draws=10, tune=10, chains=2), features=PASSED_ON, random_state=0)
    found = clf.fit(sparse.csr_array(X), y).to_arviz(sparse.csr_array(X), y).log_likelihood["y"].values
    np.testing.assert_allclose(found.sum(axis=2), clf.trace_, rtol=1e-10)


@pytest.mark.parametrize(("inference", "least"), [(EM(tol=1e-7), 0.9), (Variational(draws=2), 0.55)])
def test_nothing_dense_is_made(inference, least, monkeypatch):
    """W would take 960 MB; all that is held is in proportion to its entries and to K×p."""

    def refused(*args, **kwargs):
        raise AssertionError("W was made dense")

    n, p = 2000, 60_000
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    columns = rng.integers(p // 2, size=(n, 20)) * 2 + (y[:, None] ^ (rng.random((n, 20)) < 0.1))
    X = sparse.csr_array((np.ones(20 * n), (np.repeat(np.arange(n), 20), columns.ravel())), shape=(n, p))
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        for verb in ("toarray", "todense"):
            monkeypatch.setattr(kind, verb, refused)
    tracemalloc.start()
    try:
        clf = PlackettLuceClassifier(inference, shape=1.1, features=PASSED_ON, random_state=0).fit(X, y)
        assert clf.score(X, y) > least
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * 8 * n * p


def test_features_are_checked_in_words():
    bad = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 1.0, -2.0]]))
    model = PlackettLuceClassifier("em", shape=1.0, features=FunctionTransformer())
    with pytest.raises(ValueError, match=r"row 2, column 2 .*negative: -2"):
        model.fit(bad, [0, 1, 0])
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="row 0, column 0 .*not finite"):
        model.fit(abs(bad), [0, 1, 0])
    with pytest.raises(ValueError, match="row 1 of the features is zero in every column"):
        model.fit(sparse.csr_array(np.array([[1.0, 2.0], [0.0, 0.0]])), [0, 1])


def test_what_came_is_left_as_it_was():
    """Duplicates are added, zeros that are stored go, rows are scaled: in a copy."""
    X = sparse.csr_matrix(
        (np.array([1.0, 0.0, 2.0, 2.0, 4.0]), np.array([2, 0, 1, 1, 0]), np.array([0, 2, 5])), shape=(2, 3)
    )
    before = [each.copy() for each in (X.data, X.indices, X.indptr)]
    W = PlackettLuceClassifier("em", shape=1.0, features=PASSED_ON).fit(X, [0, 1])._rows(X)
    np.testing.assert_array_equal(W.toarray(), [[0, 0, 1], [1, 1, 0]])
    assert W.nnz == 3 and W.has_sorted_indices
    for one, two in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(one, two)


def test_rows_that_are_alike_are_said_to_be():
    alike = sparse.csr_array(np.array([[0.0, 1.0, 2.0]] * 6))
    with pytest.warns(UserWarning, match="all rows are alike"):
        clf = PlackettLuceClassifier("em", features=PASSED_ON).fit(alike, [0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(clf.predict_proba(alike)[0], [2 / 3, 1 / 3], atol=1e-6)


@pytest.mark.parametrize("features", ["learned", "exp", ExpFeatures()])
def test_exponentials_of_sparse_columns_are_refused(features):
    X, y, _ = sparse_problem(40, 3, 2)
    with pytest.raises(ValueError, match=r"X is sparse.*MaxAbsScaler"):
        PlackettLuceClassifier("em", features=features).fit(sparse.csr_array(X), y)
    if features == "exp":
        clf = PlackettLuceClassifier("em", shape=1.0, features=features).fit(X, y)
        with pytest.raises(ValueError, match="X is sparse"):
            clf.predict(sparse.csr_array(X))


def test_moves_go_through_whole_columns(quiet):
    X, y, _ = sparse_problem(60, 8, 3)
    model = PlackettLuceClassifier(Gibbs(draws=5, tune=5, chains=2), features=PASSED_ON, random_state=0)
    assert model.fit(sparse.csr_array(X), y).inference_.moves == "none"
    assert model.fit(X, y).inference_.moves == "exchange"
    with pytest.raises(ValueError, match=r"moves='exchange'\) cannot be had with sparse features.*sparse_output=False"):
        clone(model).set_params(inference__moves="exchange").fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match=r"move_budget=2.0\) would be ignored.*sparse features"):
        clone(model).set_params(inference__move_budget=2.0).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("inference", [Variational(), Gibbs(chains=1)])
def test_draws_beyond_memory_are_refused_before_they_are_made(inference, monkeypatch):
    X, y, _ = sparse_problem(40, 20, 3)
    monkeypatch.setattr(memory, "at_hand", lambda: 6 * 8 * 60 * 1000 - 1.0)
    with pytest.raises(
        ValueError, match=r"[12],000 draws of 3 × 20 weights take [\d.]+ MB.*for about 999.*draws=1000.*'em'"
    ):
        PlackettLuceClassifier(inference, features=PASSED_ON).fit(sparse.csr_array(X), y)


def test_memory_at_hand_is_known():
    assert 1e7 < memory.at_hand() < 1e15


def test_a_model_file_says_that_it_holds_no_vocabulary(tmp_path):
    X, y = texts()
    clf = PlackettLuceClassifier("em", shape=1.0, features=TfidfVectorizer()).fit(X, y)
    with pytest.raises(ModelFileError, match=r"TfidfVectorizer.*joblib"):
        clf.save(tmp_path / "texts.plk")
