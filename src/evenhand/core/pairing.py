"""Two audits of the same people: what an audit must be able to say of each person, to compare it with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.decided import DecidedRows

Influence: TypeAlias = Callable[[Any, DecidedRows, str, BoolArray, str], tuple[float, FloatArray] | None]
"""Returns the value of a metric in a group, and what each person adds to its error.

It takes the settings of the audit, all people, the model, who is in the group, and the metric; None where it cannot
say. People outside the group add 0.
"""
