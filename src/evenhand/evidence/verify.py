"""Verify that report, results, data and plan belong together.

It uses only standard cryptography: SHA-256, and detached signatures by `ssh-keygen -Y` if the user has a key.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand._version import __version__
from evenhand.core.progress import step
from evenhand.evidence.messages import say
from evenhand.messages import Message
from evenhand.run.audit import Audit
from evenhand.run.auditing import audit as run_audit
from evenhand.run.plan import PLAN_FILE, differences, follow, other_settings, read_plan
from evenhand.run.saved import checksums, read_saved


@dataclass(frozen=True)
class Check:
    """A check of `verify`: a message, and whether the check holds (None if it could not be performed)."""

    holds: bool | None
    message: Message

    @property
    def text(self) -> str:
        """The message in English."""
        return self.message.text


def verify(
    folder: str | os.PathLike[str],
    *,
    settings: str | os.PathLike[str] | None = None,
    plan: str | os.PathLike[str] | None = None,
    allow_code: bool = False,
) -> list[Check]:
    """Verify that report, results, data and plan of a folder belong together; return the checks.

    Parameters
    ----------
    folder : the folder of a saved audit.
    settings : its `audit.toml`, to recompute everything from the data.
    plan : the plan that it refers to; by default `plan.json` in the folder, if it exists.
    allow_code : whether the settings may name Python functions to import.
    """
    run_folder = Path(folder)
    checks = list(check_files(run_folder))
    if any(check.holds is False for check in checks):
        return checks
    audit = Audit.load(run_folder)
    checks += _check_report(run_folder, audit)
    beside = run_folder / PLAN_FILE
    sealed = plan if plan is not None else beside if beside.exists() else None
    checks += _check_plan(audit, sealed)
    checks.append(_recompute(audit, settings, sealed, allow_code))
    return checks


def check_files(run_folder: Path) -> Iterator[Check]:
    """Yield a check of each file of a run against its SHA-256 in run.json."""
    for name, stated in checksums(read_saved(run_folder / "run.json")).items():
        path = run_folder / name
        if not path.is_file():
            yield Check(False, say("file_missing", file=name))
        elif hashlib.sha256(path.read_bytes()).hexdigest() != stated:
            yield Check(False, say("file_changed", file=name))
        else:
            yield Check(True, say("file_unchanged", file=name))


def _check_report(run_folder: Path, audit: Audit) -> Iterator[Check]:
    path = run_folder / "report.html"
    if not path.exists():
        return
    if audit.run["evenhand"] != __version__:
        yield Check(None, say("page_of_other_version", then=audit.run["evenhand"], now=__version__))
        return
    step("Rendering the report again")
    if audit.to_html().encode() == path.read_bytes():
        yield Check(True, say("page_unchanged"))
    else:  # run.json is not sealed: whoever changes the page can also update its SHA-256 there
        yield Check(False, say("page_changed", version=__version__))


def _check_plan(audit: Audit, path: str | os.PathLike[str] | None) -> Iterator[Check]:
    if audit.plan is None:
        yield Check(None, say("no_plan"))
        return
    if path is None:
        yield Check(None, say("plan_not_at_hand", digest=audit.plan["sha256"][:12]))
        return
    plan = read_plan(path)
    same = plan["sha256"] == audit.plan["sha256"]
    yield Check(same, say("plan_of_the_results" if same else "plan_of_others", path=str(path)))
    if same:
        changes = tuple(change.message for change in differences(audit, plan))
        agreed = changes == tuple(map(Message.from_dict, audit.plan["changes"]))
        sentence = say("differences_told" if agreed else "differences_untold", changes=changes)
        yield Check(agreed, sentence if changes or not agreed else say("plan_followed"))


def _recompute(
    audit: Audit, settings: str | os.PathLike[str] | None, plan: str | os.PathLike[str] | None, allow_code: bool
) -> Check:
    if settings is None:
        return Check(None, say("not_computed_again"))
    rerun = run_audit(settings, allow_code=allow_code)
    if audit.plan is not None and plan is not None:
        rerun = follow(rerun, read_plan(plan))
    first, second = json.loads(audit.to_json()), json.loads(rerun.to_json())
    names = [
        name for name in dict.fromkeys([*first, *second]) if first.get(name) != second.get(name) and name != "plan"
    ]
    if not names:
        return Check(True, say("same_numbers"))
    return Check(
        False, _explain_difference(first, second, names, other_settings(audit, settings, allow_code=allow_code))
    )


def _explain_difference(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str], others: list[Message]
) -> Message:
    """Return the reason for different numbers: other settings, another file, or other data.

    The first applicable reason is returned.
    """
    sums = [[file["sha256"] for file in record["data"]["files"]] for record in (first, second)]
    same_file = bool(sums[0]) and sums[0] == sums[1]
    if others:
        return say("other_settings_same_file" if same_file else "other_settings", others=tuple(others))
    if "data" in names:
        digests = {"now": second["data"]["hash"][:12], "then": first["data"]["hash"][:12]}
        return say("read_otherwise" if same_file else "other_data", **digests)
    return say("other_numbers", names=tuple(names))
