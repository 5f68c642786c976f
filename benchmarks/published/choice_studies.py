"""Choices as mlogit, xlogit and Biogeme have them: logit, rank-ordered logit, nests and random tastes."""

from functools import cache

from benchmarks.published import sources
from benchmarks.published.study import Printed, Study, estimate
from plackett import PlackettLuceChooser, Segments, Tastes
from plackett.datasets import load
from plackett.linear import LinearUtility

MLOGIT = "https://cran.r-project.org/package=mlogit"
EXERCISE_1 = f"[mlogit 2.0-0, exercise 1]({MLOGIT}/vignettes/e1.mlogit.html)"
EXERCISE_3 = f"[mlogit 2.0-0, exercise 3]({MLOGIT}/vignettes/e3.mxlogit.html)"
RANDOM = "[mlogit 1.1-2, random parameters](https://github.com/cran/mlogit/blob/1.1-2/inst/doc/c5.mxl.html)"
RANKED = f"[mlogit 2.0-0, miscellaneous models]({MLOGIT}/vignettes/c7.miscmodels.html)"
XLOGIT = "https://github.com/arteagac/xlogit/blob/master/examples"
XLOGIT_LOGIT = f"[xlogit, multinomial logit]({XLOGIT}/multinomial_model.ipynb)"
XLOGIT_MIXED = f"[xlogit, mixed logit]({XLOGIT}/mixed_logit_model.ipynb)"
BIOGEME = "[Biogeme 3.3.2, Swissmetro examples](https://biogeme.epfl.ch/sphinx/index.html)"


FEW, SOME = 4.0, 2.0  # standard errors that a maximum may be off where 100 or 600 draws simulate the likelihood


def coefficients(model, errors="classical"):
    """Coefficients by column, and their standard errors by `s.e. of` it."""
    table = model.coefficients(errors=errors).set_index("column")
    found = table["coefficient"].to_dict()
    return found | {f"s.e. of {name}": value for name, value in table["std_error"].items()}


def likelihood(model, X, y):
    return {"log-likelihood": model.log_likelihood(X, y).sum()}


def ratios(found, cost):
    """Coefficients in units of that of a cost."""
    return {f"{name} / {cost}": value / found[cost] for name, value in found.items()}


def law(model, X, y, persons=None):
    """Means, deviations and correlations of tastes, and the log-likelihood integrated over them."""
    table = model.population()
    found = {f"mean of {name}": value for name, value in table["mean"].items()}
    found |= {f"deviation of {name}": value for name, value in table["sd"].items()}
    correlation = table.attrs["correlation"]
    found |= {f"correlation of {a} and {b}": correlation.loc[a, b] for a in correlation for b in correlation if a != b}
    return found | {"log-likelihood": model.integrated_log_likelihood(X, y, persons)}


def heating_costs():
    X, y = sources.heating()
    model = PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(X, y)
    found = coefficients(model)
    return found | likelihood(model, X, y) | ratios(found, "ic")


def heating_constants():
    X, y = sources.heating()
    model = PlackettLuceChooser("em", features=LinearUtility(base="hp")).fit(X, y)
    found = coefficients(model)
    cheaper = model.predict_proba(sources.heating(rebate=0.1)[0]).mean(axis=0)
    share = cheaper[model.alternatives_.tolist().index("hp")]
    return found | ratios(found, "ic") | {"share of hp with a rebate of 10 %": share}


def train_logit():
    X, y, _ = sources.train()
    model = PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(X, y)
    found = coefficients(model)
    return found | likelihood(model, X, y) | ratios(found, "price")


def train_tastes():
    X, y, persons = sources.train()
    tastes = Tastes(random=["time", "change", "comfort"], correlated=True, constants=False)
    model = PlackettLuceChooser(features=tastes, random_state=1).fit(X, y, groups=persons)
    found = law(model, X, y, persons)
    gain = found["log-likelihood"] - train_logit()["log-likelihood"]
    return found | {"likelihood ratio against logit": 2 * gain}


@cache
def electricity(fixed=()):
    found = load("electricity")
    X, y, persons = found.choices, found.y, found.groups
    tastes = Tastes(random=[name for name in X.attributes if name not in fixed], constants=False)
    model = PlackettLuceChooser(features=tastes, random_state=1).fit(X, y, groups=persons)
    return law(model, X, y, persons)


def platforms():
    X, R = sources.platforms()
    return coefficients(PlackettLuceChooser("em", features=LinearUtility(base="PC")).fit(X, R))


def fishing_logit():
    X, y = sources.fishing(["income"])
    model = PlackettLuceChooser("em", features=LinearUtility(base="beach")).fit(X, y)
    return coefficients(model) | likelihood(model, X, y)


