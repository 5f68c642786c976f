"""Pictures of rankings show the numbers of the tables."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from plackett import PlackettLuceRanker, Rankings, plots

ORDERS = [["b", "a", "c"], ["b", "c", "a"], ["a", "b", "c"], ["c", "b", "a"]]


@pytest.fixture(scope="module")
def ranker():
    return PlackettLuceRanker("variational", random_state=0).fit(
        None, Rankings.from_orders(ORDERS, counts=[6, 3, 4, 1])
    )


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def names(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_worths_with_their_intervals(ranker):
    table, ax = ranker.worth(0.8), plots.worth(ranker, prob=0.8)
    assert names(ax.yaxis) == table.index.tolist()
    points = next(line for line in ax.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(points.get_xdata(), table["log_worth"])
    segments = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(segments, table[["lower", "upper"]])
    assert "80 %" in ax.get_xlabel()
    low, high = ax.get_ylim()
    assert low > high  # the best on top
    assert plots.worth(ranker, n=2).get_title() == "2 of 3 items"


def test_without_intervals_none_are_drawn():
    em = PlackettLuceRanker("em", shape=0.5).fit(None, Rankings.from_orders(ORDERS))
    ax = plots.worth(em)
    assert not ax.collections
    assert "interval" not in ax.get_xlabel()


@pytest.mark.parametrize("of", ["worth", "ranking"])
def test_tables_of_shades(ranker, of):
    best = ranker.worth().index
    for draw, table in (
        (plots.rank_distribution, ranker.rank_distribution(of=of).loc[best]),
        (plots.prob_better, ranker.prob_better(of=of).loc[best, best]),
    ):
        ax = draw(ranker, of=of)
        np.testing.assert_allclose(np.ma.filled(ax.images[0].get_array(), np.nan), table)
        assert names(ax.yaxis) == best.tolist()
        assert names(ax.xaxis) == [str(column) for column in table.columns]


def test_one_row_of_covariates_at_a_time():
    X = np.linspace(-1, 1, 8)[:, None]
    m = PlackettLuceRanker("em", shape=1.5, features="exp").fit(X, Rankings.from_orders(ORDERS * 2))
    assert len(names(plots.rank_distribution(m, X[:1]).yaxis)) == 3
    assert len(names(plots.prob_better(m, X[:1]).xaxis)) == 3
    assert len(names(plots.worth(m, X).yaxis)) == 3
    with pytest.raises(ValueError, match="one row"):
        plots.prob_better(m, X[:2])
