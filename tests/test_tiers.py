"""Tiers of items as users see them: results, refusals, pictures, files, report, checkpoint and command line."""

import inspect
import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import commands
import plackett
from plackett import Gibbs, PlackettLuceRanker, Rankings, Segments, Tiers, plots
from plackett.model.partitions import nearest_runs
from plackett.posterior.tiered_worths import TieredDraws
from plackett.posterior.worths import ranks_of
from plackett.priors import GIG
from plackett.report import write_report

pytestmark = pytest.mark.usefixtures("quiet")
SHORT = Gibbs(draws=150, tune=100, chains=2)
WORTHS = np.repeat([4.0, 2.0, 1.0], 3)
NAMES = np.array([f"item {k}" for k in (4, 7, 1, 0, 8, 3, 2, 6, 5)])  # in the order of their true worths


def voted(n, seed=0, worths=WORTHS, names=NAMES):
    """All pairs of items, each compared n times."""
    first, second = np.triu_indices(len(worths), 1)
    won = np.random.default_rng(seed).binomial(n, worths[first] / (worths[first] + worths[second]))
    pairs = np.append(first, second), np.append(second, first)
    return Rankings.from_pairs(*names[np.array(pairs)], counts=np.append(won, n - won))


@pytest.fixture(scope="module")
def votes():
    return voted(300)


@pytest.fixture(scope="module")
def model(votes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceRanker(Gibbs(draws=400, tune=100, chains=2), tiers=True, random_state=0).fit(None, votes)


def test_tiers_of_a_simulation_are_found(model):
    """With 300 comparisons of each pair the three tiers are those of the simulation."""
    found = model.tiers()
    assert [set(found.index[found["tier"] == t]) for t in (1, 2, 3)] == [set(NAMES[i : i + 3]) for i in (0, 3, 6)]
    together = model.same_tier().loc[NAMES, NAMES].to_numpy()
    same = WORTHS[:, None] == WORTHS
    assert together[same].min() > 0.5 and together[~same].max() < 0.01
    assert model.n_tiers_.idxmax() == 3 and "3 tiers" in repr(model)


@pytest.mark.long
def test_intervals_of_the_number_of_tiers_cover_the_truth():
    """90 % intervals of 24 simulations with three tiers; 17 and fewer would be as rare as 1 in 100."""
    covered, tiers = 0, Tiers(prior=(3.0, 3.0))
    for seed in range(24):
        m = PlackettLuceRanker(SHORT, tiers=tiers, random_state=seed).fit(None, voted(120, seed))
        row = m.parameters(0.9).loc["tiers"]
        covered += row["lower"] <= 3 <= row["upper"]
    assert covered >= stats.binom.ppf(0.01, 24, 0.9)


def test_items_of_one_tier_have_the_same_worth(model):
    """In every draw, to the last bit; all tables count such items alike."""
    posterior = model.posterior_
    logs, tiers = posterior.log_weights[..., 0].reshape(-1, 9), posterior.tier_of_items().reshape(-1, 9)
    for draw, tier in zip(logs, tiers, strict=True):
        distinct = -np.unique(-draw)
        np.testing.assert_array_equal(draw, distinct[tier])
        assert len(distinct) == tier.max() + 1
    items = model.items_
    together = np.array([[(tiers[:, i] == tiers[:, j]).mean() for j in range(9)] for i in range(9)])
    found = model.same_tier()
    np.testing.assert_allclose(found.loc[items, items], together)
    table = model.tiers(prob=0.8)
    assert found.index.tolist() == found.columns.tolist() == table.index.tolist() == model.worth().index.tolist()
    np.testing.assert_allclose(table["prob_same_as_next"][:-1], np.diag(found.to_numpy(), 1))
    assert np.isnan(table["prob_same_as_next"].iloc[-1])
    ranks = 1 + (logs[:, None, :] > logs[:, :, None]).sum(axis=2)  # larger worths, and one
    lower, upper = np.quantile(ranks, [0.1, 0.9], axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(table.loc[items, ["rank_lower", "rank_upper"]].T, [lower, upper])
    np.testing.assert_allclose(model.worth().loc[items, "first"], (ranks == 1).mean(axis=0))
    better = model.prob_better().loc[items, items].to_numpy()
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_allclose((better + better.T)[off], 1.0)


def test_equal_numbers_share_the_best_rank():
    assert ranks_of(np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0]])).tolist() == [[3, 0, 0, 2], [0, 0, 0, 0]]


