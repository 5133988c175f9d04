"""Improvability: could the decisions be fairer without being worse at their job?"""

from evenhand.audits.improvability.audit import improvability
from evenhand.audits.improvability.result import ImprovabilityResult
from evenhand.audits.improvability.rules import TrainingRows
from evenhand.audits.improvability.spec import ImprovabilitySpec, Plan, Test

__all__ = ["ImprovabilityResult", "ImprovabilitySpec", "Plan", "Test", "TrainingRows", "improvability"]
