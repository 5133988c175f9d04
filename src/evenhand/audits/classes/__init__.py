"""Classes: comparison of decisions with three or more values, such as hired, invited and rejected."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

if TYPE_CHECKING:
    from evenhand.audits.classes.audit import classes
    from evenhand.audits.classes.result import ClassesResult
    from evenhand.audits.classes.spec import ClassesSpec

__all__ = ["AUDIT", "ClassesResult", "ClassesSpec", "classes"]

AUDIT = AuditDescriptor(
    name="classes",
    title="Classes",
    question="Are groups put into the same classes equally often, and equally often wrongly?",
    order=12,
    evidence=("rates", "gaps"),
    spec="evenhand.audits.classes.spec:ClassesSpec",
    metrics="evenhand.audits.classes.metrics:METRICS",
    result="evenhand.audits.classes.result:ClassesResult",
    run="evenhand.audits.classes.audit:run",
    section="evenhand.audits.classes.section",
    charts="evenhand.audits.classes.section:CHARTS",
    messages="evenhand.audits.classes.messages:say",
    withhold="evenhand.audits.classes.withhold:WITHHOLD",
    transfer=TransferLimit("the classes, once", MOST_ROWS, REFUSED),
)

__getattr__ = lazy(__name__, {"ClassesResult": "result", "ClassesSpec": "spec", "classes": "audit"})
