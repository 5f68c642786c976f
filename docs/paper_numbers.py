"""Numbers that paper.md quotes: `python docs/paper_numbers.py` writes them to paper.json.

Each is a phrase of the paper, made from the tables that `plackett reproduce` and `make bench-prediction` have written.
A test compares phrases, file and paper. Nothing is fitted here.
"""

import json
from pathlib import Path
from statistics import fmean, stdev

DOCS = Path(__file__).parent
REFERENCE = "logistic-l2"


def read(name):
    """A table of the documentation."""
    return json.loads((DOCS / name).read_text(encoding="utf-8"))


def phrases():
    """Phrases of the paper that hold a number, by what they are about."""
    return {**prediction(), **reproduction(), **mixing()}


def prediction():
    """Held-out prediction by the default classifier, beside logistic regression and the rivals."""
    table = read("prediction/table.json")
    sets, said = table["sets"], table["verdicts"]["learned"]
    clear = [name for name, column in sets.items() if gain(column) > 2]
    best = said["best_or_within_one_standard_error"]
    columns = {name: {method: fmean(cell["log_loss"]) for method, cell in sets[name].items()} for name in sets}
    mode, letter = columns["travelmode"], columns["letter"]
    winner = {"catboost": "CatBoost", "catboost-tuned": "CatBoost"}[min(letter, key=lambda method: letter[method])]
    return {
        "sets": f"On {said['sets']} real sets",
        "version": f"made with version {table['made_with']['plackett']}",
        "below": f"lower mean log-loss than logistic regression on {len(said['below_reference'])} of them",
        "clear": f"beyond two standard errors of the paired difference on {len(clear)}",
        "best": f"the best method or within one standard error of it on {len(best)}",
        "most": f"on travelmode ({mode['learned']:.2f} against {mode[REFERENCE]:.2f})",
        "least": f"on letter ({letter['learned']:.2f} against {min(letter.values()):.2f} by {winner})",
        "calibrated": "calibration error is below 0.05 on "
        f"{said['calibration_judged_on'] - len(said['calibration_above_5_percent'])} of "
        f"{said['calibration_judged_on']} sets with at least 200 rows",
    }


def gain(column):
    """By how many standard errors the mean log-loss is below that of logistic regression, paired over splits."""
    gaps = [b - a for a, b in zip(column["learned"]["log_loss"], column[REFERENCE]["log_loss"], strict=True)]
    return fmean(gaps) / (stdev(gaps) / len(gaps) ** 0.5)


def reproduction():
    """How many published errors of the first paper come out again."""
    rows = read("reproduction/tables/table2.json")["rows"]
    judged = {"agrees", "better", "worse"}  # others say that a published value is no error rate
    possible = [row for row in rows if row["method"].startswith("PL-") and row["verdict50"] in judged]
    again = [row for row in possible if {row["verdict50"], row["verdict80"]} & {"agrees", "better"}]
    return {
        "again": f"{len(again)} of {len(possible)} published error rates",
        "sets of the paper": f"the {len(read('reproduction/tables/table1.json')['rows'])} small data sets",
    }


def mixing():
    """Smallest effective sample size with and without moves between modes, on average over seeds."""
    runs = read("figures/mixing.json")["compare"]["iris"]
    without, with_moves = (fmean(run["ess"] for run in runs[moves]) for moves in ("none", "exchange"))
    (iterations,) = {run["iterations"] for kind in ("none", "exchange") for run in runs[kind]}
    return {"draws": f"from {without:.0f} to {with_moves:,.0f} in runs of {iterations:,} iterations on Iris"}


if __name__ == "__main__":
    text = json.dumps(phrases(), indent=1, ensure_ascii=False)
    (DOCS / "paper.json").write_text(text + "\n", encoding="utf-8")
    print(text)
