"""The database of a study (participants, answers, researchers), on SQLite or PostgreSQL."""

from evenhand.errors import require_extra

for _module in ("sqlalchemy", "psycopg"):
    require_extra(_module, "study", "the database of a study")

from evenhand.study.store.records import (  # noqa: E402
    Action,
    BonusRow,
    Counts,
    PageCounts,
    Participant,
    QuotaFull,
    Session,
    StoreError,
    StudyClosed,
    StudyFull,
)
from evenhand.study.store.study import (  # noqa: E402
    Store,
    Study,
    backup,
    open_store,
)

__all__ = [
    "Action",
    "BonusRow",
    "Counts",
    "PageCounts",
    "Participant",
    "QuotaFull",
    "Session",
    "Store",
    "StoreError",
    "Study",
    "StudyClosed",
    "StudyFull",
    "backup",
    "open_store",
]
