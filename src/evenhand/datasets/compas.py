"""COMPAS risk scores of defendants in Broward County, and their rearrests.

The module loads ProPublica's data, and the study of Dressel and Farid, in which 800 people predict which of 1,000 of
these defendants are arrested again.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np

from evenhand.datasets._synthetic import Columns
from evenhand.datasets.registry import fetch, query_file
from evenhand.errors import DataError
from evenhand.stats.types import IntArray
from evenhand.table.frames import NativeFrame, build_frame

_TEXTS = ("sex", "age_cat", "race", "c_charge_degree", "c_charge_desc", "score_text", "v_score_text")
_COLUMNS = {
    name: "VARCHAR" if name in _TEXTS else "BIGINT"
    for name in (
        *("id", "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
        *("days_b_screening_arrest", "c_charge_degree", "c_charge_desc", "is_recid", "is_violent_recid"),
        *("two_year_recid", "decile_score", "score_text", "v_decile_score", "v_score_text"),
    )
}
"""The columns to load, with their types: none of them identifies a person, a date or a case."""

_PROPUBLICA_FILTER = (
    "abs(days_b_screening_arrest) <= 30 AND is_recid <> -1 AND c_charge_degree <> 'O' AND score_text <> 'N/A'"
)


def load_compas(*, filtered: bool = True, backend: str | None = None) -> NativeFrame:
    """Load ProPublica's COMPAS data with two-year recidivism, without the columns that identify people.

    The file comes from `fetch("compas")`: the folder named by EVENHAND_DATA, the cache, or the publisher.

    Parameters
    ----------
    filtered : bool, default True
        Keep the 6,172 of 7,214 rows that ProPublica analysed: rows with a score within 30 days of the arrest
        (`days_b_screening_arrest` from -30 to 30, so that score and charge belong together), with a case found
        (`is_recid` not -1), not charged with an ordinary traffic offence alone (`c_charge_degree` not "O"), and with a
        score (`score_text` not "N/A").
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per defendant, in the publisher's order, with the columns

        - `id`: ProPublica's number of the defendant;
        - `sex`, `age`, `age_cat` (Less than 25, 25 - 45, Greater than 45) and `race`;
        - `juv_fel_count`, `juv_misd_count`, `juv_other_count`, `priors_count`: earlier offences;
        - `days_b_screening_arrest`: days from the arrest to the score, missing in 307 of all rows;
        - `c_charge_degree` (F felony, M misdemeanour) and `c_charge_desc`, the charge, sometimes missing;
        - `two_year_recid`: 1 when arrested again within two years, the outcome; `is_recid` and
          `is_violent_recid`: arrested again at any time, and for a violent offence;
        - `decile_score` (1 to 10) and `score_text` (Low, Medium, High): the COMPAS score of recidivism;
        - `v_decile_score` and `v_score_text`: the COMPAS score of violent recidivism.

    Raises
    ------
    EvenhandError
        The file could not be found, or is not the published one.

    Notes
    -----
    The publisher's file also holds names, birth dates and case numbers. They are never read into the table. It is
    fetched once over the network, or taken from the folder `EVENHAND_DATA`; the filtered table has 6,172 rows.

    References
    ----------
    J. Larson, S. Mattu, L. Kirchner and J. Angwin (2016). How We Analyzed the COMPAS Recidivism Algorithm.
    ProPublica. https://github.com/propublica/compas-analysis
    """
    return build_frame(_read(fetch("compas"), filtered=filtered), backend)


def _read(path: Path, *, filtered: bool) -> Columns:
    """Return the documented columns of the file."""
    # The publisher's header has `decile_score` and `priors_count` twice. DuckDB renames the second of each,
    # so the first is read, as in the de-identified file.
    source = "read_csv($path, header = true, types = $types, nullstr = '')"
    rows = _PROPUBLICA_FILTER if filtered else "true"
    query = f"SELECT {', '.join(_COLUMNS)} FROM {source} WHERE {rows}"  # noqa: S608 -- constants only
    return query_file(path, query, types=_COLUMNS)


CONDITIONS = ("no_race", "race")
"""Whether the critics knew the defendant's race."""

_RACES = ("White", "Black", "Hispanic", "Asian", "Native American", "Other")
_SEXES = ("Male", "Female")
_HIGHEST_LOW_SCORE = 4


