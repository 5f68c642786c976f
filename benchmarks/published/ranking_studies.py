"""Rankings and comparisons as R's PlackettLuce, choix, evalica and leaderbot have them."""

import numpy as np

from benchmarks.published import sources
from benchmarks.published.study import Printed, Study
from plackett import PlackettLuceRanker, Rankings

VIGNETTE = "[PlackettLuce's introduction](https://hturner.github.io/PlackettLuce/articles/Overview.html)"
CHOIX = "[choix, introduction](https://github.com/lucasmaystre/choix/blob/master/notebooks/intro-pairwise.ipynb)"
LEADERBOT = "[leaderbot's README](https://github.com/suquark/leaderbot)"
DUBLIN = (
    *(".336453", "-.354040", ".498944", "-.248924", ".531167", ".326055", "-.446561", ".516103", ".525065"),
    *("-.584583", ".398722"),
)  # log-worths of the items from the second on, the first being 0
REFERENCE = "Austin Cameron"  # the first of the drivers there
BOTH = ("ties", "ties_both_bad")
LOSS = "negative log-likelihood of a vote"


def log_worths(model, reference=None):
    """Log-worths by item, 0 for a reference or on average."""
    found = model.worth()["log_worth"]
    return (found - (0.0 if reference is None else found[reference])).to_dict()


def likelihood(model, R):
    return {"log-likelihood": R.counts @ model.log_likelihood(None, R)}


def puddings():
    R = sources.puddings()
    model = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, R)
    found = likelihood(model, R) | {"ln ν": np.log(model.parameters().loc["nu", "mean"])}
    found["AIC"] = 2 * 6 - 2 * found["log-likelihood"]
    return found | {f"log-worth of {k}": value for k, value in log_worths(model, 1).items()}


def nascar():
    races = sources.nascar()
    parts = Rankings.from_orders(races, unranked="absent").components()
    always_last = {part[0] for part in parts if len(part) == 1}
    R = Rankings.from_orders([[d for d in race if d not in always_last] for race in races], unranked="absent")
    model = PlackettLuceRanker("em", shape=1).fit(None, R)
    return likelihood(model, R) | log_worths(model, REFERENCE)


def nascar_with_a_ghost():
    """Half a win and half a loss of each driver against a driver who is not there."""
    races = sources.nascar()
    drivers = sorted({driver for race in races for driver in race})
    ghost = [pair for driver in drivers for pair in ([driver, "ghost"], ["ghost", driver])]
    R = Rankings.from_orders([*races, *ghost], unranked="absent")
    weight = np.append(np.ones(len(races)), np.full(len(ghost), 0.5))
    model = PlackettLuceRanker("em", shape=1).fit(None, R, weight)
    worth = model.worth()["worth"].drop("ghost")
    share = {f"worth of {driver}": value for driver, value in (worth / worth.sum()).items()}
    return share | log_worths(model, REFERENCE)


def dublin():
    R = sources.dublin()
    model = PlackettLuceRanker("em", shape=1).fit(None, R)
    found = model.worth()["log_worth"].loc[model.items_].to_numpy()
    return likelihood(model, R) | {f"log-worth of item {k + 1}": found[k] - found[0] for k in range(len(found))}


def six_comparisons():
    winners, losers = zip((1, 0), (0, 4), (3, 1), (0, 2), (2, 4), (4, 3), strict=True)
    model = PlackettLuceRanker("em", shape=1).fit(None, Rankings.from_pairs(winners, losers))
    found = model.worth()["log_worth"]
    first = 1 / (1 + np.exp(found[4] - found[1]))
    return {f"strength of {k}": found[k] for k in range(5)} | {"probability that 1 beats 4": first}


def arena_with_halves():
    R, weight = sources.arena_with_halves()
    some = weight > 0
    model = PlackettLuceRanker("em", shape=1).fit(None, R[some], weight[some])
    return model.worth(scale="elo")["elo"].to_dict()


def arena_with_all_ties():
    R = sources.arena(*BOTH)
    model = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, R)
    return {"ν / 2": model.parameters().loc["nu", "mean"] / 2} | model.worth(scale="elo")["elo"].to_dict()


def arena(law, name, ties=("ties",)):
    def ours():
        R = sources.arena(*ties)
        model = PlackettLuceRanker("em", shape=1, ties=law).fit(None, R)
        return {LOSS: -model.score(None, R), name: model.parameters()["mean"].iloc[0]}

    return ours


def arena_without_ties():
    R = sources.arena()
    return {LOSS: -PlackettLuceRanker("em", shape=1).fit(None, R).score(None, R)}


