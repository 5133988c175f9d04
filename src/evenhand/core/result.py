"""`Result`: what an audit returns. Frozen; it holds numbers and says them in text, frames, JSON and HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, ClassVar

from evenhand.core.findings import VERDICT_WORDS, Finding
from evenhand.core.sections import DisplayTable, Section
from evenhand.core.spec import Spec
from evenhand.errors import require_choice
from evenhand.table.frames import build_frame


@dataclass(frozen=True)
class Result(ABC):
    """The outcome of one audit.

    Parameters
    ----------
    spec : what was asked.
    findings : what was found, in sentences.
    left_out : everything that was left out and why, as flat records.
    notes : remarks a reader needs.
    backend : the data-frame library `to_frame` answers in.
    """

    audit: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    main_table: ClassVar[str]

    spec: Spec
    findings: tuple[Finding, ...]
    left_out: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    backend: str | None

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The result's tables by name; every record is a frozen dataclass of plain values."""

    @abstractmethod
    def section(self) -> Section:
        """Return the result's part of a report."""

    @abstractmethod
    def plot(self) -> Any:
        """Return the main chart (Altair)."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        tables = {name: [record_dict(record) for record in records] for name, records in self.tables.items()}
        return {
            "spec": self.spec.model_dump(mode="json"),
            **tables,
            "left_out": [dict(record) for record in self.left_out],
            "notes": list(self.notes),
        }

    def to_frame(self, table: str | None = None) -> Any:
        """Return one table as a data frame of the library that the data came in."""
        name = table or self.main_table
        require_choice("table", name, list(self.tables))
        records = [record_dict(record) for record in self.tables[name]]
        names = list(records[0]) if records else []
        return build_frame({column: [record[column] for record in records] for column in names}, self.backend)

    def summary(self) -> str:
        """Return the findings as plain text."""
        lines = [f"{self.title}: {self.question}", ""]
        for finding in self.findings:
            verdict = "" if finding.verdict == "no_threshold" else f" [{VERDICT_WORDS[finding.verdict]}]"
            lines.append(f"- {finding.sentence}{verdict}")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({len(records):,})" for name, records in self.tables.items())
        return f"<{type(self).__name__}: {len(self.findings)} findings; tables {tables}>"

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(finding.sentence)}</li>" for finding in self.findings)
        tables = "".join(html_table(part) for part in self.section().parts if isinstance(part, DisplayTable))
        return f"<h3>{escape(self.title)}</h3><p>{escape(self.question)}</p><ul>{items}</ul>{tables}"


def record_dict(record: Any) -> dict[str, Any]:
    """Return a record (a flat dataclass) as a dictionary."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def html_table(table: DisplayTable) -> str:
    """Return a table as plain HTML for a notebook; all text is escaped."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    inner = (
        f"<table><caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    return f"<details><summary>{escape(table.caption)}</summary>{inner}</details>" if table.folded else inner
