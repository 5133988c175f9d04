"""What a researcher takes home: the answers as CSV, Parquet or JSON, and whom to pay a bonus."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from evenhand.errors import require_choice
from evenhand.study.analysis.serum import bonus_table
from evenhand.study.exclusions import apply_exclusions
from evenhand.study.responses import Responses, write_csv
from evenhand.study.schema import Values

if TYPE_CHECKING:
    from evenhand.study.spec import StudySpec
    from evenhand.study.store.records import BonusRow

Format = Literal["csv", "parquet", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
}


def export(responses: Responses, form: Format) -> bytes:
    """Return the tidy table of the answers in a format.

    In CSV an apostrophe stands before text that a spreadsheet would run; `read_responses` takes it away again.

    Examples
    --------
    >>> import evenhand as eh
    >>> export(eh.study.simulate_responses(1, seed=1), "csv").splitlines()[0][:21]
    b'participant,condition'
    """
    require_choice("format", form, FORMATS)
    columns = responses.to_columns()
    if form == "csv":
        return write_csv(columns).encode()
    return _parquet(columns) if form == "parquet" else _json(columns)


def bonus_list(responses: Responses, rows: list[BonusRow], spec: StudySpec) -> dict[str, list[Any]]:
    """Return whom to pay which bonus and why, one row a person and bonus, for those who finished.

    Only bonuses for the truth serum follow from the answers; those for the best reasons need somebody to rate them.
    """
    paid: dict[str, list[Any]] = {
        "recruitment_id": [],
        "participant": [],
        "amount": [],
        "currency": [],
        "reason": [],
    }
    bonuses = [one for one in spec.payment.bonuses if one.by == "truth_serum"]
    if responses.kind != "effort" or not bonuses or not len(responses.person):
        return paid
    scores, _ = bonus_table(apply_exclusions(responses, spec.analysis.exclusions), spec.analysis)
    finished = {row.participant: row for row in rows}
    for bonus in bonuses:
        for score in scores:
            row = finished.get(score.participant)
            if score.bonus and row is not None:
                told = (row.recruitment_id, row.participant, bonus.amount, spec.payment.currency, bonus.by)
                for name, value in zip(paid, told, strict=True):
                    paid[name].append(value)
    return paid


def _json(columns: dict[str, Values]) -> bytes:
    listed = {name: [_json_value(value) for value in values.tolist()] for name, values in columns.items()}
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=0).encode()


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _parquet(columns: dict[str, Values]) -> bytes:
    from evenhand.table.files import connect

    typed = ", ".join(
        f"CAST({_quoted(name)} AS {'DOUBLE' if values.dtype.kind == 'f' else 'VARCHAR'}) AS {_quoted(name)}"
        for name, values in columns.items()
    )
    with tempfile.TemporaryDirectory() as folder, connect() as connection:
        path = os.path.join(folder, "responses.parquet")
        connection.execute("SET preserve_insertion_order = true")
        connection.register("answers", columns)
        connection.execute(f"COPY (SELECT {typed} FROM answers) TO '{path}' (FORMAT parquet)")  # noqa: S608
        with open(path, "rb") as file:
            return file.read()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
