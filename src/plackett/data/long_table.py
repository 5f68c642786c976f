"""What a model of choices stores about its long training table, and how such a table becomes choice sets."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plackett.data.choice_sets import ChoiceSets
from plackett.data.columns import TableError, as_frame, check_column, listed
from plackett.data.labels import Labels, codes_of, label_array
from plackett.data.table import not_fitted
from plackett.data.types import Label, LabelsLike
from plackett.data.validation import plain
from plackett.model.race import Array

if TYPE_CHECKING:
    import pandas as pd

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class LongTable:
    """Columns of a table with one row for each alternative of each situation.

    Attributes
    ----------
    situation, alternative, choice : str
        Columns with the situation and alternative of a row, and the choice.
    attributes, person : tuples of str
        Columns of the alternatives, and of the person.
    persons : str or None
        Column with the person.
    available : str or None
        Column of 0 and 1 with the availability.
    constants : (A,) array
        Log-worths of the alternatives in a model of constants only, from the situations of the fit.
    counts : dict
        Number of choices of each alternative in the fit.
    test : float
        Fraction of situations held out of the fit.
    seen : array of uint32
        Sorted checksums of the situations of the fit, which identify new situations of a table.
    """

    situation: str
    alternative: str
    choice: str
    attributes: tuple[str, ...]
    person: tuple[str, ...] = ()
    persons: str | None = None
    available: str | None = None
    constants: Array = field(default_factory=lambda: np.empty(0), repr=False)
    counts: dict[Label, int] = field(default_factory=dict)
    test: float = 0.0
    seen: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, dtype=np.uint32), repr=False)

    def sets(self, frame: pd.DataFrame) -> ChoiceSets:
        """Return the situations of a table, with or without choices.

        Examples
        --------
        >>> import pandas as pd
        >>> from plackett.data.long_table import LongTable
        >>> frame = pd.DataFrame({"trip": [1, 1, 2, 2], "by": ["bus", "car"] * 2, "cost": [2, 5, 3, 4]})
        >>> LongTable("trip", "by", "taken", ("cost",)).sets(frame)
        ChoiceSets(2 situations, 2 alternatives, attributes: cost)
        """
        return ChoiceSets.from_long(
            frame,
            situation=self.situation,
            alternative=self.alternative,
            attributes=self.attributes,
            person=self.person,
            available=self.available,
        )

    def choices(self, frame: pd.DataFrame) -> tuple[ChoiceSets, Labels]:
        """Return the situations of a table, and the choice in each."""
        return ChoiceSets.read_choices(
            frame,
            situation=self.situation,
            alternative=self.alternative,
            choice=self.choice,
            attributes=self.attributes,
            person=self.person,
            available=self.available,
        )

    def who(self, frame: pd.DataFrame) -> Labels | None:
        """Return the person of each situation, or None without a column of persons."""
        return None if self.persons is None else persons_of(frame, self.situation, self.persons)

    def places(self, frame: pd.DataFrame, alternatives: Labels) -> tuple[Codes, Codes]:
        """Return the number of the situation of each row, and the code of its alternative."""
        import pandas as pd

        frame = as_frame(frame)
        return pd.factorize(frame[self.situation])[0], codes_of(
            frame[self.alternative].tolist(), alternatives, "alternative"
        )

    def held_out(self, X: ChoiceSets, y: Labels) -> npt.NDArray[np.bool_]:
        """Mark situations that the model was not fitted to: the new ones if all of the fit are present, else all."""
        return not_fitted(situation_marks(X, y), self.seen, "situations")


def persons_of(frame: pd.DataFrame, situation: str, persons: str) -> Labels:
    """Return the label of the person of each situation, by first occurrence."""
    import pandas as pd

    frame = as_frame(frame)
    for name in (situation, persons):
        check_column(frame, name)
    if frame[persons].isna().any():
        raise TableError(f"column {persons!r} is missing in row {int(np.argmax(frame[persons].isna()))}.")
    number, labels = pd.factorize(frame[situation])
    first = np.unique(number, return_index=True)[1]
    held = pd.factorize(frame[persons])[0]
    changes = held != held[first][number]
    if changes.any():
        t = number[np.argmax(changes)]
        several = listed(map(plain, frame[persons][number == t].unique().tolist()))
        raise TableError(
            f"column {persons!r} tells who chooses, and must be the same in all rows of a situation; in situation "
            f"{plain(labels[t])} it is {several}."
        )
    return label_array(frame[persons].iloc[first].tolist())


def situation_marks(X: ChoiceSets, y: Labels) -> npt.NDArray[np.uint32]:
    """Return a checksum of the alternatives, columns and choice of each situation."""
    marks = np.empty(len(X), dtype=np.uint32)
    values, context = X.values + 0.0, X.context + 0.0  # −0 becomes 0
    names = X.alternatives.tolist()
    for t, label in enumerate(y.tolist()):
        some = slice(X.start[t], X.start[t + 1])
        words = "\n".join(str(names[a]) for a in X.alternative[some].tolist()) + f"\n\n{label}"
        marks[t] = zlib.crc32(values[some].tobytes() + context[t].tobytes() + words.encode())
    return marks


def random_situations(n: int, share: float, seed: int, persons: LabelsLike | None) -> npt.NDArray[np.bool_]:
    """Choose situations to hold out for testing: this share of the situations, or of the persons with all of theirs."""
    unit = np.arange(n) if persons is None else np.unique(np.asarray(persons), return_inverse=True)[1].ravel()
    units = int(unit.max()) + 1
    chosen = np.random.default_rng(seed).permutation(units)[: min(round(share * units), units - 1)]
    return np.isin(unit, chosen)
