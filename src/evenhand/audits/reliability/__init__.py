"""Reliability: when the inputs contain mistakes, whose result suffers more?"""

from evenhand.audits.reliability.audit import reliability
from evenhand.audits.reliability.noise import Noise
from evenhand.audits.reliability.result import ReliabilityResult
from evenhand.audits.reliability.spec import Mitigation, ReliabilitySpec, Scoring

__all__ = ["Mitigation", "Noise", "ReliabilityResult", "ReliabilitySpec", "Scoring", "reliability"]
