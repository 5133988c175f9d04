"""evenhand audits decision systems for fairness, with statistics you can defend.

The public names are loaded on first use, so that `import evenhand` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand._version import __version__
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from evenhand import datasets, models
    from evenhand.audits.effort import EffortResult, effort
    from evenhand.audits.parity import ParityResult, parity
    from evenhand.report import Audit, audit
    from evenhand.table import Prediction, Table

__all__ = [
    "Audit",
    "EffortResult",
    "EvenhandError",
    "ParityResult",
    "Prediction",
    "Table",
    "__version__",
    "audit",
    "datasets",
    "effort",
    "models",
    "parity",
]

_HOMES = {
    "Audit": "evenhand.report",
    "EffortResult": "evenhand.audits.effort",
    "ParityResult": "evenhand.audits.parity",
    "Prediction": "evenhand.table",
    "Table": "evenhand.table",
    "audit": "evenhand.report",
    "effort": "evenhand.audits.effort",
    "parity": "evenhand.audits.parity",
}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "models"):
        return import_module(f"evenhand.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
