"""Seal a plan before the data are seen, and check whether an audit followed it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard

from evenhand._version import __version__
from evenhand.core.findings import Finding
from evenhand.core.result import Result
from evenhand.core.thresholds import Threshold
from evenhand.errors import ConfigError, brief
from evenhand.messages import Message
from evenhand.messages.formats import rounded
from evenhand.run.config import read_config
from evenhand.run.messages import say
from evenhand.settings import read_json
from evenhand.table.roles import make_roles

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

PLAN_FILE = "plan.json"

_OF_THE_FILE = ("source", "encoding", "delimiter", "decimal", "missing_values", "data")
"""Settings of the file's name and format, which are not part of a plan."""

_WORDS = ("people", "selected_word")
"""Settings of wording in findings, which belong to the report and not to a plan."""

_MISSING = object()


def seal(settings: str | os.PathLike[str], *, allow_code: bool = False) -> dict[str, Any]:
    r"""Return the plan of an `audit.toml`: all settings with defaults, the time, and a hash of both.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "audit.toml"
    ...     data = '[data]\nsource = "later.csv"\ngroups = ["sex"]\npredictions = "hired"\n'
    ...     _ = path.write_text(f"{data}[parity]\n")
    ...     plan = seal(path)
    >>> plan["settings"]["data"]["groups"], len(plan["sha256"])
    ([['sex']], 64)
    """
    plan = {
        "evenhand": __version__,
        "sealed": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": _planned_part(_read_settings(settings, allow_code)),
    }
    return {**plan, "sha256": _digest(plan)}


def _read_settings(path: str | os.PathLike[str], allow_code: bool) -> dict[str, Any]:
    """Return the settings of an `audit.toml` with all defaults, without reading the data."""
    config, arguments = read_config(path, allow_code=allow_code)
    roles = make_roles(**{name: value for name, value in arguments.items() if name not in _OF_THE_FILE})
    return config.model_copy(update={"data": roles.model_dump(mode="json")}).as_dict()


