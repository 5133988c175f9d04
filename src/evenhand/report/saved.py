"""What a report takes from `results.json` besides the records: checked when a saved audit is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, NonNegativeInt, create_model, model_validator

from evenhand.core.findings import Finding
from evenhand.messages import Message


class _Saved(BaseModel):
    """A part of `results.json`, each value of the type that `save` writes; what no report shows is not checked."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _File(_Saved):
    name: str
    bytes: NonNegativeInt
    sha256: str


class _Data(_Saved):
    rows: NonNegativeInt
    rows_used: NonNegativeInt
    rows_dropped: NonNegativeInt
    groups: dict[str, dict[str, NonNegativeInt]]
    hash: str
    files: list[_File]
    people: NonNegativeInt | None = None
    people_used: NonNegativeInt | None = None


class _Message(_Saved):
    """A sentence: which one, what it is filled with, and its English text."""

    id: str
    args: dict[str, Any]
    text: str


class _Plan(_Saved):
    sha256: str
    sealed: str
    followed: bool
    changes: list[_Message]


class _Prediction(_Saved):
    kind: str
    threshold: float | None
    selected: Any
    favourable: Literal["selected", "not_selected"] | None

    @model_validator(mode="after")
    def _has_a_limit(self) -> _Prediction:
        if self.kind == "score" and self.threshold is None:
            raise ValueError("a score without a threshold")
        return self


class _Asked(_Saved):
    predictions: dict[str, _Prediction] = {}


class _Config(_Saved):
    data: _Asked


def _written_finding() -> type[_Saved]:
    """Return the columns of a finding with their types; a message is written with its text."""
    hints: dict[str, Any] = get_type_hints(Finding)
    written = {Message: _Message, Message | None: _Message | None}
    columns: dict[str, Any] = {
        item.name: (written.get(hints[item.name], hints[item.name]), ... if item.default is MISSING else item.default)
        for item in fields(Finding)
    }
    return create_model("_Finding", __base__=_Saved, **columns)


class _Contents(_Saved):
    data: _Data
    plan: _Plan | None
    config: _Config
    findings: list[_written_finding()]  # type: ignore[valid-type]


def require_contents(written: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless the data, plan, roles and findings in `results.json` are what `save` writes."""
    checked = {name: written[name] for name in _Contents.model_fields if name in written}
    # As JSON, since the strict reading of Python objects takes no mapping for a finding.
    _Contents.model_validate_json(json.dumps(checked))