def fishing_tastes():
    X, y = sources.fishing()
    model = PlackettLuceChooser(features=Tastes(constants=False), random_state=1).fit(X, y)
    return law(model, X, y)


def swissmetro_logit():
    X, y, _ = sources.swissmetro()
    model = PlackettLuceChooser("em", features=LinearUtility(base="swissmetro")).fit(X, y)
    null = {"log-likelihood of equal chances": model.fit_statistics(X, y).null}
    return coefficients(model, "robust") | likelihood(model, X, y) | null


def swissmetro_nested():
    X, y, _ = sources.swissmetro()
    model = PlackettLuceChooser("em", features="linear", nests={"existing": ["train", "car"]}).fit(X, y)
    mean, error = model.parameters().loc["existing", ["mean", "std_error"]]
    return likelihood(model, X, y) | {"1/α": 1 / mean, "s.e. of 1/α": error / mean**2}


def swissmetro_tastes(panel):
    X, y, persons = sources.swissmetro()
    persons = persons if panel else None
    tastes = Tastes(random=["time"])
    model = PlackettLuceChooser(features=tastes, random_state=1).fit(X, y, groups=persons)
    return law(model, X, y, persons)


def swissmetro_segments():
    X, y, _ = sources.swissmetro()
    segments = Segments(2, by=["time"], ignored=["time"])
    return likelihood(PlackettLuceChooser("em", features="linear", segments=segments, random_state=0).fit(X, y), X, y)


