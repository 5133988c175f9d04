"""What the engines say when data cannot be read, in our words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import narwhals as nw

from evenhand.errors import DataError, count

LONGEST_QUOTE = 80
"""Characters of a bad line that a message shows."""

FRACTION = "a later row has a fraction where the first rows have whole numbers"
NOT_UTF8 = "give its encoding (encoding='latin-1'), or save it as UTF-8."
_LONG_NUMBERS = re.compile(r"conversion from `u?i128`|Type U?INT128 with value")
_ADVICE = re.compile(r"\s*(Possible |Potential |The search space|Column .* is being|Try |You might |file = |LINE \d)")


class MisreadTypeError(DataError):
    """A later row does not have the type that the first rows suggested."""


@contextmanager
def engine_errors(where: str = "the data") -> Iterator[None]:
    """Turn an engine's failure to read data into a `DataError`; what is no fault of the data passes through."""
    import duckdb

    faults = (
        duckdb.InvalidInputException,
        duckdb.IOException,
        duckdb.OutOfMemoryException,
        duckdb.OutOfRangeException,
        duckdb.SerializationException,
    )
    try:
        yield
    except duckdb.ConversionException as error:
        raise MisreadTypeError(_sentence(where, error)) from error
    except faults as error:
        misread = any(sign in str(error) for sign in ("JSON transform error", FRACTION))
        kind = MisreadTypeError if misread else DataError
        raise kind(_sentence(where, error)) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # DuckDB's word for Ctrl-C
            raise KeyboardInterrupt from None
        raise
    except nw.exceptions.InvalidOperationError as error:
        if not (_LONG_NUMBERS.search(str(error)) or "unable to decode" in str(error)):
            raise
        raise DataError(_sentence(where, error)) from error
    except duckdb.Error as error:
        if type(error) is not duckdb.Error:
            raise
        raise DataError(_sentence(where, error)) from error  # what DuckDB's reader of Parquet finds damaged
    except (nw.exceptions.ComputeError, EOFError, OSError, zlib.error) as error:
        # Files behind a lazy frame, and compressed files that end too early.
        raise DataError(_sentence(where, error)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{where} could not be read as text: {error}; {NOT_UTF8}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        # Polars gives up so on some damaged files, with an exception that is no `Exception`.
        raise DataError(f"{where} could not be read: it is damaged, and Polars stopped.") from None


def _sentence(where: str, error: Exception) -> str:
    text = str(error)
    named = re.search(r"^\s*file = (.+)$", text, re.MULTILINE)
    subject = f"'{named[1].strip()}'" if named and where == "the data" else where
    return f"{subject} could not be read: {reason(text) or type(error).__name__}"


def reason(text: str) -> str:
    r"""Return an engine's error as one sentence.

    Examples
    --------
    >>> reason("CSV Error on Line: 7\nOriginal Line: 4,5\nExpected Number of Columns: 3 Found: 2")
    "line 7 has 2 fields where the header has 3 ('4,5')."
    """
    line = re.search(r"CSV Error on Line: (\d+)", text)
    quoted = re.search(r"^Original Line:[ ]?(.*)$", text, re.MULTILINE)
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if line and widths:
        return ragged(int(line[1]), int(widths[2]), int(widths[1]), quoted[1] if quoted else "")
    encoding = re.search(r"not (utf-8|utf-16|latin-1) encoded", text)
    if encoding:
        advice = NOT_UTF8 if encoding[1] == "utf-8" else "save it as UTF-8."
        return f"{f'line {line[1]} of it' if line else 'it'} is not all {encoding[1].upper()}; {advice}"
    if _LONG_NUMBERS.search(text):
        return "it holds whole numbers of more than 64 bits; turn them into text, or into fractions."
    if "value nan can't be cast" in text:
        return (
            "it holds not-a-number where DuckDB found none in the statistics of a Parquet file; "
            "give the file itself, or read it with read_parquet(..., can_have_nan = true)."
        )
    lines = []
    for part in text.splitlines():
        if _ADVICE.match(part):
            break
        lines.append(part.strip()[: 2 * LONGEST_QUOTE])
    sentence = "; ".join(part.rstrip(".") for part in lines if part)
    return re.sub(r"^(\w+ )+Error: ", "", sentence) + "."


def ragged(line: int, fields: int, expected: int, text: str) -> str:
    """Say that a line of a text file has too many or too few fields."""
    shown = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."
    return f"line {line:,} has {count(fields, 'field')} where the header has {expected:,} ({shown!r})."
