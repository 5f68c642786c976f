"""Rankings on the command line: `plackett rank` with files of PrefLib and with tables, and models of rankings."""

import functools
import io

import numpy as np
import pandas as pd
import pytest

import commands
from commands import plackett
from plackett import PlackettLuceRanker, Rankings, load
from plackett.data.ballots import Ballots

FAST = ("--inference", "em", "--shape", "1.5")
NAMES = ["Ann", "Bob", "Cy", "Dee"]
mistake = functools.partial(commands.mistake, notes=False)  # of rankings nothing is noted


def orders(n=40, seed=0, length=4):
    """Orders of items of worth 8, 4, 2, 1; the first few of each."""
    rng = np.random.default_rng(seed)
    times = rng.exponential(size=(n, 4)) / [8, 4, 2, 1]
    return [[NAMES[k] for k in row[:length]] for row in times.argsort(axis=1)]


def preflib(found, kind):
    """The text of a file of PrefLib."""
    head = [f"# DATA TYPE: {kind}", "# NUMBER ALTERNATIVES: 4"]
    head += [f"# ALTERNATIVE NAME {k + 1}: {name}" for k, name in enumerate(NAMES)]
    lines = [f"1: {','.join(str(NAMES.index(item) + 1) for item in order)}" for order in found]
    return "\n".join(head + lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankings")
    (folder / "all.soc").write_text(preflib(orders(), "soc"))
    (folder / "top.soi").write_text(preflib(orders(length=2), "soi"))
    result = plackett("rank", folder / "top.soi", "--unranked", "last", *FAST, "--out", folder / "m.plk")
    assert result.exit_code == 0, result.output
    (folder / "said.txt").write_text(result.stdout)
    return folder


def expected(unranked, length=2):
    R = Rankings.from_orders(orders(length=length), unranked=unranked, items=NAMES)
    return PlackettLuceRanker("em", shape=1.5, random_state=0).fit(None, R)


def test_rank_prints_the_worths_of_the_library_and_saves_the_model(folder):
    said, model = (folder / "said.txt").read_text(), load(folder / "m.plk")
    assert said.startswith("40 rankings of 4 items; unranked items come last\n4 items")
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in said.splitlines() if "│" in line]
    table = expected("last").worth()
    assert [row[0] for row in rows] == table.index.tolist()
    np.testing.assert_allclose([float(row[1]) for row in rows], table["worth"], rtol=5e-3)
    heads = next(line for line in said.splitlines() if "┃" in line)
    assert all(name in heads for name in ("item", "worth", "log_worth"))
    assert f"{table['lower'].iloc[0]:.3g}" in said and "with intervals from the information there" in said
    np.testing.assert_allclose(model.worth()["worth"], table["worth"])
    shown = plackett("show", folder / "m.plk").stdout
    assert "40 rankings of 4 items; unranked items come last" in shown and "The 4 worths" in shown and "Dee" in shown
    written = pd.read_csv(io.StringIO(plackett("show", folder / "m.plk", "--out", "-").stdout))
    assert written["item"].tolist() == table.index.tolist()


def test_draws_have_intervals(folder, tmp_path):
    run = ("--draws", "50", "--tune", "20", "--chains", "2", "--seed", "3", "--out", tmp_path / "m")
    result = plackett("rank", folder / "all.soc", *run)
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "m")
    assert model.trace_.shape == (2, 50) and model.random_state == 3 and model.table_.unranked is None
    table = model.worth()
    assert (table["lower"] < table["log_worth"]).all() and f"{table['lower'].iloc[0]:.3g}" in result.stdout


def test_what_is_not_ranked_must_be_said_with_both_choices(folder):
    line = mistake("rank", folder / "top.soi", *FAST)
    assert "say --unranked absent if the others were not there, or --unranked last if they came behind" in line


def test_the_two_meanings_differ(folder):
    absent = plackett("rank", folder / "top.soi", "--unranked", "absent", *FAST).stdout
    last = plackett("rank", folder / "top.soi", "--unranked", "last", *FAST).stdout
    assert "unranked items are absent" in absent and absent.splitlines()[5:] != last.splitlines()[5:]


@pytest.mark.parametrize("layout", ["ranks", "orders"])
def test_tables_of_ranks_and_of_orders(folder, layout):
    found = orders()
    if layout == "orders":
        frame = pd.DataFrame(found, columns=["first", "second", "third", "fourth"])
    else:
        frame = pd.DataFrame([{item: place + 1 for place, item in enumerate(order)} for order in found])[NAMES]
    stdin = frame.assign(n=2, voter="x").to_csv(index=False)
    options = ("--table", layout, "--counts", "n", "--drop", "voter", *FAST)
    result = plackett("rank", "-", *options, stdin=stdin)
    assert result.exit_code == 0, result.output
    doubled = "\n".join(preflib(found, "soc").splitlines()).replace("\n1: ", "\n2: ") + "\n"
    (folder / "twice.soc").write_text(doubled)
    assert result.stdout == plackett("rank", folder / "twice.soc", *FAST).stdout and "80 rankings" in result.stdout


