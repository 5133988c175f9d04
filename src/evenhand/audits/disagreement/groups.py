"""The compared groups of a grouping, the answers on their cases, and their resampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.disagreement.gather import Panel
from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.groups import largest_first
from evenhand.core.records import LeftOut
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import data_rng
from evenhand.stats.feedback import AGREE, DISAGREE, TOLERANT, Answers, Feedback, FeedbackMetric, Resampled, numbered
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

LEAST_RESAMPLES = 200
MOST_NUMBERS = 1_000_000
MOST_PAIRS = 12_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouping:
    """One grouping of the cases.

    Parameters
    ----------
    name : the name of the grouping.
    groups : the groups with a value, in order.
    compared : (groups,) whether the group has enough cases to be compared.
    group : (cases,) the group of each case; -1 where missing.
    cases, answers : (groups,) the number of each group's cases and answers.
    missing : the number of answers on cases without a group.
    """

    name: str
    groups: tuple[str, ...]
    compared: tuple[bool, ...]
    group: IntArray
    cases: IntArray
    answers: IntArray
    missing: int

    @property
    def chosen(self) -> tuple[str, ...]:
        """The compared groups."""
        return tuple(group for group, chosen in zip(self.groups, self.compared, strict=True) if chosen)


def find_groupings(table: Table, panel: Panel, min_count: int) -> list[Grouping]:
    """Return the groupings of a table with the sizes of their groups, in the order of `largest_first`."""
    groupings, contents = [], _contents(panel)
    for name, columns in table.groupings.items():
        code, labels = panel.groups.joint(columns)
        size = np.bincount(code, minlength=len(labels))
        order = largest_first(size, code[panel.case], contents)
        by_size = [number for number in order.tolist() if labels[number] != MISSING]
        place = np.full(len(labels), -1)
        place[by_size] = np.arange(len(by_size))
        named, group, cases = tuple(labels[number] for number in by_size), place[code], size[by_size]
        by_answer = group[panel.case]
        answers = np.bincount(by_answer[by_answer >= 0], minlength=len(named))
        compared = tuple(bool(n >= min_count) for n in cases)
        groupings.append(
            Grouping(
                name=name,
                groups=named,
                compared=compared,
                group=group,
                cases=cases,
                answers=answers,
                missing=int((by_answer < 0).sum()),
            )
        )
    return groupings


def _contents(panel: Panel) -> list[IntArray | FloatArray]:
    """Return columns with data on each answer, without the names of critics and cases."""
    sizes = [np.bincount(code)[code] for code in (panel.critic, panel.case)]
    more = [column for column in (panel.truth, panel.weight) if column is not None]
    return [panel.answer, panel.label[panel.case], *sizes, *more]


def left_out_records(panel: Panel, groupings: Sequence[Grouping], min_count: int) -> Iterator[LeftOut]:
    """Yield the rows, cases and groups left out, with the reasons."""
    whole = [
        *panel.dropped,
        (panel.unanswered, say("unanswered")),
        (panel.repeated, say("repeated")),
        (panel.superseded, say("superseded")),
    ]
    for n, reason in whole:
        if n:
            yield LeftOut(n=n, reason=reason)
    for grouping in groupings:
        if grouping.missing:
            missing = shared("group_missing")
            yield LeftOut(grouping=grouping.name, group=MISSING, n=grouping.missing, reason=missing)
        for group, n, cases, compared in zip(
            grouping.groups, grouping.answers, grouping.cases, grouping.compared, strict=True
        ):
            if not compared:
                reason = say("small_group", n=int(cases), least=min_count)
                yield LeftOut(grouping=grouping.name, group=group, n=int(n), reason=reason)


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerSet:
    """Answers of all critics or a subset on the cases of a grouping, prepared for the kernels.

    Parameters
    ----------
    answers : the answers, with critics and cases numbered from 0.
    truth : the critics' own labels on the same cases, or None.
    critics : the number of each critic in the panel.
    grouping : the name of the grouping.
    groups, labels : the names of the groups, and the names of the labels.
    stakeholder : the kind of these critics, or None for all critics.
    """

    answers: Answers
    truth: Answers | None
    critics: IntArray
    grouping: str
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    stakeholder: str | None = None

    @property
    def n(self) -> int:
        """The number of answers."""
        return len(self.answers.answer)

    def of(self, chosen: BoolArray, stakeholder: str | None) -> AnswerSet:
        """Return the answers of the chosen critics, all of one kind."""
        keep = chosen[self.critics][self.answers.critic]
        return replace(
            self,
            answers=self.answers.where(keep),
            truth=None if self.truth is None else self.truth.where(keep),
            critics=self.critics[chosen[self.critics]],
            stakeholder=stakeholder,
        )

    def truth_for(self, metric: FeedbackMetric) -> Answers | None:
        """Return the critics' own labels.

        For a tolerant metric, return whether they are close to the system's labels.
        """
        if self.truth is None or metric not in TOLERANT:
            return self.truth
        feedback = Feedback(self.answers.feedback.labels, "agreement", self.answers.feedback.tolerance)
        far = np.abs(self.truth.answer - self.truth.label[self.truth.case]) > feedback.tolerance
        return replace(self.truth, answer=np.where(far, DISAGREE, AGREE), feedback=feedback)

    def why_not_compared(self, min_count: int) -> Message | None:
        """Return the reason why these answers cannot compare the groups, or None.

        Parameters
        ----------
        min_count : the minimum number of cases in each group.
        """
        if len(self.groups) < 2:
            return say("few_groups", grouping=self.grouping)
        cases = np.bincount(self.answers.group, minlength=self.answers.groups).tolist()
        for name, n in zip(self.groups, cases, strict=True):
            if n < min_count:
                return say("few_cases", n=n, group=name, least=min_count) if n else say("unanswered_group", group=name)
        return None


def answer_set(panel: Panel, grouping: Grouping, *, compared: bool = True) -> AnswerSet:
    """Return the answers on cases in the compared groups, or in all named groups."""
    wanted = np.array(grouping.compared, dtype=np.bool_) | (not compared)
    position = np.append(np.where(wanted, np.cumsum(wanted) - 1, -1), -1)  # the last is for the missing
    group = position[grouping.group]
    answers = Answers(
        critic=panel.critic,
        case=panel.case,
        answer=panel.answer,
        group=np.maximum(group, 0),
        label=panel.label,
        groups=max(int(wanted.sum()), 1),
        critics=len(panel.critics),
        feedback=panel.feedback,
        weight=panel.weight,
    )
    truth = None
    if panel.truth is not None:
        truth = replace(answers, answer=panel.truth, feedback=Feedback(len(panel.labels.names), "label"))
    critics = np.arange(len(panel.critics))
    keep = group[panel.case] >= 0
    if not keep.all():
        answers, truth = answers.where(keep), None if truth is None else truth.where(keep)
        critics = numbered(panel.critic[keep], len(panel.critics))[0]
    groups = tuple(name for name, chosen in zip(grouping.groups, wanted, strict=True) if chosen)
    return AnswerSet(
        answers=answers, truth=truth, critics=critics, grouping=grouping.name, groups=groups, labels=panel.labels.names
    )


@dataclass(frozen=True)
class Resampling:
    """The settings of one bootstrap: number of resamples, resampling units, and random generator.

    The smallest gap of each pair of groups is searched for in only `pair_draws` resamples.
    """

    draws: int
    pair_draws: int
    resampled: Resampled
    rng: np.random.Generator


def resampling_of(answers: Answers, spec: DisagreementSpec, purpose: int = 0) -> Resampling:
    """Return the resampling plan of answers, with fewer resamples if the computation would be too long.

    The plan depends on sizes, and the generator on the answers. Neither depends on the elapsed time, names or a seed,
    so the same data give the same numbers.

    Parameters
    ----------
    answers
        The answers.
    spec
        The settings.
    purpose
        The number of this bootstrap within the audit.
    """
    pairs, least = max(answers.groups * (answers.groups - 1) // 2, 1), min(LEAST_RESAMPLES, spec.resamples)
    draws = max(min(spec.resamples, MOST_NUMBERS // (pairs * answers.feedback.labels)), least)
    pair_draws = max(min(draws, MOST_PAIRS // pairs), least)
    what: Resampled = "cases" if answers.critics == 1 else "critics" if spec.answers.cases == "all" else "both"
    rng = data_rng(purpose, answers.answer, answers.critic)
    return Resampling(draws, pair_draws, what, rng)
