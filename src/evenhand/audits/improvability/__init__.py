"""Improvability: tests whether decisions could be fairer without being less accurate."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.improvability.audit import improvability
    from evenhand.audits.improvability.result import ImprovabilityResult
    from evenhand.audits.improvability.rules import TrainingRows
    from evenhand.audits.improvability.spec import ImprovabilitySpec, Plan, Test

__all__ = ["AUDIT", "ImprovabilityResult", "ImprovabilitySpec", "Plan", "Test", "TrainingRows", "improvability"]

AUDIT = AuditDescriptor(
    name="improvability",
    title="Improvability",
    question="Could the decisions be fairer without being worse at their job?",
    order=60,
    evidence=("alternatives",),
    remedy=True,
    spec="evenhand.audits.improvability.spec:ImprovabilitySpec",
    metrics="evenhand.audits.improvability.metrics:METRICS",
    result="evenhand.audits.improvability.result:ImprovabilityResult",
    run="evenhand.audits.improvability.audit:run",
    section="evenhand.audits.improvability.section",
    charts="evenhand.audits.improvability.charts:CHARTS",
    messages="evenhand.audits.improvability.messages:say",
    power="evenhand.audits.improvability.power:POWER",
    withhold="evenhand.audits.improvability.withhold:WITHHOLD",
    transfer="evenhand.audits.improvability.gather:TRANSFER",
)

__getattr__ = lazy(
    __name__,
    {
        "ImprovabilityResult": "result",
        "ImprovabilitySpec": "spec",
        "Plan": "spec",
        "Test": "spec",
        "TrainingRows": "rules",
        "improvability": "audit",
    },
)