def load_dressel_farid(*, backend: str | None = None) -> NativeFrame:
    """Load the predictions of Dressel and Farid's 800 critics with the decisions of COMPAS.

    The three files come from `fetch`: the folder named by EVENHAND_DATA, the cache, or a copy of the authors' files.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per answer, 40,000 in all, no missing values, with the columns

        - `condition`: no_race or race, whether the critic was told the defendant's race; 400 critics each;
        - `critic`: the number of the critic, who answered 50 cases;
        - `case`: the number of the defendant, of 1,000; 20 critics of each condition saw each;
        - `block`: 1 to 20, the set of 50 defendants that the critic saw;
        - `race` (White, Black, Hispanic, Asian, Native American, Other), `sex` and `age` of the defendant;
        - `compas_decision`: 1 when the COMPAS decile score is above 4, else 0, and `decile_score`: 1 to 10;
        - `prediction`: 1 when the critic said that the defendant would commit another crime within two years, else 0;
        - `disagrees`: 1 when prediction and COMPAS decision differ: the feedback of an audit. The critics were not
          shown the decision; the authors of disagreement-based fairness derived the feedback so;
        - `two_year_recid`: 1 when the defendant was arrested again within two years.

    Raises
    ------
    EvenhandError
        A file could not be found, or is not the published one.

    References
    ----------
    J. Dressel and H. Farid (2018). The accuracy, fairness, and limits of predicting recidivism. Science Advances 4,
    eaao5580. https://doi.org/10.1126/sciadv.aao5580
    """
    cases = _read_cases(fetch("dressel_farid_cases"))
    parts = [_answers(_read_cells(fetch(f"dressel_farid_{condition}")), condition, cases) for condition in CONDITIONS]
    return build_frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, backend)


def _read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file from its header (the row with `id`) onwards, without empty rows.

    The authors' files have a line above the header, empty rows and columns, and the line ends of an old Macintosh.
    """
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("latin-1")
    rows = [row for row in csv.reader(io.StringIO(text, newline=None)) if any(cell.strip() for cell in row)]
    start = next((i for i, row in enumerate(rows) if "id" in row), None)
    if start is None:
        raise DataError("{path} has no column `id`; delete it and fetch it again.", path=path)
    width = len(rows[start])
    return [row[:width] + [""] * (width - len(row)) for row in rows[start:]]


def _read_cases(path: Path) -> dict[str, IntArray]:
    """Return the columns of the defendants' file, all integers."""
    header, *rows = _read_cells(path)
    table = np.array(rows)
    return {name: table[:, i].astype(np.int64) for i, name in enumerate(header) if name.strip()}


def _answers(cells: list[list[str]], condition: str, cases: dict[str, IntArray]) -> Columns:
    """Return one row per answer from a table of defendants by critics (1 correct, -1 wrong, empty if not seen)."""
    header, *rows = cells
    id_column = header.index("id")
    critic_columns = [i for i, name in enumerate(header) if i != id_column and name.strip()]
    table = np.array(rows)
    marks = table[:, critic_columns].T
    critic, row = np.nonzero(np.char.strip(marks) != "")
    case = table[row, id_column].astype(np.int64)
    order = np.argsort(cases["id"])
    row_of_case = order[np.searchsorted(cases["id"], case, sorter=order)]
    outcome, decile = cases["two_year_recid"][row_of_case], cases["compas_decile_score"][row_of_case]
    prediction = np.where(marks[critic, row].astype(np.int64) == 1, outcome, 1 - outcome)
    decision = (decile > _HIGHEST_LOW_SCORE).astype(np.int64)
    return {
        "condition": np.full(case.size, condition, dtype=object),
        "critic": np.array([int(header[i]) for i in critic_columns])[critic],
        "case": case,
        "block": cases["block_num"][row_of_case],
        "race": np.array(_RACES, dtype=object)[cases["race"][row_of_case] - 1],
        "sex": np.array(_SEXES, dtype=object)[cases["sex"][row_of_case]],
        "age": cases["age"][row_of_case],
        "decile_score": decile,
        "compas_decision": decision,
        "prediction": prediction,
        "disagrees": (prediction != decision).astype(np.int64),
        "two_year_recid": outcome,
    }
