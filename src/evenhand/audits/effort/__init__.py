"""Effort: comparison of the scores of people with equal effort."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.effort.audit import effort, person_scores
    from evenhand.audits.effort.result import EffortResult
    from evenhand.audits.effort.spec import EffortSpec

__all__ = ["AUDIT", "EffortResult", "EffortSpec", "effort", "person_scores"]

AUDIT = AuditDescriptor(
    name="effort",
    title="Effort",
    question="Do people who worked equally hard from where they started get equal treatment?",
    order=20,
    evidence=("gaps",),
    spec="evenhand.audits.effort.spec:EffortSpec",
    metrics="evenhand.audits.effort.metrics:METRICS",
    result="evenhand.audits.effort.result:EffortResult",
    run="evenhand.audits.effort.audit:run",
    section="evenhand.audits.effort.section",
    charts="evenhand.audits.effort.charts:CHARTS",
    messages="evenhand.audits.effort.messages:say",
    reweight="evenhand.audits.effort.reweight:EffortReweighter",
    power="evenhand.core.power:DRAWN",
    withhold="evenhand.audits.effort.withhold:WITHHOLD",
    transfer="evenhand.audits.effort.gather:TRANSFER",
    propose="evenhand.audits.effort.propose:PROPOSE",
)

__getattr__ = lazy(
    __name__,
    {
        "EffortResult": "result",
        "EffortSpec": "spec",
        "effort": "audit",
        "person_scores": "audit",
    },
)
