"""Thresholds as JUnit test cases, for a build server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from evenhand.core.findings import Finding
from evenhand.core.result import Result
from evenhand.core.thresholds import UNDECIDED
from evenhand.messages import showable
from evenhand.report.formats import Files

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return a test case for every threshold: violations are failures, and undecided thresholds are skipped.

    Case names contain no numbers of the data, so that a build server can track a case over runs.
    """
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    broken = sum(finding.verdict == "does_not_meet" for finding in judged)
    undecided = sum(finding.verdict in UNDECIDED for finding in judged)
    counts = {"tests": str(len(judged)), "failures": str(broken), "skipped": str(undecided), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": showable(audit.config.report.title), **counts})
    seen = Counter[str]()
    for finding in judged:
        name = case_name(finding, audit.results[finding.audit])
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name} ({seen[name]})"
        case = ElementTree.SubElement(suite, "testcase", {"classname": finding.audit, "name": showable(name)})
        told = f"{finding.number}: {finding.text} Limit: {finding.threshold}."
        if finding.verdict == "does_not_meet":
            message = {"message": showable(f"{finding.number}: {finding.headline}")}
            ElementTree.SubElement(case, "failure", message).text = showable(told)
        elif finding.verdict in UNDECIDED:
            why = f"{finding.number}: {finding.reason or finding.headline}"
            ElementTree.SubElement(case, "skipped", {"message": showable(why)})
        else:
            ElementTree.SubElement(case, "system-out").text = showable(told)
    ElementTree.indent(suite, " ")
    return {"junit.xml": ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)}


def case_name(finding: Finding, result: Result) -> str:
    """Return the name of a limited value, such as 'xgboost/selection_rate/race/difference/worst_pair'.

    It includes the audit's own coordinates, except coordinates determined by the data.
    """
    found = result.found_places if finding.against == "worst_pair" else ()
    group = finding.group if finding.against not in ("worst_pair", None) or finding.kind is None else None
    place = (finding.model, finding.metric, finding.grouping, finding.stratum, finding.kind, finding.against, group)
    places = (name for name in result.places if name not in found and name in finding.coordinates)
    own = (f"{name}={finding.coordinates[name]}" for name in places)
    return "/".join(str(part) for part in (*place, *own) if part is not None)
