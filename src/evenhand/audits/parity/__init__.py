"""Parity: do groups get different outcomes, and how sure are we?"""

from evenhand.audits.parity.audit import parity
from evenhand.audits.parity.result import ParityResult
from evenhand.audits.parity.spec import ParitySpec

__all__ = ["ParityResult", "ParitySpec", "parity"]
