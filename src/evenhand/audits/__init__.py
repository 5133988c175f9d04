"""The audits. Each has the same rooms: spec, audit (Table + Spec -> Result), result, charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenhand.audits.agreement.audit import run as run_agreement
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.disagreement.audit import run as run_disagreement
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.audits.effort.audit import run as run_effort
from evenhand.audits.effort.spec import EffortSpec
from evenhand.audits.improvability.audit import run as run_improvability
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.parity.audit import run as run_parity
from evenhand.audits.parity.spec import ParitySpec
from evenhand.audits.reliability.audit import run as run_reliability
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.result import Result
from evenhand.core.spec import Spec
from evenhand.table.table import Table


@dataclass(frozen=True)
class Entry:
    """An audit as `audit.toml` knows it: its settings, and the function that runs them on a table."""

    spec: type[Spec]
    run: Callable[[Table, Any], Result]


REGISTRY: dict[str, Entry] = {
    "parity": Entry(ParitySpec, run_parity),
    "effort": Entry(EffortSpec, run_effort),
    "disagreement": Entry(DisagreementSpec, run_disagreement),
    "reliability": Entry(ReliabilitySpec, run_reliability),
    "agreement": Entry(AgreementSpec, run_agreement),
    "improvability": Entry(ImprovabilitySpec, run_improvability),
}
"""The audits by name, in the order in which a report shows them."""
