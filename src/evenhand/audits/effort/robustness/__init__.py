"""Robustness: would another honest analyst, with other defensible choices, have found the same?"""

from evenhand.audits.effort.robustness.choices import Choices

__all__ = ["Choices"]
