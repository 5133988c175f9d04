"""A datasheet of the data, in Markdown and JSON, filled in from an audit as far as possible.

The fields follow Gebru et al. 2021 (Datasheets for datasets, CACM 64(12)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.core.records import LeftOut
from evenhand.messages.formats import json_text
from evenhand.report import front
from evenhand.report.formats import Files
from evenhand.report.formats._documents import OPEN, group_sizes, selection_meaning, to_markdown

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MISSING = {
    "error": "no outcome or score is missing: the audit would have stopped",
    "drop": "rows with a missing outcome or score are left out",
}


def make(audit: Audit) -> Files:
    """Return the datasheet: the known facts about the data, by the questions of a datasheet."""
    data, about = audit.config.data, audit.config.report
    predictions = data.get("predictions", {})
    left_out = [record for result in audit.results.values() for record in result.left_out]
    sheet: dict[str, dict[str, Any]] = {
        "motivation": {"purpose": about.scope or OPEN, "creators": OPEN},
        "composition": {
            "instances": f"{audit.data['rows']:,} rows, of which {audit.data['rows_used']:,} are used",
            "groups": [f"{item.grouping}: {group_sizes(item)}" for item in front.groups_compared(audit)],
            "outcome": data.get("outcome") or "none",
            "predictions": [f"{name}: {selection_meaning(value)}" for name, value in predictions.items()],
            "files": [f"{file['name']}, SHA-256 {file['sha256']}" for file in audit.data["files"]],
            "sha256_of_what_was_read": audit.data["hash"],
        },
        "collection": {"process": OPEN, "consent": OPEN},
        "preprocessing": {
            "missing_values": _MISSING.get(data.get("missing", "error"), OPEN),
            "cut_points": [f"{column}: {cuts}" for column, cuts in data.get("cuts", {}).items()] or "none",
            "left_out": list(dict.fromkeys(_left_out(record) for record in left_out)) or "nothing",
        },
        "uses": {"used_for": f"a fairness audit with evenhand: {', '.join(audit.results)}", "other_uses": OPEN},
        "distribution": {"description": OPEN},
        "maintenance": {"description": OPEN},
    }
    title = f"Datasheet: {about.title}"
    return {"datasheet.md": to_markdown(title, sheet), "datasheet.json": json_text(sheet)}


def _left_out(record: LeftOut) -> str:
    who = f"{record.grouping} {record.group}, " if record.group is not None else ""
    return f"{who}n = {record.n:,}: {record.reason}"
