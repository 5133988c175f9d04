"""Agreement: agreement of raters about the same people, and its gaps between groups."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.agreement.audit import agreement
    from evenhand.audits.agreement.result import AgreementResult
    from evenhand.audits.agreement.spec import AgreementSpec

__all__ = ["AUDIT", "AgreementResult", "AgreementSpec", "agreement"]

AUDIT = AuditDescriptor(
    name="agreement",
    title="Agreement",
    question="Do raters agree about the same people, and do they agree less about some groups?",
    order=50,
    evidence=("reliability",),
    spec="evenhand.audits.agreement.spec:AgreementSpec",
    metrics="evenhand.audits.agreement.metrics:METRICS",
    result="evenhand.audits.agreement.result:AgreementResult",
    run="evenhand.audits.agreement.audit:run",
    section="evenhand.audits.agreement.section",
    charts="evenhand.audits.agreement.charts:CHARTS",
    messages="evenhand.audits.agreement.messages:say",
    power="evenhand.core.power:DRAWN",
    withhold="evenhand.audits.agreement.withhold:WITHHOLD",
    transfer="evenhand.audits.agreement.gather:TRANSFER",
)

__getattr__ = lazy(
    __name__,
    {
        "AgreementResult": "result",
        "AgreementSpec": "spec",
        "agreement": "audit",
    },
)
