"""Read `results.json` and `run.json` of a saved audit, and check what they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, NonNegativeInt, create_model, model_validator

from evenhand.core.findings import Finding
from evenhand.errors import ConfigError, brief
from evenhand.messages import Message
from evenhand.settings import read_json


class _Saved(BaseModel):
    """A part of `results.json` with the types that `save` writes; values that no report shows are unchecked."""

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
    """A message: its id, arguments and English text."""

    id: str
    args: dict[str, Any]
    text: str


class _SavedPlan(_Saved):
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


class _Requested(_Saved):
    predictions: dict[str, _Prediction] = {}


class _Config(_Saved):
    data: _Requested


def _written_finding() -> type[_Saved]:
    """Return the columns of a finding with their types; messages include their text."""
    hints: dict[str, Any] = get_type_hints(Finding)
    written = {Message: _Message, Message | None: _Message | None}
    columns: dict[str, Any] = {
        item.name: (written.get(hints[item.name], hints[item.name]), ... if item.default is MISSING else item.default)
        for item in fields(Finding)
    }
    return create_model("_Finding", __base__=_Saved, **columns)


class _Contents(_Saved):
    data: _Data
    plan: _SavedPlan | None
    config: _Config
    findings: list[_written_finding()]  # type: ignore[valid-type]


def require_contents(written: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless `results.json` has the data, plan, roles and findings that `save` writes."""
    checked = {name: written[name] for name in _Contents.model_fields if name in written}
    # As JSON, since strict validation of Python objects accepts no mapping for a finding.
    _Contents.model_validate_json(json.dumps(checked))


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of results.json and run.json of a saved audit, which must be of one run."""
    written, run = (read_saved(folder / name) for name in ("results.json", "run.json"))
    _require_one_run(folder, checksums(run))
    _require_run(folder / "run.json", run)
    return written, run


def read_saved(path: Path) -> dict[str, Any]:
    """Return the contents of one file of a saved audit."""
    return read_json(path, "a file of a saved audit")


def checksums(run: dict[str, Any]) -> dict[str, Any]:
    """Return the checksums of the files in run.json."""
    sums = run.pop("sha256", {})
    return sums if isinstance(sums, dict) else {}


def _require_one_run(folder: Path, sums: Mapping[str, str]) -> None:
    """Refuse results that were changed, or left by an interrupted run."""
    name = "results.json"
    if name in sums and hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums[name]:
        raise ConfigError(
            "'{value}' is not what the run of '{value_2}' wrote; audit again.",
            value=folder / name,
            value_2=folder / "run.json",
        )


def _require_run(path: Path, run: Mapping[str, Any]) -> None:
    """Refuse a run.json without the time and software of the run."""
    kinds = {"evenhand": str, "started": str, "seconds": dict, "python": str, "platform": str, "packages": dict}
    fault = next((name for name, kind in kinds.items() if not isinstance(run.get(name), kind)), None)
    try:
        datetime.fromisoformat(run["started"] if fault is None else "")
    except ValueError:
        fault = fault or "started"
        raise ConfigError(
            "'{path}' is not whole: `{fault}` is {get}; run the audit again.",
            path=path,
            fault=fault,
            get=brief(run.get(fault)),
        ) from None
