"""Effort: do people who worked equally hard from where they started get equal treatment?"""

from evenhand.audits.effort.audit import effort, person_scores
from evenhand.audits.effort.result import EffortResult
from evenhand.audits.effort.spec import EffortSpec

__all__ = ["EffortResult", "EffortSpec", "effort", "person_scores"]
