"""Reliability: comparison of the effect of mistakes in the inputs between groups."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.reliability.audit import reliability
    from evenhand.audits.reliability.noise import Noise
    from evenhand.audits.reliability.result import ReliabilityResult
    from evenhand.audits.reliability.spec import Mitigation, ReliabilitySpec, Scoring

__all__ = ["AUDIT", "Mitigation", "Noise", "ReliabilityResult", "ReliabilitySpec", "Scoring", "reliability"]

AUDIT = AuditDescriptor(
    name="reliability",
    title="Reliability",
    question="When the inputs contain mistakes, whose result suffers more?",
    order=40,
    evidence=("robustness", "reliability"),
    spec="evenhand.audits.reliability.spec:ReliabilitySpec",
    metrics="evenhand.audits.reliability.metrics:METRICS",
    result="evenhand.audits.reliability.result:ReliabilityResult",
    run="evenhand.audits.reliability.audit:run",
    section="evenhand.audits.reliability.section",
    charts="evenhand.audits.reliability.charts:CHARTS",
    messages="evenhand.audits.reliability.messages:say",
    power="evenhand.core.power:DRAWN",
    withhold="evenhand.audits.reliability.withhold:WITHHOLD",
    transfer="evenhand.audits.reliability.gather:TRANSFER",
)

__getattr__ = lazy(
    __name__,
    {
        "Mitigation": "spec",
        "Noise": "noise",
        "ReliabilityResult": "result",
        "ReliabilitySpec": "spec",
        "Scoring": "spec",
        "reliability": "audit",
    },
)
