"""The JSON Schema of `results.json`, generated from the records and specs."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Literal

from pydantic import BaseModel

from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import TABLES
from evenhand.after.records import EXTRAS
from evenhand.audits import REGISTRY
from evenhand.core.descriptor import study_analysis
from evenhand.core.findings import Finding
from evenhand.core.records import Record
from evenhand.core.result import Result
from evenhand.messages import Message
from evenhand.models.estimators import ModelsSettings
from evenhand.run.audit import SCHEMA_VERSION
from evenhand.run.config import ReportSettings

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
    Message: {"$ref": "#/$defs/message"},
}
_MESSAGE: Schema = {"$ref": "#/$defs/message"}
_MESSAGES: Schema = {"type": "array", "items": _MESSAGE}


def results_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of the contents of `results.json`.

    Examples
    --------
    >>> sorted(results_schema()["properties"])
    ['audits', 'config', 'data', 'evenhand', 'extras', 'findings', 'plan', 'profiles', 'schema']
    """
    results = dict(result_types())
    definitions: Schema = {"message": _message_schema(), "finding": record_schema(Finding)}
    for name, result in results.items():
        for table, kind in result.record_types().items():
            definitions[f"{name}_{table}"] = record_schema(kind)
    definitions |= {table: record_schema(kind) for tables in EXTRAS.values() for table, kind in tables.items()}
    definitions |= {f"profile_{table}": record_schema(kind) for table, kind in TABLES.items()}
    specs = {name: _settings_schema(result.descriptor.spec, definitions) for name, result in results.items()}
    config = {
        "data": {"type": "object"},
        "models": _settings_schema(ModelsSettings, definitions),
        "report": _settings_schema(ReportSettings, definitions),
        **specs,
    }
    properties = {
        "evenhand": {"type": "string"},
        "schema": {"const": SCHEMA_VERSION},
        "config": {"type": "object", "required": ["data", "report"], "properties": config},
        "data": _data_schema(),
        "plan": _plan_schema(),
        "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
        "audits": {
            "type": "object",
            "minProperties": 1,
            "properties": {name: _result_schema(name, result, specs[name]) for name, result in results.items()},
            "additionalProperties": False,
        },
        "profiles": {"type": "array", "items": _profile_schema()},
        "extras": {"type": "array", "items": {"anyOf": [_extra_schema(name) for name in EXTRAS]}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "results.json of evenhand",
        **_closed(properties),
        "$defs": definitions,
    }


def result_types() -> Iterator[tuple[str, type[Result]]]:
    """Yield the name and class of every kind of result in `results.json`, for audits and for a study."""
    yield from ((name, REGISTRY[name].result) for name in REGISTRY)
    yield "study", study_analysis().result


def record_schema(record: type[Record]) -> Schema:
    """Return the schema of a record, with exactly its columns."""
    hints = typing.get_type_hints(record)
    meanings = record.columns()
    described = {
        item.name: {**type_schema(hints[item.name]), "description": meanings[item.name]} for item in fields(record)
    }
    return _closed(described)


def type_schema(annotation: object) -> Schema:
    """Return the schema of a column's type.

    Examples
    --------
    >>> type_schema(float | None), type_schema(Literal["difference", "ratio"])
    ({'type': ['number', 'null']}, {'enum': ['difference', 'ratio']})
    """
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (typing.Union, types.UnionType):
        parts = [type_schema(part) for part in inside]
        if all(set(part) == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is tuple:
        return {"type": "array", "items": type_schema(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": type_schema(inside[1])}
    raise TypeError(f"a record cannot hold {annotation!r}")


def _message_schema() -> Schema:
    """Return the schema of a message: its id, arguments and English text."""
    return _closed({"id": {"type": "string"}, "args": {"type": "object"}, "text": {"type": "string"}})


def _plan_schema() -> Schema:
    text = {"type": "string"}
    plan = {
        "sha256": text,
        "sealed": text,
        "followed": {"type": "boolean"},
        "changes": _MESSAGES,
    }
    return {"anyOf": [_closed(plan), {"type": "null"}]}


def _profile_schema() -> Schema:
    tables = {table: {"type": "array", "items": {"$ref": f"#/$defs/profile_{table}"}} for table in TABLES}
    of_tables = {"type": "object", "properties": tables, "additionalProperties": False}
    return _closed(
        {"name": {"enum": list(PROFILES)}, "date": {"type": "string"}, "notes": _MESSAGES, "tables": of_tables}
    )


def _extra_schema(name: str) -> Schema:
    tables = {table: {"type": "array", "items": {"$ref": f"#/$defs/{table}"}} for table in EXTRAS[name]}
    return _closed(
        {"name": {"const": name}, "settings": {"type": "object"}, "notes": _MESSAGES, "tables": _closed(tables)}
    )


def _closed(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _settings_schema(settings: type[BaseModel], definitions: Schema) -> Schema:
    """Return the schema of settings with all defaults, adding nested settings to `definitions`."""
    template = "#/$defs/{model}"
    schema: Schema = settings.model_json_schema(mode="serialization", ref_template=template)
    definitions.update(schema.pop("$defs", {}))
    return schema


def _result_schema(name: str, result: type[Result], spec: Schema) -> Schema:
    hints = typing.get_type_hints(result)
    tables = {table: {"type": "array", "items": {"$ref": f"#/$defs/{name}_{table}"}} for table in result.record_types()}
    plain = {field: type_schema(hints[field]) for field in result.plain_fields()}
    return _closed({"spec": spec, **tables, **plain, "notes": _MESSAGES})


def _data_schema() -> Schema:
    count = {"type": "integer", "minimum": 0}
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    file = _closed({"name": {"type": "string"}, "bytes": count, "sha256": digest})
    schema = _closed(
        {
            "rows": count,
            "rows_used": count,
            "rows_dropped": count,
            "groups": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": count},
            },
            "hash": digest,
            "files": {"type": "array", "items": file},
        }
    )
    schema["properties"] |= {"people": count, "people_used": count}  # of a study only
    return schema