def read_plan(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a plan; raise if it was changed after sealing."""
    plan = read_json(path, "a plan that `evenhand plan` sealed")
    lacking = [name for name in ("evenhand", "sealed", "settings", "sha256") if name not in plan]
    if lacking:
        raise ConfigError(
            "'{path}' is not a plan that `evenhand plan` sealed: it has no {lacking!r}.", path=path, lacking=lacking[0]
        )
    stated = plan["sha256"]
    sealed = {name: plan[name] for name in ("evenhand", "sealed", "settings")}
    if _digest(sealed) != stated:
        raise ConfigError(
            "the plan '{path}' was changed after it was sealed: its contents do not have its SHA-256.", path=path
        )
    return {**sealed, "sha256": stated}


def _planned_part(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the planned settings, without report wording and the file's name and format."""
    planned = {name: value for name, value in settings.items() if name not in ("report", "power")}
    planned["data"] = {name: value for name, value in planned["data"].items() if name not in _OF_THE_FILE}
    if planned.get("models"):  # the plan fixes the models; fitted models also appear as predictions
        predictions = planned["data"].get("predictions", {})
        planned["data"]["predictions"] = {
            name: v for name, v in predictions.items() if name not in planned["models"]["fit"]
        }
    plain: dict[str, Any] = rounded(planned)
    return plain


def _digest(plan: Mapping[str, Any]) -> str:
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def follow(audit: Audit, plan: Mapping[str, Any]) -> Audit:
    """Return an audit with a record of whether it followed a plan, and unplanned findings marked exploratory."""
    changes = differences(audit, plan)
    results = {name: _mark_exploratory(result, changes) for name, result in audit.results.items()}
    record = {
        "sha256": plan["sha256"],
        "sealed": plan["sealed"],
        "followed": not changes,
        "changes": [change.message.to_dict() for change in changes],
    }
    return replace(audit, results=results, plan=record)


def _mark_exploratory(result: Result, changes: Sequence[SettingChange]) -> Result:
    """Return a result whose unplanned findings are marked exploratory."""
    spoilt = any(change.audit in (None, result.spec.audit) for change in changes if change.threshold is None)
    added = [change.threshold for change in changes if change.threshold is not None]
    limits = [threshold for threshold in result.spec.thresholds if rounded(threshold.model_dump()) in added]
    findings = (
        replace(finding, exploratory=spoilt or any(_is_about(limit, finding) for limit in limits))
        for finding in result.findings
    )
    return replace(result, findings=tuple(findings))


def differences(audit: Audit, plan: Mapping[str, Any]) -> list[SettingChange]:
    """Return the differences between an audit's settings and a plan."""
    return list(_changes(_without_labels(plan["settings"]), _without_labels(_planned_part(audit.config.as_dict()))))


def _without_labels(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return planned settings without wording."""
    data = {name: value for name, value in settings.get("data", {}).items() if name not in _WORDS}
    data["predictions"] = {
        model: {name: value for name, value in prediction.items() if name not in _WORDS}
        for model, prediction in data.get("predictions", {}).items()
    }
    return {**settings, "data": data}


def _is_about(limit: Threshold, finding: Finding) -> bool:
    """Return whether a finding belongs to a threshold."""
    named = all(
        getattr(finding, name, None) == wanted for name, wanted in limit.named().items() if hasattr(finding, name)
    )
    return finding.threshold is not None and finding.limit == limit.limit and named


@dataclass(frozen=True)
class SettingChange:
    """One difference between an audit and its plan.

    Parameters
    ----------
    message : the difference.
    audit : the audit whose findings become exploratory; None for all audits, "" for no audit.
    threshold : an added threshold, if the change is one; only its findings become exploratory.
    """

    message: Message
    audit: str | None
    threshold: dict[str, Any] | None = None


def _changes(planned: Mapping[str, Any], done: Mapping[str, Any]) -> Iterator[SettingChange]:
    for section in dict.fromkeys([*planned, *done]):
        concerns = None if section in ("data", "models") else section
        before, now = planned.get(section), done.get(section)
        if now is None:
            yield SettingChange(say("section_gone", section=section), "")
        elif before is None:
            yield SettingChange(say("section_unplanned", section=section), concerns)
        else:
            yield from _section_changes(section, before, now, concerns)


def _section_changes(
    section: str, before: Mapping[str, Any], now: Mapping[str, Any], concerns: str | None
) -> Iterator[SettingChange]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name, _MISSING), now.get(name, _MISSING)
        if name == "thresholds":
            yield from _threshold_changes(old, new, section)
        elif name == "predictions":
            yield from _value_changes(name, section, _drop_default_kinds(old, new), new, concerns)
        else:
            yield from _value_changes(name, section, old, new, concerns)


def _value_changes(name: str, section: str, old: object, new: object, concerns: str | None) -> Iterator[SettingChange]:
    """Yield the differences of one setting; for a table of settings, only the differing entries."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for inner in dict.fromkeys([*old, *new]):
            sides = old.get(inner, _MISSING), new.get(inner, _MISSING)
            yield from _value_changes(inner, f"{section}.{name}", *sides, concerns)
    elif old != new:
        values = [say("not_there") if value is _MISSING else brief(value) for value in (old, new)]
        if values[0] == values[1]:  # the difference lies beyond the cut of long values
            values = [str(old), str(new)]
        message = say("setting_changed", name=name, section=section, planned=values[0], done=values[1])
        yield SettingChange(message, concerns)


def _drop_default_kinds(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return planned predictions with kinds filled in from the data if the plan left them open."""
    return {
        model: {**values, "kind": now[model]["kind"]} if values.get("kind") is None and model in now else values
        for model, values in before.items()
    }


def _threshold_changes(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]], audit: str
) -> Iterator[SettingChange]:
    for threshold in now:
        if threshold not in before:
            yield SettingChange(_threshold_difference("threshold_unplanned", threshold, audit), audit, threshold)
    for threshold in before:
        if threshold not in now:
            yield SettingChange(_threshold_difference("threshold_gone", threshold, audit), "")


def _threshold_difference(key: str, threshold: Mapping[str, Any], audit: str) -> Message:
    side = "min" if threshold.get("min") is not None else "max"
    return say(key, metric=threshold["metric"], side=side, limit=float(threshold[side]), audit=audit)


# Two settings ---------------------------------------------------------------------------------------------------------


def other_settings(audit: Audit, path: str | os.PathLike[str], *, allow_code: bool = False) -> list[Message]:
    """Return the differences between an `audit.toml` and the settings of an audit."""
    done, settings = audit.config.as_dict(), _read_settings(path, allow_code)
    sides = [{**_planned_part(values), "report": rounded(values["report"])} for values in (done, settings)]
    for side, values in zip(sides, (done, settings), strict=True):
        side["data"]["source"] = values["data"].get("source")
    ran, other = (side["data"].get("predictions", {}) for side in sides)
    sides[1]["data"]["predictions"] = _drop_default_kinds(other, ran)
    words = say("in_results"), say("in_file", path=str(path))
    return [
        change
        for section in dict.fromkeys([*sides[0], *sides[1]])
        for change in setting_changes(f"[{section}]", sides[0].get(section), sides[1].get(section), words)
    ]


_THEN_NOW = say("before"), say("now")


def setting_changes(
    path: str, old: object, new: object, words: tuple[Message, Message] = _THEN_NOW
) -> Iterator[Message]:
    """Yield the differences between two settings with their paths, recursing into tables."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from setting_changes(f"{path} {name}", old.get(name), new.get(name), words)
    elif _are_tables(old) and _are_tables(new):
        yield from _table_changes(path, old, new, words)
    elif old != new:
        yield _difference_message(path, *(None if value is None else brief(value) for value in (old, new)), words=words)


def _difference_message(path: str, old: str | None, new: str | None, *, words: tuple[Message, Message]) -> Message:
    """Return the message on one difference between settings; None means an absent setting."""
    before, after = (say("none") if value is None else say("given_name", name=value) for value in (old, new))
    return say("setting_differs", place=path, old=before, then=words[0], new=after, now=words[1])


def _table_changes(
    path: str, old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], words: tuple[Message, Message]
) -> Iterator[Message]:
    """Yield the differences between lists of tables, such as thresholds, matched by metric."""
    gone, come = [row for row in old if row not in new], [row for row in new if row not in old]
    for row in gone:
        now = next((other for other in come if other.get("metric") == row.get("metric")), None)
        if now is None:
            yield _difference_message(path, _set_values(row), None, words=words)
        else:
            come = [other for other in come if other is not now]
            yield from setting_changes(f"{path}, {row.get('metric')},", row, now, words)
    yield from (_difference_message(path, None, _set_values(row), words=words) for row in come)


def _are_tables(value: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    return isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value)


def _set_values(row: Mapping[str, Any]) -> str:
    """Return the values of a table of settings that are not None, as text."""
    return ", ".join(f"{name} = {brief(value)}" for name, value in row.items() if value is not None)
