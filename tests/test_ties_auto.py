"""ties="auto": the law of ties of pairs that predicts held-out votes best."""

import warnings

import numpy as np
import pandas as pd
import pytest

from commands import plackett
from plackett import Gibbs, PlackettLuceRanker, Rankings, load
from plackett.cli.rank_command import Ties
from plackett.data.observations import Observations
from plackett.datasets import load as data_set
from plackett.engines.pairs import PairRows
from plackett.inference.tie_choice import FOLDS, divided, held_out_losses
from plackett.output.modelfile import ModelFileError
from plackett.ranker import TIES
from plackett.responses import make_response
from plackett.responses.pair_laws import law_of

K = 8
LAWS = ("photo-finish", "davidson")


def votes(law, value, n, seed=0, spread=1.5):
    """Winners, losers and ties of n pairs under this law, of items whose worths differ much."""
    rng = np.random.default_rng(seed)
    x, items = spread * rng.normal(size=K), rng.integers(K, size=(n, 2))
    items = items[items[:, 0] != items[:, 1]]
    u, v = x[items].T
    chance = np.exp(law_of(make_response(law)).chances(u, v, np.array([value])).value)
    outcome = (rng.random(len(items)) > np.cumsum(chance, axis=0)[:2]).sum(axis=0)
    lost = outcome == 1
    return np.where(lost, items[:, 1], items[:, 0]), np.where(lost, items[:, 0], items[:, 1]), outcome == 2


def fitted(winner, loser, tied, counts=None, inference="em", **settings):
    R = Rankings.from_pairs(winner, loser, ties=tied, counts=counts, items=range(K))
    return PlackettLuceRanker(inference, shape=1.5, ties="auto", random_state=0, **settings).fit(None, R)


@pytest.mark.parametrize(("law", "value"), [("photo-finish", 3.0), ("davidson", 1.5)])
def test_the_law_of_simulated_votes_is_chosen(law, value):
    data = votes(law, value, 20_000)
    model = fitted(*data)
    assert model.ties_ == law and list(model.tie_log_loss_) == list(LAWS)
    plain = PlackettLuceRanker("em", shape=1.5, ties=law).fit(
        None, Rankings.from_pairs(*data[:2], ties=data[2], items=range(K))
    )
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    assert plain.ties_ == law and not hasattr(plain, "tie_log_loss_")
    assert model.parameters().equals(plain.parameters())


def test_losses_are_those_of_new_votes():
    """The held-out loss is that of votes which no fold has seen, within its standard error."""
    model, (winner, loser, tied) = fitted(*votes("davidson", 1.5, 4000)), votes("davidson", 1.5, 40_000)
    new = Rankings.from_pairs(winner[4000:], loser[4000:], ties=tied[4000:], items=range(K))
    each = PlackettLuceRanker("em", shape=1.5, ties="davidson").fit(
        None, Rankings.from_pairs(winner[:4000], loser[:4000], ties=tied[:4000], items=range(K))
    )
    losses = -each.log_likelihood(None, new)
    error = losses.std() * np.sqrt(1 / 3500 + 1 / len(losses))
    assert abs(model.tie_log_loss_["davidson"] - losses.mean()) < 4 * error


def test_order_and_counts_of_rows_do_not_matter():
    """To the last bit: the choice, its losses and the worths."""
    winner, loser, tied = votes("photo-finish", 2.0, 300)
    n = len(winner)
    once = fitted(winner, loser, tied, counts=np.full(n, 3))
    some = np.random.default_rng(1).permutation(np.repeat(np.arange(n), 3))
    turn = tied & (np.arange(n) % 2 == 0)  # of a tie either may be named first
    upper, lower = np.where(turn, loser, winner), np.where(turn, winner, loser)
    again = fitted(upper[some], lower[some], tied[some])
    weighted = PlackettLuceRanker("em", shape=1.5, ties="auto", random_state=0).fit(
        None, Rankings.from_pairs(winner, loser, ties=tied, items=range(K)), sample_weight=np.full(n, 3.0)
    )
    assert once.tie_log_loss_ == again.tie_log_loss_ == weighted.tie_log_loss_
    np.testing.assert_array_equal(once.weights_, again.weights_)
    other = PlackettLuceRanker("em", shape=1.5, ties="auto", random_state=1).fit(
        None, Rankings.from_pairs(winner, loser, ties=tied, items=range(K))
    )
    assert other.tie_log_loss_ != once.tie_log_loss_


