"""Files of PrefLib, with both kinds of head; a broken one is refused with the number of its line."""

import pytest

from plackett import Rankings

NEWER = """# FILE NAME: 00099-00000001.toi
# TITLE: Fruit: a test
# DATA TYPE: toi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 9
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: pear: green
# ALTERNATIVE NAME 2: apple, red
# ALTERNATIVE NAME 3: plum
4: 2,1,3
3: {1, 3},2
2: 3
"""
OLDER = """3
1,pear: green
2,apple, red
3,plum
9,9,3
4,2,1,3
3,{1,3},2
2,3
"""


@pytest.fixture
def read(tmp_path):
    def reader(text, name="fruit.toi", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return Rankings.read_preflib(path, **options)

    return reader


@pytest.mark.parametrize("unranked", ["absent", "last"])
@pytest.mark.parametrize("text", [NEWER, OLDER, "\ufeff" + NEWER, NEWER.replace("\n", "\r\n") + "\n\n"])
def test_both_heads(read, text, unranked):
    items = ["pear: green", "apple, red", "plum"]
    orders = [["apple, red", "pear: green", "plum"], [{"pear: green", "plum"}, "apple, red"], ["plum"]]
    expected = Rankings.from_orders(orders, unranked=unranked, items=items, counts=[4, 3, 2])
    assert read(text, unranked=unranked) == expected


def test_complete_orders_need_no_word_about_the_unranked(read):
    text = OLDER.replace("2,3\n", "2,3,1,2\n")
    assert read(text, "fruit.toc") == read(text, "fruit.toc", unranked="last")
    assert read(text.replace("{1,3}", "1,3"), "fruit.soc").tied is False
    with pytest.raises(ValueError, match="say unranked="):
        read(OLDER)


def test_the_head_says_the_kind_whatever_the_name(read):
    assert len(read(NEWER, "fruit.txt", unranked="last")) == 3


BROKEN = {
    "empty": ("\n", "fruit.toi: the file is empty"),
    "count": (NEWER.replace("4: 2", "x: 2"), r"line 10: the count must be a whole number of 1 or more, got 'x'"),
    "no count": (NEWER.replace("2: 3\n", "3\n"), "line 12: an order must be 'count: number,number,…'"),
    "older no order": (OLDER.replace("2,3\n", "2\n"), "line 8: an order must be 'count, number"),
    "range": (NEWER.replace("2,1,3", "2,1,4"), "line 10: alternatives have the numbers 1 to 3, got '4'"),
    "zero": (OLDER.replace("4,2,1,3", "4,2,1,0"), "line 6: alternatives have the numbers 1 to 3, got '0'"),
    "twice": (NEWER.replace("2,1,3", "2,1,2"), "line 10: alternative 2 occurs twice"),
    "brace": (NEWER.replace("{1, 3}", "{1, 3"), "line 11: an order must be"),
    "comma": (NEWER.replace("2,1,3", "2,,3"), "line 10: an order must be"),
    "in braces": (NEWER.replace("{1, 3}", "{1,,3}"), "line 11: alternatives have the numbers 1 to 3, got ''"),
    "empty braces": (NEWER.replace("{1, 3}", "{}"), "line 11: "),
    "ties": (NEWER.replace("toi", "soi"), "line 11: a file of the kind 'soi' has no ties"),
    "partial": (NEWER.replace("toi", "toc"), "line 12: a file of the kind 'toc' ranks all 3 alternatives, got 1"),
    "kind": (NEWER.replace("toi", "wmd"), "kinds soc, soi, toc, toi, got 'wmd'"),
    "no number": (NEWER.replace("# NUMBER ALT", "# ALT"), "no line '# NUMBER ALTERNATIVES"),
    "number": (NEWER.replace("ALTERNATIVES: 3", "ALTERNATIVES: three"), "line 4: the number of alternatives"),
    "no name": (NEWER.replace("NAME 2:", "NAME two:"), "no line '# ALTERNATIVE NAME 2: …', of 3"),
    "same name": (NEWER.replace("NAME 3: plum", "NAME 3: apple, red"), "two alternatives are called 'apple, red'"),
    "cut": (NEWER.replace("2: 3\n", ""), "the head tells of 3 orders, and there are 2. Is the file complete"),
    "voters": (NEWER.replace("4: 2", "5: 2"), "the head tells of 9 voters, and there are 10"),
    "older voters": (OLDER.replace("9,9,3", "9,8,3"), "the head tells of 8 voters, and there are 9"),
    "no orders": (NEWER[: NEWER.index("4: 2")], "no orders after the head"),
    "older first": (OLDER.replace("3\n1,p", "x\n1,p"), "line 1: the first line, the number of alternatives,"),
    "older name": (OLDER.replace("2,apple, red", "4,apple"), "line 3: expected '2,' and the name of alternative 2"),
    "older numbers": (OLDER.replace("9,9,3", "9,3"), "line 5: expected the numbers of voters, counts and orders"),
    "older short": ("3\n1,a\n", "takes 5 lines, and the file has 2"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_with_its_line(read, case):
    text, words = BROKEN[case]
    with pytest.raises(ValueError, match=words):
        read(text, unranked="last")
