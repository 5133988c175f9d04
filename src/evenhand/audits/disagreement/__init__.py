"""Disagreement: fairness as seen by affected people who answer "I agree" or "I disagree"."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.disagreement.audit import disagreement
    from evenhand.audits.disagreement.result import DisagreementResult
    from evenhand.audits.disagreement.spec import Answers, DisagreementSpec

__all__ = ["AUDIT", "Answers", "DisagreementResult", "DisagreementSpec", "disagreement"]

AUDIT = AuditDescriptor(
    name="disagreement",
    title="Disagreement",
    question="What do the people affected think, when all they can say is “I agree” or “I disagree”?",
    order=30,
    evidence=("gaps", "voices"),
    spec="evenhand.audits.disagreement.spec:DisagreementSpec",
    metrics="evenhand.audits.disagreement.metrics:METRICS",
    result="evenhand.audits.disagreement.result:DisagreementResult",
    run="evenhand.audits.disagreement.audit:run",
    section="evenhand.audits.disagreement.section",
    charts="evenhand.audits.disagreement.charts:CHARTS",
    messages="evenhand.audits.disagreement.messages:say",
    power="evenhand.core.power:SCALED",
    withhold="evenhand.audits.disagreement.withhold:WITHHOLD",
    transfer="evenhand.audits.disagreement.gather:TRANSFER",
    live="evenhand.audits.disagreement.audit:LIVE",
)

__getattr__ = lazy(
    __name__,
    {
        "Answers": "spec",
        "DisagreementResult": "result",
        "DisagreementSpec": "spec",
        "disagreement": "audit",
    },
)
