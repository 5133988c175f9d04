"""evenhand audits decision systems for fairness, with statistics you can defend.

The public names are loaded on first use, so that `import evenhand` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand._version import __version__
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from evenhand import datasets, models, study, testing
    from evenhand.audits.agreement import AgreementResult, agreement
    from evenhand.audits.classes import ClassesResult, classes
    from evenhand.audits.disagreement import DisagreementResult, disagreement
    from evenhand.audits.effort import EffortResult, effort
    from evenhand.audits.improvability import ImprovabilityResult, improvability
    from evenhand.audits.paired import PairedResult, paired
    from evenhand.audits.parity import ParityResult, parity
    from evenhand.audits.ranking import RankingResult, ranking
    from evenhand.audits.reliability import ReliabilityResult, reliability
    from evenhand.evidence.comparison import Comparison, compare
    from evenhand.models import fitted
    from evenhand.run.audit import Audit
    from evenhand.run.auditing import audit
    from evenhand.table import Prediction, Table

__all__ = [
    "AgreementResult",
    "Audit",
    "ClassesResult",
    "Comparison",
    "DisagreementResult",
    "EffortResult",
    "EvenhandError",
    "ImprovabilityResult",
    "PairedResult",
    "ParityResult",
    "Prediction",
    "RankingResult",
    "ReliabilityResult",
    "Table",
    "__version__",
    "agreement",
    "audit",
    "classes",
    "compare",
    "datasets",
    "disagreement",
    "effort",
    "fitted",
    "improvability",
    "models",
    "paired",
    "parity",
    "ranking",
    "reliability",
    "study",
    "testing",
]

_HOMES = {
    "AgreementResult": "evenhand.audits.agreement",
    "Audit": "evenhand.run.audit",
    "ClassesResult": "evenhand.audits.classes",
    "Comparison": "evenhand.evidence.comparison",
    "DisagreementResult": "evenhand.audits.disagreement",
    "EffortResult": "evenhand.audits.effort",
    "ImprovabilityResult": "evenhand.audits.improvability",
    "PairedResult": "evenhand.audits.paired",
    "ParityResult": "evenhand.audits.parity",
    "Prediction": "evenhand.table",
    "RankingResult": "evenhand.audits.ranking",
    "ReliabilityResult": "evenhand.audits.reliability",
    "Table": "evenhand.table",
    "agreement": "evenhand.audits.agreement",
    "audit": "evenhand.run.auditing",
    "classes": "evenhand.audits.classes",
    "compare": "evenhand.evidence.comparison",
    "disagreement": "evenhand.audits.disagreement",
    "effort": "evenhand.audits.effort",
    "fitted": "evenhand.models",
    "improvability": "evenhand.audits.improvability",
    "paired": "evenhand.audits.paired",
    "parity": "evenhand.audits.parity",
    "ranking": "evenhand.audits.ranking",
    "reliability": "evenhand.audits.reliability",
}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "models", "study", "testing"):
        return import_module(f"evenhand.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