def test_folds_divide_counts():
    """Folds add up to the counts, whole votes stay whole, and each vote is as likely in one fold as in another."""
    counts = np.array([[0.0, 1.0, 7.0], [2.5, 0.25, 10_000.0]])
    parts = divided(counts, np.random.default_rng(0))
    assert parts.shape == (FOLDS, 2, 3) and (parts >= 0).all()
    np.testing.assert_allclose(parts.sum(axis=0), counts, rtol=1e-15)
    assert (parts[:, 0] == np.round(parts[:, 0])).all()
    assert (np.abs(parts[:, 1, 2] - 10_000 / FOLDS) < 4.5 * np.sqrt(10_000 * (1 - 1 / FOLDS) / FOLDS)).all()


def test_held_out_votes_are_not_seen():
    """The loss of each fold is that of the mode of the other folds, fitted by the estimator itself."""
    winner, loser, tied = votes("davidson", 1.0, 200)
    R = Rankings.from_pairs(winner, loser, ties=tied, items=range(K))
    response = make_response("davidson")
    rows = PairRows(Observations.of_rankings(R.outcomes, R.item, response, K))
    (found,) = held_out_losses(rows, [response], np.random.default_rng(0))
    loss = 0.0
    for part in divided(rows.counts, np.random.default_rng(0)):
        upper, lower = np.tile(rows.first, 3), np.tile(rows.second, 3)
        upper[len(rows.first) : 2 * len(rows.first)], lower[len(rows.first) : 2 * len(rows.first)] = (
            rows.second,
            rows.first,
        )
        ties = np.repeat([False, False, True], len(rows.first))

        def some(counts, upper=upper, lower=lower, ties=ties):
            counts = counts.ravel()
            seen = counts > 0
            return Rankings.from_pairs(upper[seen], lower[seen], ties[seen], counts[seen], items=range(K))

        model = PlackettLuceRanker("em", shape=2.0, ties="davidson").fit(None, some(rows.counts - part))
        test = some(part)
        loss -= test.counts @ model.log_likelihood(None, test)
    assert found == pytest.approx(loss / rows.n_seen, abs=2e-3)  # of EM, ν has no prior


@pytest.mark.filterwarnings("ignore:.*With ties='race' they say that items are alike.$")
def test_what_has_no_law_of_pairs_is_of_unknown_order():
    """Without ties, and where rankings are longer; the printed model says so."""
    pairs = Rankings.from_pairs(["a", "b", "a"], ["b", "a", "c"], counts=[3, 2, 2])
    longer = Rankings.from_orders([["a", "b", "c"], [{"a", "b"}], ["b", "a", "c"]], unranked="absent")
    for R in (pairs, longer):
        found = [PlackettLuceRanker("em", shape=2, ties=ties).fit(None, R) for ties in ("auto", "unknown-order")]
        np.testing.assert_array_equal(*(model.weights_ for model in found))
        assert found[0].ties_ == "unknown-order" and not hasattr(found[0], "tie_log_loss_")
        assert "ties='unknown-order', since not all rankings are of two items, or there are no ties" in repr(found[0])
        assert "since" not in repr(found[1]) and found[0].parameters().empty
    assert PlackettLuceRanker("variational", ties="auto").fit(None, pairs).ties_ == "unknown-order"


def test_a_new_fit_chooses_again():
    model = fitted(*votes("davidson", 1.5, 400))
    model.fit(None, Rankings.from_pairs([0, 1, 0], [1, 0, 2]))
    assert model.ties_ == "unknown-order" and not hasattr(model, "tie_log_loss_")
    model.set_params(ties="race").fit(None, Rankings.from_pairs([0, 1, 0], [1, 0, 2]))
    assert model.ties_ == "race"