STUDIES = (
    Study(
        *("mlogit", EXERCISE_1, "heating", "logit, no constants", heating_costs),
        {
            "ic": "-0.0062319",
            "s.e. of ic": "0.0003528",
            "oc": "-0.0045801",
            "s.e. of oc": "0.0003222",
            "oc / ic": "0.7349453",
            "log-likelihood": "-1095.2",
        },
    ),
    Study(
        *("mlogit", EXERCISE_1, "heating", "logit, constants", heating_constants),
        {
            "constant: ec": "1.6588459",
            "constant: er": "1.8534370",
            "constant: gc": "1.7109793",
            "constant: gr": "0.3082633",
            "ic": "-0.0015332",
            "s.e. of ic": "0.0006209",
            "oc": "-0.0069964",
            "s.e. of oc": "0.0015541",
            "oc / ic": "4.563385",
            "share of hp with a rebate of 10 %": "0.06446230",
        },
    ),
    Study(
        *("mlogit", RANDOM, "train", "logit, no constants, signs reversed there", train_logit),
        {
            "price": Printed("-0.06735804", 1e-6),
            "s.e. of price": "0.003393252",
            "time": Printed("-1.72055142", 1e-6),
            "s.e. of time": "0.160351702",
            "change": Printed("-0.32634094", 1e-6),
            "s.e. of change": "0.059489152",
            "comfort": Printed("-0.94572555", 1e-6),
            "s.e. of comfort": "0.064945464",
            "time / price": "25.54337",
            "change / price": "4.84487",
            "comfort / price": "14.04028",
        },
    ),
    Study(
        *("mlogit", RANDOM, "train", "correlated normal tastes, 100 draws there", train_tastes),
        {
            "likelihood ratio against logit": Printed("388.057", 40.0, 1.0),
            "deviation of time": estimate("5.352199", "0.381135", FEW),
            "deviation of change": estimate("1.762026", "0.144592", FEW),
            "deviation of comfort": estimate("2.809899", "0.178295", FEW),
            "correlation of time and change": estimate("-0.029563", "0.232414"),
            "correlation of time and comfort": estimate("0.369565", "0.114068"),
            "correlation of change and comfort": estimate("0.248927", "0.110321"),
        },
        kind="posterior mean",
    ),
    Study(
        *("mlogit", EXERCISE_3, "electricity", "normal tastes, price fixed, 100 draws there"),
        lambda: electricity(("pf",)),
        {
            "log-likelihood": Printed("-3961.7", 60.0, 0.5),
            "mean of pf": estimate("-0.879902", "0.032759", FEW),
            "mean of cl": estimate("-0.217059", "0.013673", FEW),
            "deviation of cl": estimate("0.373477", "0.018018", FEW),
        },
        kind="posterior mean",
    ),
    Study(
        *("mlogit", RANKED, "game platforms", "rank-ordered logit", platforms),
        {"own": "0.96337", "s.e. of own": "0.19040", "hours: Xbox": "-0.17301", "age: Xbox": "-0.06666"},
        "game_platforms.csv",
    ),
    Study(
        *("xlogit", XLOGIT_LOGIT, "heating", "logit, no constants", heating_costs),
        {"log-likelihood": "-1095.237", "ic": Printed("-0.0062318", 1e-6), "oc": Printed("-0.0045800", 1e-6)},
    ),
    Study(
        *("xlogit", XLOGIT_MIXED, "electricity", "six normal tastes, 600 draws there", electricity),
        {
            "log-likelihood": Printed("-3888.465", 12.0, 0.5),
            "mean of pf": estimate("-0.9972102", "0.0361699", SOME),
            "mean of cl": estimate("-0.2196812", "0.0143577", SOME),
            "mean of loc": estimate("2.2901807", "0.0891457", SOME),
            "mean of wk": estimate("1.6943247", "0.0719012", SOME),
            "mean of tod": estimate("-9.6752279", "0.3117174", SOME),
            "mean of seas": estimate("-9.6961836", "0.3111496", SOME),
        },
        kind="posterior mean",
    ),
    Study(
        *("xlogit", "[xlogit 0.2.7](https://pypi.org/project/xlogit/), run", "electricity"),
        *("normal tastes, price fixed, 600 draws there", lambda: electricity(("pf",))),
        {
            "log-likelihood": Printed("-3920.272", 20.0, 0.5),
            "mean of pf": estimate("-0.9211469", "0.0344288", SOME),
            "mean of cl": estimate("-0.2368540", "0.0147223", SOME),
            "deviation of cl": estimate("0.3959819", "0.0196126", SOME),
        },
        kind="posterior mean",
    ),
    Study(
        *("xlogit", XLOGIT_LOGIT, "fishing", "logit with income", fishing_logit),
        {
            "log-likelihood": "-1215.138",
            "price": Printed("-0.0251161", 1e-5),
            "catch": Printed("0.3578374", 1e-3),
            "constant: boat": Printed("0.5273413", 1e-3),
            "income: boat": Printed("0.0000894", 1e-6),
        },
        "fishing.csv",
    ),
    Study(
        *("xlogit", XLOGIT_MIXED, "fishing", "two normal tastes, 1,000 draws there", fishing_tastes),
        {
            "log-likelihood": Printed("-1300.511", 1.0, 0.2),
            "mean of price": estimate("-0.0272460", "0.0024982"),
            "deviation of price": estimate("0.0102130", "0.0022025"),
            "mean of catch": estimate("1.3271150", "0.1724869"),
            "deviation of catch": estimate("1.5706825", "0.5732798"),
        },
        "fishing.csv",
        "posterior mean",
    ),
    Study(
        *("xlogit", XLOGIT_MIXED, "swissmetro", "normal taste for time, persons known, 1,500 draws there"),
        lambda: swissmetro_tastes(panel=True),
        {
            "log-likelihood": Printed("-4359.218", 12.0, 0.5),
            "mean of time": estimate("-3.2289850", "0.1749807"),
            "deviation of time": estimate("3.6485337", "0.1683459"),
            "mean of cost": estimate("-1.6601703", "0.0778870"),
        },
        "swissmetro.csv.gz",
        "posterior mean",
    ),
    Study(
        *("biogeme", BIOGEME, "swissmetro", "logit", swissmetro_logit),
        {
            "log-likelihood": "-5331.252",
            "log-likelihood of equal chances": "-6964.663",
            "constant: car": "-0.155",
            "constant: train": "-0.701",
            "cost": "-1.08",
            "time": "-1.28",
            "s.e. of constant: car": "0.0582",
            "s.e. of constant: train": "0.0826",
            "s.e. of cost": "0.0682",
            "s.e. of time": Printed("0.104"),
        },
        "swissmetro.csv.gz",
    ),
    Study(
        *("biogeme", BIOGEME, "swissmetro", "nested logit, train and car together", swissmetro_nested),
        {"log-likelihood": "-5236.90", "1/α": "2.05", "s.e. of 1/α": "0.118"},
        "swissmetro.csv.gz",
    ),
    Study(
        *("biogeme", BIOGEME, "swissmetro", "two latent classes, one of which ignores time", swissmetro_segments),
        {"log-likelihood": "-5208.50"},
        "swissmetro.csv.gz",
    ),
    Study(
        *("biogeme", BIOGEME, "swissmetro", "normal taste for time, each choice by itself"),
        lambda: swissmetro_tastes(panel=False),
        {
            "log-likelihood": Printed("-5213.73", 2.0, 0.3),
            "mean of time": estimate("-2.28", "0.118"),
            "deviation of time": estimate("1.69", "0.14"),
        },
        "swissmetro.csv.gz",
        "posterior mean",
    ),
)
