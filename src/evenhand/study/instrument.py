"""The design of an effort study: sets of five people to compare, chosen from a table of trajectories.

A set is a reference K and four others: A alike in trajectory and aggregate, B different in trajectory only, C different
in aggregate only, D different in both. As in the paper, A is a copy of K whose first time step is slightly changed, and
is marked as such; all others are real people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from evenhand.errors import ConfigError, DataError, require_choice
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.stats.effort import trajectory_measure
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.messages import say
from evenhand.study.sets import Instrument, SetQuality, SetSettings, Subject, SubjectSet
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

_TRIES = 500
"""The number of people of a group tried as K before the next group; each try scans all people."""
_DIFFERENT = {"A": (False, False), "B": (True, False), "C": (False, True), "D": (True, True)}


def design_sets(
    table: Table, trajectory: Sequence[str], *, balance: str | None = None, model: str | None = None, **settings: Any
) -> Instrument:
    """Choose sets of five people to compare.

    The K's come from the groups in turn; the others come from the groups with the fewest people in the sets. Nobody is
    in more than one set. The choice among eligible people is random, by the seed; of several draws the one with the
    least correlated distances is kept.

    Parameters
    ----------
    table
        The people, with an id; groups to balance over, and scores to show for K, are optional.
    trajectory
        Columns of one feature over time, earliest first; at least three.
    balance
        Group column to balance over; by default the first.
    model
        The model whose score is shown for K; by default the only model, or none.
    **settings
        The fields of `SetSettings`: the number of sets, the limits of similar and different, the seed.

    Raises
    ------
    DataError
        If the table does not allow as many sets as requested; the message names the reason.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table(eh.datasets.make_households(2_000, seed=1), id="household", groups="race")
    >>> made = eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=6, step=100)
    >>> made, made.sets[0].subjects[1].perturbed
    (<Instrument: 6 sets of five over income_2019, income_2020, income_2021, income_2022>, True)
    """
    spec = SetSettings.parse(settings, "the arguments of design_sets()")
    pool, notes = _pool(table, trajectory, balance, model, spec)
    chooser = _Chooser(pool, spec)
    sets = tuple(chooser.next_set(str(number)) for number in range(1, spec.sets + 1))
    return Instrument(
        sets=sets,
        settings=spec,
        trajectory=tuple(trajectory),
        unit_trajectory=pool.unit[0],
        unit_aggregate=pool.unit[1],
        notes=notes,
    )


@dataclass(frozen=True, kw_only=True)
class _Pool:
    """The eligible people: values, measures (people, 2) in standard deviations, groups and scores."""

    ids: tuple[str, ...]
    values: FloatArray
    measures: FloatArray
    unit: tuple[float, float]
    groups: tuple[str, ...]
    codes: Any
    scores: FloatArray | None


def _pool(
    table: Table, trajectory: Sequence[str], balance: str | None, model: str | None, spec: SetSettings
) -> tuple[_Pool, tuple[Message, ...]]:
    if len(trajectory) < 3:
        raise ConfigError("`trajectory` needs at least 3 time steps; got {number}.", number=len(trajectory))
    if table.roles.id is None:
        raise ConfigError("the table names no id column; sets must say whom they show: give `id='...'` to Table.")
    by = _balanced_column(table.roles.group_columns, balance)
    rows = table.person_rows(list(trajectory))
    values = np.column_stack([rows.numbers[name] for name in trajectory])
    codes, labels = rows.groups.joint([column_key(by)]) if by else (np.zeros(len(values), dtype=np.int64), ("",))
    keep, notes = _usable(values, np.array([label == MISSING for label in labels])[codes])
    raw, unit = _measures(values[keep], spec)
    scores = _scores(rows.scores, model)
    ids, units = tuple(compress(rows.ids or (), keep)), (float(unit[0]), float(unit[1]))
    groups = labels if by else ()
    kept_scores = None if scores is None else scores[keep]
    return _Pool(
        ids=ids,
        values=values[keep],
        measures=raw / unit,
        unit=units,
        groups=groups,
        codes=codes[keep],
        scores=kept_scores,
    ), notes


def _balanced_column(columns: Sequence[str], balance: str | None) -> str | None:
    """Return the group column to balance over; None if the table has no groups."""
    if balance is not None:
        require_choice("balance", balance, columns)
    return balance or (columns[0] if columns else None)


def _usable(values: FloatArray, unknown: BoolArray) -> tuple[BoolArray, tuple[Message, ...]]:
    """Return a mask of people with a complete trajectory and a known group, and notes on the rest."""
    whole: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
    notes = tuple(
        say(key, n=int(left_out.sum()))
        for left_out, key in ((~whole, "incomplete_trajectory"), (whole & unknown, "unknown_group"))
        if left_out.any()
    )
    keep: BoolArray = whole & ~unknown
    if keep.sum() < 5:
        raise DataError(
            "a set needs five people; the table holds {people} with a whole trajectory.", people=int(keep.sum())
        )
    return keep, notes


def _measures(values: FloatArray, spec: SetSettings) -> tuple[FloatArray, FloatArray]:
    """Return the measure and the total of every trajectory, shape (people, 2), and their standard deviations."""
    raw = np.column_stack([trajectory_measure(values, spec.measure, spec.times), values.sum(axis=1)])
    unit = raw.std(axis=0)
    if not (unit > 0).all():
        raise DataError(
            "all {which} are equal; there is nothing to compare.", which="trajectories" if unit[0] == 0 else "totals"
        )
    return raw, unit


def _scores(scores: Mapping[str, FloatArray], model: str | None) -> FloatArray | None:
    if model is None:
        return next(iter(scores.values())) if len(scores) == 1 else None
    require_choice("model", model, scores)
    return scores[model]


class _Chooser:
    """Chooses sets one after the other, each person at most once and groups in turn."""

    def __init__(self, pool: _Pool, spec: SetSettings) -> None:
        self.pool, self.spec = pool, spec
        self.rng = np.random.default_rng(spec.seed)
        self.free = np.ones(len(pool.ids), dtype=bool)
        size = max(len(pool.groups), 1)
        self.as_reference, self.held = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self.missing = dict.fromkeys(("A", "B", "C", "D"), 0)

    def next_set(self, name: str) -> SubjectSet:
        """Return the next set; raise with the missing roles if none is possible."""
        order = np.lexsort((self.rng.random(self.as_reference.size), self.held, self.as_reference))
        for group in order:
            people = self.rng.permutation(np.flatnonzero(self.free & (self.pool.codes == group)))
            for person in people[:_TRIES]:
                others = self._around(int(person))
                if others is not None:
                    return self._taken(name, int(person), *others)
        lacking = ", ".join(f"{role} {times:,} times" for role, times in self.missing.items() if times)
        hint = "" if max(self.missing, key=lambda role: self.missing[role]) != "A" else self._hint_for_copies()
        raise DataError(
            "set {name} of {sets} cannot be made: nobody fitting was left as {roles}. Widen the limits of "
            "similar and different, ask for fewer sets, or bring more people.{hint}",
            name=name,
            sets=self.spec.sets,
            roles=lacking or "K",
            hint=hint,
        )

    def _hint_for_copies(self) -> str:
        """Return advice that compares the effect of one `step` on the copy A with the limits."""
        spec = self.spec
        change = np.zeros(self.pool.values.shape[1])
        change[0] = spec.step
        trajectory, aggregate = np.abs(self._measured(change))
        return (
            " A is a copy of K with its first value changed by at least `step`; that alone moves the trajectory by "
            f"{trajectory:.2g} and the total by {aggregate:.2g} standard deviations, where `similar_trajectory` is "
            f"{spec.similar_trajectory:g} and `similar_aggregate` {spec.similar_aggregate:g}. Raise these, make `step` "
            "or `perturb` smaller, or use measure='acceleration', which the first value does not enter."
        )

    def _around(self, person: int) -> tuple[FloatArray, dict[str, int]] | None:
        """Return A's values and the people in the roles B, C and D; None if a role cannot be filled."""
        copy = self._copy(person)
        if copy is None:
            self.missing["A"] += 1
            return None
        fitting = {}
        for role in ("B", "C", "D"):  # no person fits two roles
            here = self.free & self._fits(self.pool.measures, person, role)
            here[person] = False
            if not here.any():
                self.missing[role] += 1
                return None
            fitting[role] = np.flatnonzero(here)
        drawn = [self._draw(person, fitting) for _ in range(self.spec.draws)]
        return copy, min(drawn, key=lambda others: abs(self._crossing(person, copy, others)))

    def _draw(self, person: int, fitting: Mapping[str, Any]) -> dict[str, int]:
        """Draw one eligible person for each of the roles B, C and D."""
        others: dict[str, int] = {}
        for role, people in fitting.items():
            others[role] = self._pick(people, [person, *others.values()])
        return others

    def _crossing(self, person: int, copy: FloatArray, others: Mapping[str, int]) -> float:
        """Return the correlation of the two distances to K over the four pairs."""
        measures = np.vstack([self._measured(copy), self.pool.measures[list(others.values())]])
        return crossing_of(np.abs(measures - self.pool.measures[person])) or 0.0

    def _fits(self, measures: FloatArray, person: int, role: str) -> BoolArray:
        """Return a mask of people whose distances from K in trajectory and aggregate fit a role."""
        reference, spec = self.pool.measures[person], self.spec
        distance = np.abs(measures - reference)
        turned = measures[:, 0] * reference[0] < 0
        far_trajectory, far_aggregate = _DIFFERENT[role]
        if far_trajectory:
            fits = (distance[:, 0] >= spec.different_trajectory) & (turned | (not spec.opposite))
        else:
            fits = (distance[:, 0] <= spec.similar_trajectory) & ~(turned & spec.opposite)
        if far_aggregate:
            return np.asarray(fits & (distance[:, 1] >= spec.different_aggregate))
        return np.asarray(fits & (distance[:, 1] <= spec.similar_aggregate))

    def _copy(self, person: int) -> FloatArray | None:
        """Return K's values with the first time step slightly changed, still similar in both; None if impossible."""
        spec, values = self.spec, self.pool.values[person]
        change = max(spec.step, round(spec.perturb * abs(values[0]) / spec.step) * spec.step)
        for sign in self.rng.permutation([-1.0, 1.0]):
            copy: FloatArray = values.copy()
            copy[0] += sign * change
            if copy[0] < 0 <= values.min():
                continue
            if self._fits(self._measured(copy)[np.newaxis], person, "A")[0]:
                return copy
        return None

    def _measured(self, values: FloatArray) -> FloatArray:
        slope = float(trajectory_measure(values[np.newaxis], self.spec.measure, self.spec.times)[0])
        return np.array([slope, values.sum()]) / self.pool.unit

    def _pick(self, people: IntArray, chosen: list[int]) -> int:
        """Return a random person from the group with the fewest people in the sets."""
        held = self.held + np.bincount(self.pool.codes[chosen], minlength=self.held.size)
        of_group = held[self.pool.codes[people]]
        return int(self.rng.choice(people[of_group == of_group.min()]))

    def _taken(self, name: str, person: int, copy: FloatArray, others: dict[str, int]) -> SubjectSet:
        """Remove five people from the pool and return the set of them."""
        real = [person, *others.values()]
        self.free[real] = False
        self.as_reference[self.pool.codes[person]] += 1
        np.add.at(self.held, self.pool.codes[real], 1)
        subjects = [self._subject("K", person), self._subject("A", person, copy)]
        subjects += [self._subject(role, other) for role, other in others.items()]
        return SubjectSet(name, tuple(subjects), _quality(subjects, self.spec))

    def _subject(self, role: str, person: int, copy: FloatArray | None = None) -> Subject:
        pool = self.pool
        values = pool.values[person] if copy is None else copy
        measures = pool.measures[person] if copy is None else self._measured(copy)
        score = None if pool.scores is None or role != "K" else float(pool.scores[person])
        group = pool.groups[pool.codes[person]] if pool.groups else None
        shown, slope, total = tuple(map(float, values)), float(measures[0]), float(measures[1])
        return Subject(
            role=role,
            id=pool.ids[person],
            group=group,
            values=shown,
            perturbed=copy is not None,
            trajectory=slope,
            aggregate=total,
            score=score,
        )