STUDIES = (
    Study(
        *("plackettluce-r", "[PlackettLuce 0.3.2](https://cran.r-project.org/package=PlackettLuce), run"),
        *("pudding", "Davidson's ties", puddings),
        {
            "log-likelihood": "-809.7095",
            "ln ν": Printed("-.291927", 1e-5),
            "log-worth of 2": Printed(".220242", 1e-5),
            "log-worth of 3": Printed(".152978", 1e-5),
            "log-worth of 4": Printed(".175145", 1e-5),
            "log-worth of 5": Printed(".133865", 1e-5),
            "log-worth of 6": Printed(".377135", 1e-5),
        },
        "pudding.csv",
    ),
    Study(
        *("plackettluce-r", f"{VIGNETTE}, stopped after seven iterations", "pudding", "Davidson's ties", puddings),
        {"AIC": "1631.4", "ln ν": "-0.2919", "log-worth of 2": "0.2202", "log-worth of 4": Printed("0.1753", 2e-4)},
        "pudding.csv",
    ),
    Study(
        *("plackettluce-r", f"{VIGNETTE}; log-likelihood by 0.3.2, run", "nascar", "83 drivers, maximum", nascar),
        {
            "log-likelihood": "-4191.0973",
            "PJ Jones": "4.15",
            "Scott Pruett": "3.62",
            "Mark Martin": "2.08",
            "Dave Marcis": "0.03",
            "Dick Trickle": "-0.31",
            "Joe Varde": "-0.15",
        },
        "nascar2002.csv",
    ),
    Study(
        *("plackettluce-r", f"{VIGNETTE}; worths by 0.3.2, run", "nascar", "87 drivers, `npseudo = 0.5`"),
        nascar_with_a_ghost,
        {
            "PJ Jones": "3.20",
            "Scott Pruett": "2.77",
            "Mark Martin": "1.91",
            "Andy Hillenburg": Printed("-2.171065", 1e-5),
            "Gary Bradberry": Printed("-1.744754", 1e-5),
            "worth of PJ Jones": ".100508",
            "worth of Scott Pruett": ".065897",
            "worth of Mark Martin": ".027784",
            "worth of Rusty Wallace": ".027272",
        },
        "nascar2002.csv",
    ),
    Study(
        *("plackettluce-r", "[PlackettLuce 0.3.2](https://cran.r-project.org/package=PlackettLuce), run"),
        *("dublin", "42,254 ballots, maximum", dublin),
        {"log-likelihood": "-231755.88"}
        | {f"log-worth of item {k}": Printed(text, 1e-5) for k, text in enumerate(DUBLIN, start=2)},
        "dublin_north.soi",
    ),
    Study(
        *("choix", CHOIX, "six comparisons", "Bradley–Terry", six_comparisons),
        {
            "strength of 0": "0.583",
            "strength of 1": "0.194",
            "strength of 2": "0.000",
            "strength of 3": "-0.194",
            "strength of 4": "-0.583",
            "probability that 1 beats 4": "0.69",
        },
    ),
    Study(
        *("evalica", "[evalica 0.4.2](https://pypi.org/project/evalica/), run", "arena"),
        *("Bradley–Terry, ties as half wins, points", arena_with_halves),
        {
            "chatgpt-4o-latest": "203.9308",
            "gemini-1.5-pro-exp-0801": "187.1944",
            "gpt-4o-2024-05-13": "174.6025",
            "claude-3-5-sonnet-20240620": "159.7505",
            "llama-13b": "-312.3789",
        },
    ),
    Study(
        *("evalica", "[evalica 0.4.2](https://pypi.org/project/evalica/), run", "arena"),
        *("Newman's model of ties, which is Davidson's, points", arena_with_all_ties),
        {"ν / 2": "0.56126", "chatgpt-4o-latest": Printed("320.4156", 1e-3), "llama-13b": Printed("-494.3978", 1e-3)},
    ),
    Study(
        *("leaderbot", LEADERBOT, "arena", "ties of Rao and Kupper", arena("photo-finish", "θ")),
        {LOSS: "1.0095"},
    ),
    Study(*("leaderbot", LEADERBOT, "arena", "ties of Davidson", arena("davidson", "ν")), {LOSS: "1.0100"}),
    Study(
        *("SciPy", "the same likelihood by L-BFGS-B", "arena", "ties of Rao and Kupper", arena("photo-finish", "θ")),
        {LOSS: "1.0095", "θ": "1.5683"},
    ),
    Study(
        *("SciPy", "the same likelihood by L-BFGS-B", "arena", "ties of Davidson", arena("davidson", "ν")),
        {LOSS: "1.0100", "ν": ".5476"},
    ),
    Study(
        *("SciPy", "the same likelihood by L-BFGS-B", "arena", "ties of Rao and Kupper, both kinds"),
        arena("photo-finish", "θ", BOTH),
        {LOSS: "1.05827", "θ": Printed("2.1532", 2e-4)},
    ),
    Study(
        *("SciPy", "the same likelihood by L-BFGS-B", "arena", "ties of Davidson, both kinds"),
        arena("davidson", "ν", BOTH),
        {LOSS: "1.05855", "ν": Printed("1.1226", 2e-4)},
    ),
    Study(
        *("SciPy", "the same likelihood by L-BFGS-B", "arena", "Bradley–Terry, no ties", arena_without_ties),
        {LOSS: ".63505"},
    ),
)
