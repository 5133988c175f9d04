"""Parity: differences between groups in scores, decisions and errors, with their uncertainty."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy

if TYPE_CHECKING:
    from evenhand.audits.parity.audit import parity
    from evenhand.audits.parity.result import ParityResult
    from evenhand.audits.parity.spec import ParitySpec

__all__ = ["AUDIT", "ParityResult", "ParitySpec", "parity"]

AUDIT = AuditDescriptor(
    name="parity",
    title="Parity",
    question="Do groups get different outcomes, and how sure are we?",
    order=10,
    evidence=("rates", "gaps"),
    spec="evenhand.audits.parity.spec:ParitySpec",
    metrics="evenhand.audits.parity.metrics:ALL_METRICS",
    result="evenhand.audits.parity.result:ParityResult",
    run="evenhand.audits.parity.audit:run",
    section="evenhand.audits.parity.section",
    charts="evenhand.audits.parity.charts:CHARTS",
    messages="evenhand.audits.parity.messages:say",
    reweight="evenhand.audits.parity.reweight:ParityReweighter",
    pair="evenhand.audits.parity.influence:influence",
    power="evenhand.audits.parity.power:POWER",
    counts="evenhand.audits.parity.counts:COUNTS",
    withhold="evenhand.audits.parity.withhold:WITHHOLD",
    transfer="evenhand.audits.parity.gather:TRANSFER",
    propose="evenhand.audits.parity.propose:PROPOSE",
)

__getattr__ = lazy(
    __name__,
    {
        "ParityResult": "result",
        "ParitySpec": "spec",
        "parity": "audit",
    },
)