def test_the_partition_is_the_nearest_of_all_runs():
    """Among all 2^(K−1) partitions into runs, by the expected distance itself and its bound."""
    rng, K = np.random.default_rng(3), 6
    for spread in (0.3, 1.0, 3.0):
        centres = np.sort(rng.normal(size=(40, 3)), axis=1)
        drawn = np.abs(np.linspace(-1, 1, K)[None, :, None] + rng.normal(0, spread / 4, (40, K, 1)) - centres[:, None])
        labels = drawn.argmin(axis=2)
        together = (labels[:, :, None] == labels[:, None, :]).mean(axis=0)
        losses = {}
        for cuts in itertools.product([0, 1], repeat=K - 1):
            runs = np.append(0, np.cumsum(cuts))
            mine = runs[:, None] == runs
            losses[tuple(runs)] = (np.log(mine.sum(axis=1)) - 2 * np.log((together * mine).sum(axis=1))).sum()
        assert tuple(nearest_runs(together)) == min(losses, key=losses.get)


def test_certain_tiers_are_returned_as_they_are():
    runs = np.array([0, 0, 1, 2, 2, 2])
    np.testing.assert_array_equal(nearest_runs((runs[:, None] == runs).astype(float)), runs)
    assert nearest_runs(np.ones((1, 1))).tolist() == [0]


def test_the_setting_and_the_method_share_a_name(model):
    """As scikit-learn sees it `tiers` is a setting; on the model it is the method."""
    m = PlackettLuceRanker(tiers=True)
    assert m.get_params()["tiers"] is True and clone(m).get_params() == m.get_params() and "tiers=True" in repr(m)
    assert m.set_params(tiers=False).get_params()["tiers"] is False
    m.set_params(tiers=Tiers(2.0)).set_params(tiers__concentration=3.0)
    assert m.get_params()["tiers"].concentration == 3.0 and m.get_params()["tiers__prior"] == (1.0, 1.0)
    assert clone(m).get_params()["tiers__concentration"] == 3.0
    assert pickle.loads(pickle.dumps(model)).tiers().equals(model.tiers())
    assert "best first" in PlackettLuceRanker.tiers.__doc__ and inspect.signature(model.tiers).parameters["prob"]


def test_parameters_list_the_number_of_tiers(model):
    found = model.parameters(0.9)
    assert found.index.tolist() == ["tiers", "concentration"]
    number = model.n_tiers_
    np.testing.assert_allclose(found.loc["tiers", "mean"], (number.index * number).sum())
    assert number.sum() == pytest.approx(1) and found.loc["tiers", "lower"] <= 3 <= found.loc["tiers", "upper"]
    plain = PlackettLuceRanker("em", shape=2).fit(None, voted(10))
    for ask in (plain.tiers, plain.same_tier):
        with pytest.raises(ValueError, match="the model has no tiers; fit with tiers=True"):
            ask()
    assert not hasattr(plain, "n_tiers_") and plain.parameters().empty


def test_a_given_concentration_is_kept(votes):
    """More of it makes more tiers, and is not learned."""
    numbers = []
    for alpha in (0.05, 20.0):
        m = PlackettLuceRanker(SHORT, tiers=Tiers(alpha), shape=1.0, random_state=0).fit(None, votes)
        assert (m.posterior_.concentration == alpha).all()
        assert "concentration" not in m.to_arviz().posterior
        numbers.append(m.parameters().loc["tiers", "mean"])
    assert numbers[0] + 1 < numbers[1]