@pytest.mark.filterwarnings("ignore:.*(converged|too few).*")
def test_draws_and_files_know_the_law(tmp_path):
    winner, loser, tied = votes("davidson", 1.5, 300)
    model = fitted(winner, loser, tied, inference=Gibbs(draws=10, tune=10, chains=2))
    path = tmp_path / "votes.plk"
    model.save(path)
    again = load(path)
    assert (again.ties_, again.tie_log_loss_) == (model.ties_, model.tie_log_loss_) and repr(again) == repr(model)
    assert f"ties={model.ties_!r} is chosen by the log-loss of a held-out vote (photo-finish: " in repr(model)
    np.testing.assert_array_equal(again.prob_better(of="ranking"), model.prob_better(of="ranking"))
    assert again.parameters().index.tolist() == [{"davidson": "nu", "photo-finish": "theta"}[model.ties_]]
    for wrong in ("race", "unknown-order"):
        again.ties_ = wrong
        with pytest.raises(ModelFileError, match="ties_ must be one of"):
            again.save(path)
    again.ties_, again.ties = model.ties_, "race"
    with pytest.raises(ModelFileError, match="ties_ must be 'race'"):
        again.save(path)


def test_who_was_shown_first_is_known_to_both_laws():
    winner, loser, tied = votes("davidson", 1.5, 400)
    R = Rankings.from_pairs(winner, loser, ties=tied, first=winner, items=range(K))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PlackettLuceRanker("em", shape=1.5, ties="auto", order_effect=True).fit(None, R)
    assert model.parameters().index.tolist()[1] == "eta" and model.parameters().loc["eta", "mean"] > 2
    assert model.tie_log_loss_["davidson"] < fitted(winner, loser, tied).tie_log_loss_["davidson"] - 0.1


@pytest.mark.parametrize(
    ("settings", "X", "words"),
    [
        ({}, [[0.0]] * 4, "ties='auto' is for pairs without covariates"),
        ({"inference": "variational"}, None, "which ties='auto' chose, has no variational approximation"),
        ({"engine": "dask"}, None, "cannot be had with engine='dask'"),
        ({"segments": 2}, None, "ties='auto' needs more"),
        ({"inference": Gibbs(moves="none")}, None, "'davidson', which ties='auto' chose, is not conjugate"),
    ],
)
def test_refused_in_words(settings, X, words):
    R = Rankings.from_pairs([0, 1, 0, 1], [1, 0, 1, 2], ties=[False, False, True, False])
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(**({"inference": "em"} | settings), ties="auto").fit(X, R)


def test_rankings_in_partitions_are_refused():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame([["a", "b"], ["b", "a"]]), npartitions=2)
    R = Rankings.from_orders(frame, unranked="absent", items=["a", "b"])
    with pytest.raises(ValueError, match="ties='auto' cannot be had for rankings in partitions"):
        PlackettLuceRanker("em", ties="auto").fit(None, R)


def test_the_command_line_chooses_too(tmp_path):
    """It prints what the fit in Python prints."""
    assert {each.value for each in Ties} == set(TIES)
    winner, loser, tied = votes("davidson", 1.5, 300)
    pd.DataFrame({"winner": winner, "loser": loser, "tie": 1 * tied}).to_csv(tmp_path / "votes.csv", index=False)
    done = plackett("rank", tmp_path / "votes.csv", "--table", "pairs", "--inference", "em", "--ties", "auto")
    assert done.exit_code == 0, done.output
    assert "is chosen by the log-loss of a held-out vote (photo-finish: " in done.stdout


def test_votes_on_language_models():
    """Photo finish predicts them better than Davidson's ties, by little, as the likelihoods of docs/rankings.md say."""
    model = PlackettLuceRanker("em", shape=1, ties="auto", random_state=0).fit(None, data_set("arena").y)
    assert model.ties_ == "photo-finish"
    assert model.tie_log_loss_ == pytest.approx({"photo-finish": 1.0583, "davidson": 1.0586}, abs=1e-4)
