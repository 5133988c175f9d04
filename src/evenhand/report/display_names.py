"""Display names: replace names of models, columns and groups by the names that the user chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from evenhand.core.records import Record, declarations
from evenhand.core.result import Result
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def displayed(audit: Audit) -> Audit:
    """Return an audit with the names of `[report] names` in its tables and sentences.

    Settings, hashes and file names are unchanged.
    """
    names = audit.config.report.names
    if not names:
        return audit
    return replace(
        audit,
        results={audit_name: _renamed_result(result, names) for audit_name, result in audit.results.items()},
        data={**audit.data, "groups": renamed(audit.data.get("groups", {}), names)},
        profiles=tuple(replace(profile, tables=renamed(profile.tables, names)) for profile in audit.profiles),
        extras=tuple(replace(extra, tables=renamed(extra.tables, names)) for extra in audit.extras),
    )


def _renamed_result(result: Result, names: Mapping[str, str]) -> Result:
    kept = ("spec", "kept", "backend")
    own = {item.name: getattr(result, item.name) for item in fields(result) if item.name not in kept}
    settings = {name: renamed(getattr(result.spec, name), names) for name in type(result.spec).model_fields}
    spec = result.spec.model_copy(update=settings)
    return replace(result, spec=spec, **{name: renamed(value, names) for name, value in own.items()})


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with display names in its records, messages and containers.

    Examples
    --------
    >>> renamed({"race × sex": ("Black × Female", 3)}, {"Black × Female": "Black women"})
    {'race × sex': ('Black women', 3)}
    """
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Message):
        return Message(value.id, {key: renamed(argument, names) for key, argument in value.args.items()})
    if isinstance(value, Record):
        return _renamed_record(value, names)
    if isinstance(value, tuple | list):
        return type(value)(renamed(item, names) for item in value)
    return (
        {renamed(key, names): renamed(item, names) for key, item in value.items()} if isinstance(value, dict) else value
    )


def _renamed_record(record: Record, names: Mapping[str, str]) -> Record:
    """Return a record with display names in its names and messages; numbers, metrics and kinds are unchanged."""
    changed: dict[str, Any] = {}
    for name in declarations(type(record)):
        value = getattr(record, name)
        if name in _FIXED:
            continue
        if isinstance(value, str):
            if value in names:
                changed[name] = names[value]
        elif isinstance(value, Message | tuple | dict):
            changed[name] = renamed(value, names)
    return replace(record, **changed) if changed else record


_FIXED = ("audit", "metric", "kind", "against", "unit", "verdict", "number")
"""Columns with our own terms, which are never renamed."""
