"""Reading and writing of tables: CSV, TSV and Parquet, recognised by content, from files and pipes."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plackett.data.columns import TableError, TableWarning, is_text, listed
from plackett.optional import optional
from plackett.output.files import whole_file
from plackett.output.terminal import printable

if TYPE_CHECKING:
    import pandas as pd

MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?"]
SUFFIXES = (".csv", ".tsv", ".parquet")
TAB = "\t"
SEPARATORS = (",", ";", TAB, "|")
LINES = 100  # number of lines used to find the separator
SAMPLE = 1000  # number of bytes used to find the encoding
THOUSANDS = {".": ",", ",": "."}  # separator of thousands, by decimal mark
NUMBER = {
    mark: rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:\{between}\d{{3}})+|(?=\{mark}))(?:\{mark}\d*)?(?:[eE][+-]?\d+)?"
    for mark, between in THOUSANDS.items()
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of texts that a spreadsheet takes for formulas
WHICH = "say decimal=',' or decimal='.'."


def read_table(source: str, sep: str | None = None, decimal: str | None = None) -> pd.DataFrame:
    r"""Read a table from a file, or from standard input for ``-``; CSV and TSV may be gzipped.

    Parameters
    ----------
    source : str
        Path of the file, or ``-``.
    sep : str, optional
        Character between fields. None: comma, semicolon, tab or bar, recognised from the first lines.
    decimal : {".", ","}, optional
        Decimal mark. None: recognised from columns that are numbers with only one of them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from plackett.data.tablefile import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age\tpay\n31\t1,5\n\t2,25\n")
    ...     read_table(str(path), decimal=",")["pay"].tolist()
    [1.5, 2.25]
    """
    name = "standard input" if source == "-" else source
    content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} is not a whole gzip file: {error}") from error
    if not content.strip():
        raise TableError(f"{name} is empty.")
    if content[:4] == b"PK\x03\x04":
        raise TableError(f"{name} is a spreadsheet or an archive; save it as CSV first.")
    if content[:4] == b"PAR1":
        if sep or decimal:
            raise TableError(f"{name} is a Parquet file, for which separators and decimal marks have no meaning.")
        frame = _parquet(content, name)
    else:
        frame = _delimited(_decoded(content, name), name, sep, decimal)
    if not len(frame):
        raise TableError(f"{name} has a header and no rows.")
    return frame


def _parquet(content: bytes, name: str) -> pd.DataFrame:
    pd = optional("pandas", "reading tables")
    optional("pyarrow", "a Parquet file")
    try:
        frame = pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")
    except (OSError, ValueError) as error:
        raise TableError(f"{name} is not a whole Parquet file: {error}") from error
    frame.columns = frame.columns.map(str)
    return frame


def _decoded(content: bytes, name: str) -> str:
    """Decode a file in UTF-8 or UTF-16, with line endings converted to line feeds."""
    encoding = _encoding(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        if encoding != "utf-8-sig":
            raise TableError(f"{name} looks like UTF-16 and is not whole at line {line}; save it as UTF-8.") from error
        raise TableError(
            f"line {line} of {name} is not UTF-8 text; convert the file, for example with iconv -f latin1 -t utf8."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TableError(f"line {line} of {name} holds a NUL character, which no text does; is it a table?")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _encoding(content: bytes) -> str:
    """Return UTF-8, or UTF-16 or UTF-32 if a byte order mark or alternating zero bytes indicate it."""
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = content[:SAMPLE]
    zeros = [sample[k::2].count(0) for k in (0, 1)]
    if 4 * sum(zeros) > len(sample) and min(zeros) == 0:
        return "utf-16-le" if zeros[1] else "utf-16-be"
    return "utf-8-sig"


def _delimited(text: str, name: str, sep: str | None, decimal: str | None) -> pd.DataFrame:
    between = separator(text, name) if sep is None else _checked_separator(sep)
    if decimal not in (None, *THOUSANDS):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r} instead.")
    _tell_of_repeated_names(text, name, between)
    frame = _parsed(text, name, between)
    said = {"sep": f"{between!r} between fields"} if sep is None and between in ";|" else {}
    if decimal == "," or any(is_text(frame[column]) and _marks(frame[column]) for column in frame):
        raw = _parsed(text, name, between, dtype="string")
        marks = {column: _marks(raw[column]) for column in raw}
        mark = decimal_mark(raw, marks, name) if decimal is None else decimal
        thousands = _read_numbers(frame, raw, marks, mark)
        if decimal is None:
            said["decimal"] = f"{mark!r} as the decimal mark" + thousands * f" ({THOUSANDS[mark]!r} between thousands)"
    if said:
        options = " or ".join(f"{option}=..." for option in said)
        words = f"{name} was read with {' and '.join(said.values())}; if that is wrong, say {options}."
        warnings.warn(words, TableWarning, stacklevel=3)
    return frame


def _checked_separator(sep: str) -> str:
    character = TAB if sep in ("tab", r"\t") else sep
    if len(character) != 1:
        raise TableError(f"sep must be one character or 'tab', got {sep!r} instead.")
    return character


def _parsed(text: str, name: str, between: str, **options: object) -> pd.DataFrame:
    pd = optional("pandas", "reading tables")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                io.StringIO(text),
                sep=between,
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=MISSING,
                dtype_backend="numpy_nullable",
                low_memory=False,
                **options,
            )
        except pd.errors.ParserWarning as error:
            raise TableError(f"the rows of {name} have more fields than its first line has names.") from error
        except pd.errors.ParserError as error:
            raise TableError(f"{name} is not a table: {error}") from error


def _tell_of_repeated_names(text: str, name: str, between: str) -> None:
    with _rows(text, between) as rows:
        header = next(rows, [])
    twice = sorted({column for column in header if column and header.count(column) > 1})
    if twice:
        others = listed(f"{column}.1" for column in twice)
        warnings.warn(
            f"{name} has several columns of the name {listed(twice)}; the second is called {others}, and so on.",
            TableWarning,
            stacklevel=4,
        )


@contextmanager
def _rows(text: str, between: str) -> Iterator[Iterator[list[str]]]:
    """Split a text into rows of fields of any length."""
    before = csv.field_size_limit(len(text) + 1)
    try:
        yield csv.reader(io.StringIO(text), delimiter=between, skipinitialspace=True)
    finally:
        csv.field_size_limit(before)


def separator(text: str, name: str = "the table") -> str:
    r"""Return the character that splits the first lines into as many fields as the header has, more than one.

    If several do, the one with at least twice as many fields as the others; otherwise the user must choose.

    Examples
    --------
    >>> from plackett.data.tablefile import separator
    >>> separator("age;pay, net\n31;2000\n"), separator("age,note\n31,a;b\n")
    (';', ',')
    """
    lines = list(itertools.islice(io.StringIO(text), LINES + 1))
    sample = "".join(lines[:LINES])
    fitting = {}
    for character in SEPARATORS:
        try:
            with _rows(sample, character) as rows:
                widths = [len(row) for row in rows if row]
        except csv.Error:
            continue
        if len(lines) > LINES and len(widths) > 2:
            widths.pop()  # may be cut inside a quoted text
        if widths[0] > 1 and len(set(widths)) == 1:
            fitting[character] = widths[0]
    most = max(fitting, key=lambda character: fitting[character], default=None)
    if most is None:
        header = "".join(lines[0].split('"')[::2])
        return max(SEPARATORS, key=header.count)
    if any(2 * n > fitting[most] for character, n in fitting.items() if character != most):
        told = " or ".join(f"{n} columns with {character!r} between them" for character, n in fitting.items())
        options = " or ".join(f"sep={('tab' if character == TAB else character)!r}" for character in fitting)
        raise TableError(f"{name} can be read as {told}: say {options}.")
    return most


def decimal_mark(raw: pd.DataFrame, marks: dict[str, dict[str, pd.Series]], name: str) -> str:
    """Return the decimal mark with which a column is numeric while it is not with the other.

    If columns contradict each other, or all can be read with both marks, the user must choose.
    """
    shown = {mark: [column for column, held in marks.items() if list(held) == [mark]] for mark in NUMBER}
    if shown[","] and shown["."]:
        raise TableError(f"{name} has {_example(raw, shown[','])} and {_example(raw, shown['.'])}: {WHICH}")
    if not shown[","] and not shown["."]:
        either = [column for column, held in marks.items() if held]
        raise TableError(f"{name} has {_example(raw, either)}, which may be decimals or thousands: {WHICH}")
    return "," if shown[","] else "."


def _read_numbers(frame: pd.DataFrame, raw: pd.DataFrame, marks: dict[str, dict[str, pd.Series]], mark: str) -> bool:
    """Convert columns with decimals or thousands by this mark; return True if any had thousands."""
    import pandas as pd

    any_thousands = False
    for column, held in marks.items():
        if mark in held:
            between = raw[column].str.contains(THOUSANDS[mark], regex=False)
            any_thousands |= bool((between & held[mark]).any())
            plain = raw[column].str.replace(THOUSANDS[mark], "", regex=False).str.replace(mark, ".", regex=False)
            whole = bool((held[mark] | raw[column].isna()).all())
            frame[column] = pd.to_numeric(plain).convert_dtypes() if whole else plain.where(held[mark], raw[column])
        elif held:
            frame[column] = raw[column]
    return any_thousands


def _marks(values: pd.Series) -> dict[str, pd.Series]:
    """Return the decimal marks with which most texts of a column are numbers, and the rows that are.

    Empty if no number has a comma or a point.
    """
    import pandas as pd

    code, distinct = values.factorize()
    texts, there = distinct.to_series(index=range(len(distinct))), code >= 0
    times = np.bincount(code[there], minlength=len(distinct))
    read = {mark: texts.str.fullmatch(pattern).to_numpy(dtype=bool) for mark, pattern in NUMBER.items()}
    either = read["."] | read[","]
    if 2 * times[either].sum() <= there.sum() or not texts[either].str.contains("[.,]").any():
        return {}
    found = {mark: is_read for mark, is_read in read.items() if (is_read == either).all()}
    return {mark: pd.Series(there & is_read[code], index=values.index) for mark, is_read in found.items()}


def _example(raw: pd.DataFrame, columns: list[str]) -> str:
    values = raw[columns[0]].dropna()
    return f"{values[values.str.contains('[.,]')].iloc[0]} in column {columns[0]!r}"


def check_suffix(target: str) -> None:
    """Raise if the name of an output table does not imply its format."""
    if target != "-" and not target.removesuffix(".gz").endswith(SUFFIXES):
        raise TableError(f"the name of a table must end in {', '.join(SUFFIXES)}, got {target!r} instead.")


def write_table(frame: pd.DataFrame, target: str, spreadsheet: bool = False) -> None:
    """Write to a file, or CSV to standard output for ``-``; `spreadsheet` escapes texts that look like formulas."""
    if not target.endswith(".parquet"):
        frame = _without_formulas(frame, spreadsheet)
    if target == "-":
        text = _text(frame, ",")
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return
    check_suffix(target)
    if target.endswith(".parquet"):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    else:
        content = _text(frame, "\t" if target.removesuffix(".gz").endswith(".tsv") else ",").encode()
    with whole_file(target) as stream:
        stream.write(gzip.compress(content) if target.endswith(".gz") else content)


def _without_formulas(frame: pd.DataFrame, protect: bool) -> pd.DataFrame:
    """Prefix an apostrophe to texts and names that a spreadsheet would evaluate, or warn about them."""

    def is_formula(cell: object) -> bool:
        return isinstance(cell, str) and cell.startswith(FORMULA) and re.fullmatch(NUMBER["."], cell) is None

    made = frame.rename(columns=lambda name: f"'{name}" if is_formula(name) else name)
    cells = sum(map(is_formula, frame.columns))
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        wrong = column.map(is_formula).to_numpy(dtype=bool) if is_text(column) else np.zeros(len(frame), dtype=bool)
        cells += int(wrong.sum())
        if wrong.any():
            made.isetitem(place, column.astype(object).mask(wrong, "'" + column.astype(str)))
    if cells and not protect:
        warnings.warn(
            f"{cells} texts begin with one of {' '.join(FORMULA[:4])}, which a spreadsheet takes for formulas; "
            "--spreadsheet writes an apostrophe before them.",
            TableWarning,
            stacklevel=3,
        )
    return made if protect else frame


def _text(frame: pd.DataFrame, between: str) -> str:
    text: str = frame.to_csv(index=False, sep=between, lineterminator="\n")
    return text
