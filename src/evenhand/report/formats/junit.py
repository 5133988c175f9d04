"""Thresholds as test cases, for a build server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from evenhand.messages import showable
from evenhand.report.formats import Files

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return a test case for every threshold: broken is a failure, undecided is skipped, with the finding's text."""
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    broken = sum(finding.verdict == "does_not_meet" for finding in judged)
    undecided = sum(finding.verdict == "insufficient_evidence" for finding in judged)
    counts = {"tests": str(len(judged)), "failures": str(broken), "skipped": str(undecided), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": showable(audit.config.report.title), **counts})
    for finding in judged:
        name = f"{finding.headline} Limit: {finding.threshold}."
        case = ElementTree.SubElement(suite, "testcase", {"classname": finding.audit, "name": showable(name)})
        if finding.verdict == "does_not_meet":
            ElementTree.SubElement(case, "failure", {"message": showable(finding.headline.text)}).text = showable(
                finding.text
            )
        elif finding.verdict == "insufficient_evidence":
            ElementTree.SubElement(case, "skipped", {"message": showable(str(finding.reason or finding.headline))})
    ElementTree.indent(suite, " ")
    return {"junit.xml": ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)}
