"""The analysis of a human study as a run with a report: responses in, an `Audit` out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from evenhand.core.result import settled
from evenhand.core.run import run_record
from evenhand.errors import ConfigError
from evenhand.report.audit import Audit
from evenhand.report.config import AuditConfig, ReportSettings
from evenhand.study.analysis.analyze import run
from evenhand.study.analysis.result import StudyResult
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.responses import Responses
from evenhand.study.schema import require_known, write_csv

_SECTIONS = ("study", "thresholds", "report")


def audit_study(responses: Responses | Any, sections: Mapping[str, Any], seed: int | None = None) -> Audit:
    """Analyse the responses of an effort study and return what `Audit.save` can write."""
    if not isinstance(responses, Responses):
        kind = type(responses).__name__
        raise ConfigError(
            f"audit() takes the path of an audit.toml, a Table or the Responses of a study; got a {kind}."
        )
    started, clock = datetime.now(UTC), perf_counter()
    require_known(sections, _SECTIONS, "responses take no section {name}")
    spec = _spec(sections.get("study", {}), sections.get("thresholds", ()), seed)
    about = {"title": "Human study", **sections.get("report", {})}
    report = ReportSettings.parse(about, "`report` in the arguments of audit()")
    result = settled(run(responses, spec))
    data = {"kind": responses.kind, "points": responses.points, "conditions": list(responses.conditions)}
    config = AuditConfig(source=None, data=data, audits={"study": spec}, report=report)
    seconds = {"study": perf_counter() - clock}
    return Audit(config, {"study": result}, _data_record(responses, result), run_record(started, seconds))


def _spec(settings: AnalysisSpec | Mapping[str, Any], thresholds: Any, seed: int | None) -> AnalysisSpec:
    values = settings.model_dump() if isinstance(settings, AnalysisSpec) else dict(settings)
    values["thresholds"] = [*values.get("thresholds", ()), *thresholds]
    if seed is not None:
        values["seed"] = seed
    return AnalysisSpec.parse(values, "`study` in the arguments of audit()")


def _data_record(responses: Responses, result: StudyResult) -> dict[str, Any]:
    """Return answers and people, before and after the exclusions, and what identifies the answers."""
    columns = responses.to_columns()
    text = write_csv({name: columns[name] for name in sorted(columns)})
    answers = len(responses.person)
    return {
        "rows": answers,
        "rows_used": result.answers,
        "rows_dropped": answers - result.answers,
        "people": len(responses.people["participant"]),
        "people_used": result.people,
        "hash": hashlib.sha256(text.encode()).hexdigest(),
        "files": [],
    }
