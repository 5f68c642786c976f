"""Reading and writing tables: CSV, TSV and Parquet, recognised by their content, from files and pipes."""

from __future__ import annotations

import gzip
import io
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from plackett.files import whole_file
from plackett.table import TableError

if TYPE_CHECKING:
    import pandas as pd

MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?"]
SUFFIXES = (".csv", ".tsv", ".parquet")


def read_table(source: str) -> pd.DataFrame:
    r"""A table from a file, or from standard input for ``-``; CSV and TSV may be gzipped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from plackett.tablefile import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("age;sex\n31;f\n;m\n")
    ...     int(read_table(str(path))["age"].isna().sum())
    1
    """
    name = "standard input" if source == "-" else source
    content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if not content.strip():
        raise TableError(f"{name} is empty.")
    if content[:4] == b"PK\x03\x04":
        raise TableError(f"{name} is a spreadsheet or an archive; save it as CSV first.")
    frame = _parquet(content, name) if content[:4] == b"PAR1" else _delimited(content, name)
    if not len(frame):
        raise TableError(f"{name} has a header and no rows.")
    return frame


def _parquet(content: bytes, name: str) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")
    except (OSError, ValueError) as error:
        raise TableError(f"{name} is not a whole Parquet file: {error}") from error
    frame.columns = frame.columns.map(str)
    return frame


def _delimited(content: bytes, name: str) -> pd.DataFrame:
    import pandas as pd

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"line {line} of {name} is not UTF-8 text; convert the file, for example with iconv -f latin1 -t utf8."
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                io.StringIO(text),
                sep=separator(text),
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=MISSING,
                dtype_backend="numpy_nullable",
                low_memory=False,
            )
        except pd.errors.ParserWarning as error:
            raise TableError(f"the rows of {name} have more fields than its first line has names.") from error
        except pd.errors.ParserError as error:
            raise TableError(f"{name} is not a table: {error}") from error


def separator(text: str) -> str:
    """The character between the fields of the first line: tab, semicolon or comma."""
    header = "".join(text.split("\n", 1)[0].split('"')[::2])
    return "\t" if "\t" in header else max(",;", key=header.count)


def check_suffix(target: str) -> None:
    """Refuse the name of an output table that does not say which kind it is."""
    if target != "-" and not target.removesuffix(".gz").endswith(SUFFIXES):
        raise TableError(f"the name of a table must end in {', '.join(SUFFIXES)}, got {target!r} instead.")


def write_table(frame: pd.DataFrame, target: str) -> None:
    """Write to a file, or CSV to standard output for ``-``."""
    if target == "-":
        sys.stdout.write(_text(frame, ","))
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


def _text(frame: pd.DataFrame, between: str) -> str:
    text: str = frame.to_csv(index=False, sep=between, lineterminator="\n")
    return text
