"""Read and validate `results.json` and `run.json` of a saved audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter, create_model, model_validator

from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import TABLES, ProfileResult
from evenhand.after.records import EXTRAS
from evenhand.audits import REGISTRY
from evenhand.core.descriptor import study_analysis
from evenhand.core.findings import Finding
from evenhand.core.records import Record
from evenhand.core.result import Result
from evenhand.errors import ConfigError, brief, require_choice
from evenhand.messages import Message
from evenhand.messages.catalogue import catalogue_of, placeholders
from evenhand.settings import read_json
from evenhand.table.roles import Favourable


class _Saved(BaseModel):
    """A part of `results.json`, with the types that `save` writes; values not used in reports are unchecked."""

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
    favourable: Favourable | None

    @model_validator(mode="after")
    def _has_a_limit(self) -> _Prediction:
        if self.kind == "score" and self.threshold is None:
            raise ValueError("a score without a threshold")
        return self


class _Requested(_Saved):
    id: str | None = None
    outcome: str | None = None
    weight: str | None = None
    count: str | None = None
    cluster: str | None = None
    people: str | None = None
    missing: Literal["error", "drop"] = "error"
    groups: list[list[str]] = []
    cuts: dict[str, list[float]] = {}
    labels: dict[str, dict[str, str]] = {}
    one_hot: dict[str, list[str]] = {}
    predictions: dict[str, _Prediction] = {}


class _Config(_Saved):
    data: _Requested


@cache
def _written_record(record: type[Record]) -> type[_Saved]:
    """Return a model of a record's columns with their types; messages include their text."""
    hints = get_type_hints(record)
    return _model(record, {item.name: (hints[item.name], ...) for item in fields(record)})


@cache
def _written_result(result: type[Result]) -> type[_Saved]:
    """Return a model of a result's tables and plain fields; `from_dict` checks its settings."""
    hints = get_type_hints(result)
    tables = {name: (_list_of(kind), ...) for name, kind in result.record_types().items()}
    plain = {name: (hints[name], ...) for name in result.plain_fields()}
    return _model(result, {**tables, **plain, "notes": (list[_Message], ...)})


def _list_of(record: type[Record]) -> Any:
    return list[_written_record(record)]  # type: ignore[misc,arg-type]  # a type created at runtime


def _model(kind: type, columns: Mapping[str, tuple[Any, Any]]) -> type[_Saved]:
    written = {Message: _Message, Message | None: _Message | None}
    typed: dict[str, Any] = {name: (written.get(hint, hint), default) for name, (hint, default) in columns.items()}
    return create_model(kind.__name__, __base__=_Saved, **typed)


class _Profile(_Saved):
    name: Literal[tuple(PROFILES)]  # type: ignore[valid-type]
    date: str
    notes: list[_Message]
    tables: _model(ProfileResult, {name: (_list_of(kind), []) for name, kind in TABLES.items()})  # type: ignore[valid-type]


class _Contents(_Saved):
    data: _Data
    plan: _SavedPlan | None
    config: _Config
    findings: _list_of(Finding)  # type: ignore[valid-type]
    profiles: list[_Profile]


def require_contents(written: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless `results.json` has the data, plan, roles and records that `save` writes."""
    # Validate as JSON, since strict validation of Python objects rejects a mapping in place of a record.
    checked = {name: written[name] for name in _Contents.model_fields if name in written}
    _Contents.model_validate_json(json.dumps(checked))
    for name, values in written["audits"].items():
        kind: Any = result_type(name)
        _written_result(kind).model_validate_json(json.dumps(values))
    for extra in written["extras"]:
        for name, record in EXTRAS[extra["name"]].items():
            TypeAdapter(_list_of(record)).validate_json(json.dumps(extra["tables"][name]))


def result_type(name: str) -> type[Result]:
    """Return the result class of an audit or a study, by name."""
    if name == "study":
        return study_analysis().result
    require_choice("audit", name, list(REGISTRY))
    return REGISTRY[name].result


def require_sentences(written: Any) -> None:
    """Raise a `ValueError` if a message in `results.json` is unknown or lacks an argument."""
    sentences = {json.dumps(message, sort_keys=True): message for message in _messages(written)}
    for message in sentences.values():
        try:
            found, args = catalogue_of(message["id"]), message["args"]
            needed = placeholders(found[0].sentences[found[1]]) if found is not None else ()
            is_sound = all(field.name in args for field in needed) and (found is not None or "." in message["id"])
            _ = Message.from_dict(message).text
        except Exception:
            is_sound = False
        if not is_sound:
            raise ValueError(f"the sentence {brief(message['id'])} cannot be written with its arguments")


def _messages(written: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all messages, including messages among their arguments."""
    if isinstance(written, dict) and written.keys() == {"id", "args", "text"}:
        yield written
    if isinstance(written, dict | list):
        for part in written.values() if isinstance(written, dict) else written:
            yield from _messages(part)


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of results.json and run.json, after checking that they are from the same run."""
    written, run = (read_saved(folder / name) for name in ("results.json", "run.json"))
    _require_one_run(folder, checksums(run))
    _require_run(folder / "run.json", run)
    return written, run


def read_saved(path: Path) -> dict[str, Any]:
    """Return the contents of one JSON file of a saved audit."""
    return read_json(path, "a file of a saved audit")


def checksums(run: dict[str, Any]) -> dict[str, Any]:
    """Remove and return the file checksums of run.json."""
    sums = run.pop("sha256", {})
    return sums if isinstance(sums, dict) else {}


def _require_one_run(folder: Path, sums: Mapping[str, str]) -> None:
    """Raise if results were changed, or left over from another run."""
    name = "results.json"
    if name in sums and hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums[name]:
        raise ConfigError(
            "'{value}' is not what the run of '{value_2}' wrote; audit again.",
            value=folder / name,
            value_2=folder / "run.json",
        )


def _require_run(path: Path, run: Mapping[str, Any]) -> None:
    """Raise if run.json lacks the time or software of the run."""
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
