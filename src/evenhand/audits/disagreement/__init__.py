"""Disagreement: what do the people affected think, when all they can say is "I agree" or "I disagree"?"""

from evenhand.audits.disagreement.audit import disagreement
from evenhand.audits.disagreement.result import DisagreementResult
from evenhand.audits.disagreement.spec import Answers, DisagreementSpec

__all__ = ["Answers", "DisagreementResult", "DisagreementSpec", "disagreement"]
