"""ProPublica's COMPAS data: risk scores of defendants in Broward County, and who was arrested again."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any, cast

import numpy.typing as npt

from evenhand.datasets.registry import fetch
from evenhand.table.frames import build_frame

_COLUMNS = {
    "id": "BIGINT",
    "sex": "VARCHAR",
    "age": "BIGINT",
    "age_cat": "VARCHAR",
    "race": "VARCHAR",
    "juv_fel_count": "BIGINT",
    "juv_misd_count": "BIGINT",
    "juv_other_count": "BIGINT",
    "priors_count": "BIGINT",
    "days_b_screening_arrest": "BIGINT",
    "c_charge_degree": "VARCHAR",
    "c_charge_desc": "VARCHAR",
    "is_recid": "BIGINT",
    "is_violent_recid": "BIGINT",
    "two_year_recid": "BIGINT",
    "decile_score": "BIGINT",
    "score_text": "VARCHAR",
    "v_decile_score": "BIGINT",
    "v_score_text": "VARCHAR",
}
"""The columns that are kept, with their types: none of them names a person, a date or a case."""

_PROPUBLICA_FILTER = (
    "abs(days_b_screening_arrest) <= 30 AND is_recid <> -1 AND c_charge_degree <> 'O' AND score_text <> 'N/A'"
)


def load_compas(*, filtered: bool = True, backend: str | None = None) -> Any:
    """Load ProPublica's COMPAS data with two-year recidivism, without the columns that identify people.

    The file comes from `fetch("compas")`: the folder named by EVENHAND_DATA, the cache, or the publisher.

    Parameters
    ----------
    filtered : bool, default True
        Keep the 6,172 rows that ProPublica analysed, of 7,214: those whose score was given within 30 days of
        the arrest (`days_b_screening_arrest` from -30 to 30, so that score and charge belong together), with
        a case found (`is_recid` not -1), not charged with an ordinary traffic offence alone
        (`c_charge_degree` not "O"), and with a score (`score_text` not "N/A").
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
        The file could not be had, or is not the published one.

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


def _read(path: Path, *, filtered: bool) -> dict[str, npt.NDArray[Any]]:
    """Read the documented columns of a CSV file, compressed or not; missing values come as masked entries."""
    import duckdb

    # The publisher's header has `decile_score` and `priors_count` twice. DuckDB renames the second of each,
    # so the first is read, as in the de-identified file.
    source = "read_csv($path, header = true, types = $types, nullstr = '')"
    rows = _PROPUBLICA_FILTER if filtered else "true"
    query = f"SELECT {', '.join(_COLUMNS)} FROM {source} WHERE {rows}"  # noqa: S608 -- constants only
    with duckdb.connect() as connection:
        connection.execute(query, {"path": glob.escape(str(path)), "types": _COLUMNS})
        return cast(dict[str, npt.NDArray[Any]], connection.fetchnumpy())
