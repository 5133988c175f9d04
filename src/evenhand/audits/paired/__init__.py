"""Paired tests: comparison of a system's answers to questions that differ only in the person."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

if TYPE_CHECKING:
    from evenhand.audits.paired.audit import paired
    from evenhand.audits.paired.result import PairedResult
    from evenhand.audits.paired.spec import PairedSpec

__all__ = ["AUDIT", "PairedResult", "PairedSpec", "paired"]

AUDIT = AuditDescriptor(
    name="paired",
    title="Paired tests",
    question="Does the system answer differently if only the person in the question changes?",
    order=70,
    evidence=("rates", "gaps"),
    spec="evenhand.audits.paired.spec:PairedSpec",
    metrics="evenhand.audits.paired.metrics:METRICS",
    result="evenhand.audits.paired.result:PairedResult",
    run="evenhand.audits.paired.audit:run",
    section="evenhand.audits.paired.section",
    charts="evenhand.audits.paired.section:CHARTS",
    messages="evenhand.audits.paired.messages:say",
    withhold="evenhand.audits.paired.withhold:WITHHOLD",
    transfer=TransferLimit("the answers, once", MOST_ROWS, REFUSED),
)

__getattr__ = lazy(__name__, {"PairedResult": "result", "PairedSpec": "spec", "paired": "audit"})
