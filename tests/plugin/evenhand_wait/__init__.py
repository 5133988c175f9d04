"""How long do groups wait? A small audit in a package of its own, as a stranger would write it."""

from evenhand.core.descriptor import AuditDescriptor
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

AUDIT = AuditDescriptor(
    name="wait",
    title="Waiting",
    question="Do some groups wait longer than others, and how sure are we?",
    evidence=("gaps",),
    spec="evenhand_wait.spec:WaitSpec",
    metrics="evenhand_wait.metrics:METRICS",
    result="evenhand_wait.result:WaitResult",
    run="evenhand_wait.audit:run",
    section="evenhand_wait.section",
    charts="evenhand_wait.section:CHARTS",
    messages="evenhand_wait.messages:say",
    transfer=TransferLimit("everybody's days, once", MOST_ROWS, REFUSED),
)