REFUSED = {
    "em": ({"inference": "em"}, "tiers are drawn, and have no estimate"),
    "variational": ({"inference": "variational"}, "tiers are drawn, and have no estimate"),
    "davidson": ({"ties": "davidson"}, "not conjugate"),
    "race": ({"ties": "race"}, "identifies the scale"),
    "segments": ({"segments": 2}, "worths of segments have no tiers"),
    "more segments": ({"segments": Segments("auto")}, "worths of segments have no tiers"),
    "gig": ({"prior": GIG(0.5, 0.1, 1.0)}, "tiers have the Gamma prior"),
    "engine": ({"engine": "dask"}, "rankings in memory"),
    "moves": ({"inference": Gibbs(moves="walk")}, "Gibbs.moves='walk'. would be ignored"),
    "budget": ({"inference": Gibbs(move_budget=2.0)}, "would be ignored"),
    "rate": ({"rate": 2.0}, "the scale of the weights has no effect"),
    "text": ({"tiers": "yes"}, "tiers must be True, False or plackett.Tiers"),
    "number": ({"tiers": 3}, "tiers must be True, False or plackett.Tiers"),
    "concentration": ({"tiers": Tiers(-1.0)}, "concentration"),
    "prior": ({"tiers": Tiers(prior=2.0)}, "must be .shape, rate."),
    "negative": ({"tiers": Tiers(prior=(1.0, 0.0))}, "prior"),
    "unread prior": ({"tiers": Tiers(2.0, prior=(2.0, 1.0))}, "would be ignored"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_words(case, votes):
    settings, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(**({"tiers": True} | settings)).fit(None, votes)


def test_covariates_are_refused(votes):
    with pytest.raises(ValueError, match="without covariates"):
        PlackettLuceRanker(tiers=True, features="exp").fit(np.ones((len(votes), 1)), votes)


def test_draws_go_on_from_a_checkpoint(votes, tmp_path):
    """Twelve draws and then eight more are the twenty of one run, draw for draw."""

    def drawn(draws, path=None):
        gibbs = Gibbs(draws=draws, tune=16, chains=2, checkpoint=path)
        return PlackettLuceRanker(gibbs, tiers=True, random_state=0).fit(None, votes).posterior_

    whole = drawn(20)
    drawn(12, tmp_path / "run.chk")
    continued = drawn(20, tmp_path / "run.chk")
    for name in TieredDraws.drawn:
        np.testing.assert_array_equal(getattr(whole, name), getattr(continued, name))
    with pytest.raises(ValueError, match="belongs to another fit"):
        gibbs = Gibbs(draws=20, tune=16, chains=2, checkpoint=tmp_path / "run.chk")
        PlackettLuceRanker(gibbs, tiers=Tiers(1.0), random_state=0).fit(None, votes)


@pytest.mark.filterwarnings("ignore")
def test_equal_data_give_equal_draws(votes):
    """Results depend neither on the order of the rows nor on the engine."""
    draws = [
        PlackettLuceRanker(Gibbs(draws=8, tune=8, chains=2), tiers=True, engine=engine, random_state=1)
        .fit(None, votes[order])
        .posterior_.log_weights
        for engine, order in (("auto", slice(None)), ("auto", slice(None, None, -1)), ("numpy", slice(None)))
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_allclose(draws[0], draws[2], rtol=1e-9)


def test_files_arviz_and_report_have_the_tiers(model, votes, tmp_path):
    model.save(tmp_path / "m.plk")
    assert plackett.load(tmp_path / "m.plk").tiers().equals(model.tiers())
    held = model.to_arviz(R=votes[:4]).posterior
    np.testing.assert_array_equal(held["tiers"], model.posterior_.number_of_tiers())
    assert held["tier"].dims == ("chain", "draw", "item") and held["tier"].min() == 1
    np.testing.assert_array_equal(held["tier"].max("item"), held["tiers"])
    assert "concentration" in held and "log_worth" in held
    write_report(model, None, votes, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="tiers"' in page and "Same as the next" in page and "Tiers, on average" in page


@pytest.mark.parametrize("n", [3, 9])
def test_pictures_have_a_band_for_every_tier(model, n):
    ax = plots.tiers(model, n=n)
    tiers = model.tiers()["tier"].iloc[:n]
    labels = [t.get_text() for t in ax.texts]
    assert [label for label in labels if label.isdigit()] == [str(t) for t in np.unique(tiers)]
    assert len(ax.patches) == (tiers.nunique() + 1) // 2
    assert sum(label.startswith((".", "1.0")) for label in labels) == n - 1
    trace = plots.trace(model, "tiers")
    assert trace.get_title() == "number of tiers"


def test_the_command_line_prints_tiers(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("winner,loser,count\na,b,40\nb,a,38\na,c,70\nc,a,6\nb,c,66\nc,b,8\n")
    done = commands.plackett(
        "rank", path, "--table", "pairs", "--counts", "count", "--tiers", "--draws", 60, "--tune", 30
    )
    assert done.exit_code == 0, done.output
    out = done.stdout + done.stderr
    assert "prob_same_as_next" in out and "tiers = " in out and "concentration = " in out


def test_tiers_refuse_what_describes_items_and_comparisons():
    votes = voted(20)
    items = {item: {"size": float(i)} for i, item in enumerate(NAMES.tolist())}
    with pytest.raises(ValueError, match="items of one tier have one worth"):
        PlackettLuceRanker(SHORT, tiers=True).fit(None, votes, items=items)
    styled = Rankings.from_pairs(["a", "b", "c"], ["b", "c", "a"], attributes=np.array([[1.0], [0.5], [2.0]]))
    with pytest.raises(ValueError, match="attributes of comparisons have no tiers"):
        PlackettLuceRanker(SHORT, tiers=True).fit(None, styled)