def test_ties_are_taken_as_they_are_said_to_be(tmp_path):
    text = preflib(orders(), "toc").replace("1: 1,2,", "1: {1,2},")
    assert "{" in text
    (tmp_path / "t.toc").write_text(text)
    for ties in ("unknown-order", "race"):
        assert plackett("rank", tmp_path / "t.toc", *FAST, "--ties", ties, "--out", tmp_path / ties).exit_code == 0
        assert load(tmp_path / ties).ties == ties
    assert "ties" in mistake("rank", tmp_path / "t.toc", *FAST, "--ties", "error")


def test_mistakes(folder, tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,2\n")
    line = mistake("rank", tmp_path / "r.csv")
    assert "give --table ranks (one column per item), --table orders (one column per place, the best first)" in line
    assert "--table pairs (columns winner and loser)" in line
    assert "omit --table ranks" in mistake("rank", folder / "all.soc", "--table", "ranks")
    (tmp_path / "b.soc").write_text(preflib(orders(), "soc") + "1: 1,9\n")
    assert "b.soc, line 47: alternatives have the numbers 1 to 4, got '9'" in mistake("rank", tmp_path / "b.soc")
    assert "nothing to predict: see plackett show" in mistake("predict", folder / "m.plk", folder / "top.soi")
    assert "exists; replace it with --force" in mistake("rank", folder / "all.soc", "--out", folder / "m.plk")
    assert "No such file" in mistake("rank", tmp_path / "none.soc")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--counts", "n"], "--counts is for tables (--table)"),
        (["--unranked", "first"], "'first' is not one of"),
        (
            ["--inference", "em", "--draws", "5"],
            "--draws belongs to --inference variational, gibbs or bootstrap",
        ),
        (["--shape", "round"], "--shape must be a positive number"),
    ],
)
def test_wrong_usage(folder, options, words):
    result = plackett("rank", folder / "all.soc", *options)
    assert result.exit_code == 2 and result.stdout == ""
    assert words in " ".join(result.stderr.replace("│", " ").split())


PAIRS = "winner,loser,tie,first,count\nAnn,Bob,0,Ann,5\nBob,Ann,0,,3\nBob,Cy,0,Cy,6\nCy,Ann,no,Cy,2\nAnn,Cy,yes,,4\n"


def test_a_table_of_pairs_is_ranked_and_reported(tmp_path):
    """With ties, counts and who was shown first; a model saved in Python reads such a table too."""
    (tmp_path / "p.csv").write_text(PAIRS)
    rank = ("rank", tmp_path / "p.csv", "--table", "pairs", *FAST, "--ties", "davidson", "--order-effect")
    done = plackett(*rank, "--out", tmp_path / "m.plk")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("20 rankings of 3 items")
    assert "nu = " in done.stdout and "eta = " in done.stdout
    R = Rankings.from_pairs(
        ["Ann", "Bob", "Bob", "Cy", "Ann"],
        ["Bob", "Ann", "Cy", "Ann", "Cy"],
        ties=[False] * 4 + [True],
        counts=[5, 3, 6, 2, 4],
        first=["Ann", None, "Cy", "Cy", None],
    )
    model = PlackettLuceRanker("em", shape=1.5, ties="davidson", order_effect=True).fit(None, R)
    np.testing.assert_allclose(load(tmp_path / "m.plk").parameters(), model.parameters(), rtol=1e-6)
    model.save(tmp_path / "python.plk")
    for name in ("m.plk", "python.plk"):
        done = plackett("report", tmp_path / name, tmp_path / "p.csv", "--out", tmp_path / f"{name}.html")
        assert done.exit_code == 0, done.output
        assert "3 items in 20 rankings" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "column", ["1,0,1,0", "yes,no,YES, No", "True,False,true,", "1.0,0.0,1,0", "1,,1,", "1,,yes,no", "1.0,,1.0,0.0"]
)
def test_ties_are_told_in_any_of_these_ways(tmp_path, column):
    rows = zip("abca", "bcab", column.split(","), strict=True)
    (tmp_path / "p.csv").write_text("winner,loser,tie\n" + "".join(f"{i},{j},{tie}\n" for i, j, tie in rows))
    R = Ballots("pairs").read(str(tmp_path / "p.csv"))
    assert Rankings.from_pairs("abca", "bcab", ties=[True, False, True, False]) == R


