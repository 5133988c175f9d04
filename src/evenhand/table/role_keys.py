"""The keys that the roles of a table make of its columns: groups, the outcome and the decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw

from evenhand.table import keys
from evenhand.table.cells import ColumnSum, weight_sums
from evenhand.table.keys import Key, Kind
from evenhand.table.labels import labelled_key
from evenhand.table.roles import Prediction, Roles
from evenhand.table.validation import state_key


@dataclass(frozen=True)
class RoleKeys:
    """The keys and states of the columns that have a role.

    Parameters
    ----------
    roles : the roles; every column that they name is in `kinds`.
    kinds : the kind of every column.
    portable : whether expressions must be written as every database reads them.
    """

    roles: Roles
    kinds: Mapping[str, Kind]
    portable: bool

    def group(self, column: str) -> Key:
        """Return the key of one group column."""
        return labelled_key(self.roles, column, self.kinds[column], portable=self.portable)

    def groups(self) -> list[Key]:
        """Return the keys of all group columns."""
        return [self.group(column) for column in self.roles.group_columns]

    def states(self) -> list[Key]:
        """Return the keys of the outcome and of each model's decision."""
        states = []
        if self.roles.outcome is not None:
            states.append(("outcome", self.roles.outcome, self.outcome_state()))
        for name, prediction in self.roles.predictions.items():
            states.append((state_key(name), prediction.column, self.prediction_state(prediction)))
        return [Key(name, state, column=keys.discrete(column, self.kinds[column])) for name, column, state in states]

    def outcome_state(self) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each outcome; NO where there is none."""
        outcome = self.roles.outcome
        if outcome is None:
            return nw.lit(keys.NO)
        return keys.binary_state(outcome, self.kinds[outcome], self.roles.positive, portable=self.portable)

    def prediction_state(self, prediction: Prediction) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each row's decision."""
        return keys.prediction_state(prediction, self.kinds[prediction.column], portable=self.portable)

    def weights(self, exponent: int) -> list[ColumnSum]:
        """Return the survey weight and its square as sums; none without weights."""
        return [] if self.roles.weight is None else weight_sums(self.roles.weight, exponent)
