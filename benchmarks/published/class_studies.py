"""Classes as scikit-learn and Bambi have them: the same likelihood, and the default model beside theirs."""

from sklearn.datasets import load_iris

from benchmarks.published.study import Printed, Study
from plackett import ChoiceSets, PlackettLuceChooser, PlackettLuceClassifier
from plackett.datasets import load
from plackett.linear import LinearUtility

LOGISTIC = "https://scikit-learn.org/stable/modules/generated/sklearn.linear_model.LogisticRegression.html"


def iris():
    """The default classifier, which averages over a posterior, beside a logit with an L2 penalty."""
    X, y = load_iris(return_X_y=True)
    model = PlackettLuceClassifier(random_state=0).fit(X, y)
    first, second = model.predict_proba(X[:2])[:, 0]
    return {"Pr(0) of row 0": first, "Pr(0) of row 1": second, "accuracy": model.score(X, y)}


def pima(inference):
    """Logit of two classes, as a choice between them with the covariates as columns of the person."""
    found = load("pima")
    X = ChoiceSets.from_wide(found.X, alternatives=["neg", "pos"], attributes=[], person=list(found.X.columns))
    model = PlackettLuceChooser(inference, features=LinearUtility(base="neg"), random_state=0).fit(X, found.y)
    table = model.coefficients().set_index("column").rename(index=lambda column: column.removesuffix(": pos"))
    return model, X, found.y, table.rename(index={"constant": "intercept"})


def pima_maximum():
    model, X, y, table = pima("em")
    return table["coefficient"].to_dict() | {"log-likelihood": model.log_likelihood(X, y).sum()}


def pima_posterior():
    table = pima("gibbs")[-1]
    return table["mean"].to_dict() | {f"deviation of {name}": value for name, value in table["sd"].items()}


def posterior(mean, sd):
    """A posterior mean against a posterior mean: Monte Carlo error, and what weak priors do."""
    return Printed(mean, 0.35 * float(sd), 0.35 * float(sd))


STUDIES = (
    Study(
        *("scikit-learn", f"[LogisticRegression, example]({LOGISTIC})", "iris"),
        *("theirs: logit with L2 penalty, ours: the default", iris),
        {
            "Pr(0) of row 0": Printed("0.982", 0.03, 0.01),
            "Pr(0) of row 1": Printed("0.972", 0.03, 0.01),
            "accuracy": Printed("0.97", 0.03, 0.02),
        },
        kind="posterior mean",
    ),
    Study(
        *("scikit-learn", f"[LogisticRegression(C=np.inf)]({LOGISTIC}) of 1.9.1, run", "pima"),
        *("logit, no penalty", pima_maximum),
        {
            "log-likelihood": "-361.7227",
            "intercept": "-8.4047",
            "glucose": "0.0352",
            "mass": "0.0897",
            "pedigree": "0.9452",
            "age": "0.0149",
        },
    ),
    Study(
        *("bambi", "[Bambi 0.17.2](https://bambinos.github.io/bambi/), run: 4 × 2,000 draws", "pima"),
        *("logit, weak normal priors", pima_posterior),
        {
            "intercept": posterior("-8.439", "0.715"),
            "pregnant": posterior("0.1224", "0.0320"),
            "glucose": posterior("0.0352", "0.0038"),
            "pressure": posterior("-0.0132", "0.0052"),
            "mass": posterior("0.0902", "0.0149"),
            "deviation of mass": Printed("0.0149", 0.0015, 0.001),
            "pedigree": posterior("0.954", "0.303"),
            "age": posterior("0.0150", "0.0094"),
        },
        kind="posterior mean",
    ),
)
