"""Rankings: comparison of groups' shortlisting, exposure and ranks within lists."""

from typing import TYPE_CHECKING

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.lazy import lazy
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

if TYPE_CHECKING:
    from evenhand.audits.ranking.audit import ranking
    from evenhand.audits.ranking.result import RankingResult
    from evenhand.audits.ranking.spec import RankingSpec

__all__ = ["AUDIT", "RankingResult", "RankingSpec", "ranking"]

AUDIT = AuditDescriptor(
    name="ranking",
    title="Rankings",
    question="Are groups shortlisted, seen and ranked alike in the same list?",
    order=15,
    evidence=("rates", "gaps"),
    spec="evenhand.audits.ranking.spec:RankingSpec",
    metrics="evenhand.audits.ranking.metrics:METRICS",
    result="evenhand.audits.ranking.result:RankingResult",
    run="evenhand.audits.ranking.audit:run",
    section="evenhand.audits.ranking.section",
    charts="evenhand.audits.ranking.section:CHARTS",
    messages="evenhand.audits.ranking.messages:say",
    withhold="evenhand.audits.ranking.withhold:WITHHOLD",
    transfer=TransferLimit("the scores, once for each model", MOST_ROWS, REFUSED),
)

__getattr__ = lazy(__name__, {"RankingResult": "result", "RankingSpec": "spec", "ranking": "audit"})
