"""For tests of your own models: an assertion that fails with the finding's sentence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.core.findings import Finding
from evenhand.core.thresholds import UNDECIDED, Threshold
from evenhand.errors import ConfigError
from evenhand.run.audit import Audit
from evenhand.run.auditing import audit
from evenhand.table.table import Table

__all__ = ["assert_meets"]


def assert_meets(
    source: Table | str | os.PathLike[str],
    thresholds: Sequence[Mapping[str, Any] | Threshold] = (),
    *,
    strict: bool = False,
    **sections: object,
) -> Audit:
    """Run an audit, and fail if a threshold is not met.

    Parameters
    ----------
    source
        The table to audit, or the path of an `audit.toml` with its own thresholds.
    thresholds
        The limits, such as ``{"metric": "selection_rate", "min": 0.8}``; a threshold is not met if the whole
        interval lies beyond it.
    strict
        Whether to fail on insufficient evidence too, that is, if an interval covers the limit. Without it a small
        test set passes nearly everything.
    **sections
        Settings of audits, as `eh.audit` takes them; by default ``parity={}``.

    Returns
    -------
    Audit
        The finished audit, to inspect or save.

    Raises
    ------
    AssertionError
        With the sentence of every failing finding.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = {"sex": ["F", "M"] * 300, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 60}
    >>> table = eh.Table(data, groups="sex", predictions="hired")
    >>> _ = assert_meets(table, [{"metric": "selection_rate", "max": 0.3}])
    >>> try:
    ...     assert_meets(table, [{"metric": "selection_rate", "max": 0.05}])
    ... except AssertionError as failed:
    ...     print(str(failed).partition(';')[0])
    1 of 1 thresholds is not met:
    - By sex, hired selects: 60.0% (M), 40.0% (F)
    """
    limits = _as_settings(thresholds)
    audit_args: dict[str, Any] = {**sections, **({"thresholds": limits} if limits else {})}
    finished = audit(source, **audit_args)
    judged = [finding for finding in finished.findings if finding.threshold is not None]
    if not judged:
        raise ConfigError(
            "assert_meets needs a threshold to hold the table against, such as "
            "[{'metric': 'selection_rate', 'min': 0.8}]."
        )
    failing = ("does_not_meet", *UNDECIDED) if strict else ("does_not_meet",)
    failed = [finding for finding in judged if finding.verdict in failing]
    if failed:
        verb = "is" if len(failed) == 1 else "are"
        raise AssertionError(
            "\n".join([f"{len(failed)} of {len(judged)} thresholds {verb} not met:", *map(_sentence, failed)])
        )
    return finished


def _as_settings(thresholds: object) -> object:
    """Return thresholds as `audit` takes them; other values pass unchanged."""
    if not isinstance(thresholds, Iterable):
        return thresholds
    return [
        threshold.model_dump(exclude_none=True) if isinstance(threshold, Threshold) else threshold
        for threshold in thresholds
    ]


def _sentence(finding: Finding) -> str:
    limit = str(finding.threshold)
    judged = f"{limit[:1].upper()}{limit[1:]}: {finding.judgement}."
    return " ".join(str(part) for part in (f"- {finding.headline}", judged, finding.detail, finding.reason) if part)


def __dir__() -> list[str]:
    return __all__