def test_ties_in_a_frame():
    frame = pd.DataFrame({"winner": list("abc"), "loser": list("bca"), "tie": ["", " ", "TRUE "]})
    assert Ballots("pairs").of(frame) == Rankings.from_pairs("abc", "bca", ties=[False, False, True])


STYLED = 'winner,loser,length,tie,"emoji, count"\nAnn,Bob,1.5,0,1\nBob,Ann,2,0,0\nBob,Cy,-1,0,2\nCy,Ann,0.5,1,-1\n'


def styled(path):
    """Write twenty comparisons with two attributes; return them."""
    frame = pd.concat([pd.read_csv(io.StringIO(STYLED))] * 5)
    frame["length"] += np.random.default_rng(0).normal(size=20)
    frame.to_csv(path, index=False)
    return frame


def test_columns_of_a_table_of_pairs_are_attributes(tmp_path):
    """Coefficients are printed and saved, and reports read the same columns, also of models saved in Python."""
    frame = styled(tmp_path / "p.csv")
    rank = ("rank", tmp_path / "p.csv", "--table", "pairs", *FAST, "--ties", "davidson")
    done = plackett(*rank, "--attributes", "length", "--attributes", "emoji, count", "--out", tmp_path / "m.plk")
    assert done.exit_code == 0, done.output
    names = ["length", "emoji, count"]
    R = Rankings.from_pairs(frame["winner"], frame["loser"], ties=frame["tie"].eq(1), attributes=frame[names])
    model, found = PlackettLuceRanker("em", shape=1.5, ties="davidson").fit(None, R), load(tmp_path / "m.plk")
    assert found.attributes_ == names and found.table_.attributes == tuple(names)
    np.testing.assert_allclose(found.parameters(), model.parameters(), rtol=1e-5)
    assert f"length = {model.parameters().loc['length', 'mean']:.4g}" in done.stdout
    model.save(tmp_path / "python.plk")
    for name in ("m.plk", "python.plk"):
        done = plackett("report", tmp_path / name, tmp_path / "p.csv", "--out", tmp_path / f"{name}.html")
        assert done.exit_code == 0, done.output
        assert "emoji, count" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_names_of_attributes_may_stand_together(tmp_path):
    """A comma separates names, unless it is part of one."""
    styled(tmp_path / "p.csv").rename(columns={"emoji, count": "lists"}).to_csv(tmp_path / "q.csv", index=False)
    options = ("--table", "pairs", *FAST, "--ties", "davidson", "--attributes")
    said = [
        plackett("rank", tmp_path / table, *options, *names).stdout
        for table, names in (("p.csv", ["length", "--attributes", "emoji, count"]), ("q.csv", ["length,lists"]))
    ]
    assert said[0].replace("emoji, count", "lists") == said[1] and "lists = " in said[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--table", "pairs", "--attributes", "lenght"], "there is no attribute 'lenght'; did you mean length?"),
        (["--table", "pairs", "--attributes", "tie"], "column 'tie' of a table of pairs has a meaning of its own"),
        (["--table", "pairs", "--attributes", "length"], "drop it, or name it as counts or attribute"),
        (["--table", "pairs", "--attributes", "length,name"], "column 'name' must hold numbers"),
    ],
)
def test_mistakes_in_attributes(tmp_path, options, words):
    text = STYLED.replace('"emoji, count"', "name").replace(",1\n", ",x\n")
    (tmp_path / "p.csv").write_text(text)
    assert words in mistake("rank", tmp_path / "p.csv", *options, *FAST)


def test_attributes_are_for_pairs(folder):
    for options in ((), ("--table", "ranks")):
        result = plackett("rank", folder / "all.soc", *options, "--attributes", "length")
        assert result.exit_code == 2 and "--attributes is for comparisons of two items" in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("winner,loses\na,b\n", "there is no 'loser'"),
        ("winner,loser,tie\na,b,maybe\n", "column 'tie' must be true or false, got 'maybe' in row 0"),
        ("winner,loser,tie\na,b,1\na,b,1\na,b,2\n", "column 'tie' must be true or false, got 2 in row 2"),
        ("winner,loser,votes\na,b,2\n", "column 'votes' of a table of pairs is not read"),
        ("winner,loser,first\na,b,c\n", "first must be one of the two items"),
        ("winner,loser\na,\n", "has no item in row 0"),
    ],
)
def test_mistakes_in_tables_of_pairs(tmp_path, text, words):
    (tmp_path / "p.csv").write_text(text)
    assert words in mistake("rank", tmp_path / "p.csv", "--table", "pairs")