def _quality(subjects: Sequence[Subject], spec: SetSettings) -> SetQuality:
    reference, others = subjects[0], subjects[1:]
    apart = np.array(
        [[abs(s.trajectory - reference.trajectory), abs(s.aggregate - reference.aggregate)] for s in others]
    )
    far = np.array([_DIFFERENT[s.role] for s in others])
    similar, different = np.where(far, -np.inf, apart).max(axis=0), np.where(far, apart, np.inf).min(axis=0)
    near_limit = np.array([spec.similar_trajectory, spec.similar_aggregate])
    far_limit = np.array([spec.different_trajectory, spec.different_aggregate])
    margin = min(float(((near_limit - similar) / near_limit).min()), float(((different - far_limit) / far_limit).min()))
    return SetQuality(
        similar_trajectory=float(similar[0]),
        different_trajectory=float(different[0]),
        similar_aggregate=float(similar[1]),
        different_aggregate=float(different[1]),
        margin=margin,
        crossing=crossing_of(apart),
    )


def crossing_of(apart: FloatArray) -> float | None:
    """Return the correlation of the two distances to K over the four pairs (4, 2); None if one is constant.

    Examples
    --------
    >>> near_and_far = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> crossing_of(near_and_far), round(crossing_of(near_and_far**2 + [[0, 0], [0, 0], [0, 0], [4, 4]]) or 0, 2)
    (0.0, 0.94)
    """
    spread = apart - apart.mean(axis=0)
    norm = float(np.sqrt((spread**2).sum(axis=0).prod()))
    return finite((spread[:, 0] @ spread[:, 1]) / norm) if norm > 0 else None
