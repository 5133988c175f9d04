"""Disagreement studies: the assignment of cases to critics, and simulated critics to try it out.

A simulated critic disagrees with the decision on a case with log odds logit(rate of the case's group) + the critic's
leaning + the common opinion of the case. Disagreement may have a direction: too high or too low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenhand.errors import ConfigError, DataError, count
from evenhand.messages import Message
from evenhand.settings import Settings
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.messages import say
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import FEEDBACK, as_text, read_columns, require_known
from evenhand.table.frames import build_frame

_TRIES = 200
_REASONS = {
    "agree": ("Looks right to me.", "I would have decided the same."),
    "disagree": ("The decision does not fit the case.", "I see it differently."),
    "too_high": ("Too harsh for what is there.", "This is rated too high."),
    "too_low": ("Not strict enough.", "This is rated too low."),
}


class CaseSettings(Settings):
    """Settings of the assignment of cases to critics.

    Examples
    --------
    >>> CaseSettings().per_critic
    50
    """

    per_critic: int = Field(50, ge=1, description="Cases that each critic sees.")
    per_case: int = Field(20, ge=1, description="Critics that see each case.")
    cases: int | None = Field(None, ge=1, description="How many cases to use; by default as many as fit.")
    design: Literal["subsets", "spread"] = Field(
        "subsets", description="Fixed subsets, each shown to `per_case` critics, or a new deal for every critic."
    )
    cover: bool = Field(True, description="Whether every critic must see every group and every label.")
    seed: int = Field(0, ge=0, description="The same seed gives the same design.")


@dataclass(frozen=True)
class Cases:
    """The cases: their ids, and the group and label of each as indices into the sorted names."""

    ids: tuple[str, ...]
    group: IntArray
    label: IntArray
    group_names: list[str]
    label_names: list[str]


@dataclass(frozen=True)
class CoverRecord:
    """The fewest and the most cases of a group or label that any critic sees."""

    what: Literal["group", "label"]
    name: str
    cases: int
    fewest: int
    most: int


@dataclass(frozen=True, repr=False)
class Assignment:
    """The assignment of cases to critics.

    Parameters
    ----------
    critics : for each critic, the cases in display order.
    subsets : for each critic, the number of their subset, from 1.
    coverage : how many cases of each group and label a critic sees.
    settings : the settings of the assignment.
    notes : omitted cases, with the reason.
    """

    critics: tuple[tuple[str, ...], ...]
    subsets: tuple[int, ...]
    coverage: tuple[CoverRecord, ...]
    settings: CaseSettings
    notes: tuple[Message, ...]

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a row per critic and case: critic, subset, position and case."""
        rows = [
            (critic, subset, position, case)
            for critic, (cases, subset) in enumerate(zip(self.critics, self.subsets, strict=True), 1)
            for position, case in enumerate(cases, 1)
        ]
        names = ("critic", "subset", "position", "case")
        return build_frame({name: [row[column] for row in rows] for column, name in enumerate(names)}, backend)

    def __repr__(self) -> str:
        per_critic = count(self.settings.per_critic, "case")
        return f"<Assignment: {count(len(self.critics), 'critic')}, {per_critic} each, {self.settings.per_case} a case>"


def assign_cases(
    data: object,
    *,
    id: str,  # noqa: A002
    decision: str,
    groups: Sequence[str] | str = (),
    **settings: Any,
) -> Assignment:
    """Assign cases to critics: `per_critic` cases to each critic, `per_case` critics to each case.

    Cases are sorted by group and label, shuffled within, and dealt in turn, so that the numbers of cases of a group
    that two critics see differ by at most one. If the cases do not fill whole subsets, the rest is omitted evenly.

    Parameters
    ----------
    data : the cases: a data frame, a mapping of columns or a file.
    id, decision : the columns of case ids and of the system's decisions.
    groups : columns of the groups to cover; several columns are covered jointly.
    **settings : the fields of `CaseSettings`.

    Examples
    --------
    >>> cases = {"case": range(1_000), "label": ["high", "low"] * 500, "race": ["A"] * 600 + ["B"] * 400}
    >>> import evenhand as eh
    >>> eh.study.assign_cases(cases, id="case", decision="label", groups="race")
    <Assignment: 400 critics, 50 cases each, 20 a case>
    """
    spec = CaseSettings.parse(settings, "the arguments of assign_cases()")
    return deal_cases(read_cases(data, id, decision, (groups,) if isinstance(groups, str) else tuple(groups)), spec)


def deal_cases(cases: Cases, spec: CaseSettings) -> Assignment:
    """Assign cases to critics according to the settings."""
    group, label = cases.group, cases.label
    rng = np.random.default_rng(spec.seed)
    chosen, notes = _chosen(group, label, spec, rng)
    subsets = len(chosen) // spec.per_critic
    rounds = spec.per_case if spec.design == "spread" else 1
    deals = [_covering_deal(cases, chosen, subsets, spec, rng) for _ in range(rounds)]
    critics, numbers, seen = [], [], []
    for round_number in range(spec.per_case):
        deal = deals[round_number % len(deals)]
        for subset in range(subsets):
            held = rng.permutation(chosen[deal == subset])
            critics.append(tuple(cases.ids[case] for case in held))
            numbers.append(subset + 1 + (round_number * subsets if spec.design == "spread" else 0))
            seen.append(held)
    coverage = (
        *_coverage("group", group, cases.group_names, seen, chosen),
        *_coverage("label", label, cases.label_names, seen, chosen),
    )
    return Assignment(tuple(critics), tuple(numbers), coverage, spec, tuple(notes))


def read_cases(data: object, id_column: str, decision: str, groups: Sequence[str]) -> Cases:
    """Read the cases and check that each has a unique id and a decision."""
    columns, _ = read_columns(data)
    require_known((id_column, decision, *groups), columns, "column {name} is not in the cases")
    ids, labels = as_text(columns[id_column]), as_text(columns[decision])
    for name, values in ((id_column, ids), (decision, labels)):
        gone = int(sum(value is None for value in values))
        if gone:
            raise DataError(
                "column {name!r} of the cases is empty in {rows}; every case needs one.",
                name=name,
                rows=count(gone, "row"),
            )
    if len(set(ids)) < len(ids):
        raise DataError("column {id_column!r} names a case more than once.", id_column=id_column)
    parts = [[value or "(missing)" for value in as_text(columns[name])] for name in groups]
    joined = [" × ".join(row) for row in zip(*parts, strict=True)] if parts else ["all"] * len(ids)
    group_names, group = np.unique(joined, return_inverse=True)
    label_names, label = np.unique(labels.astype(str), return_inverse=True)
    return Cases(tuple(ids), group, label, group_names.tolist(), label_names.tolist())


def _chosen(
    group: IntArray, label: IntArray, spec: CaseSettings, rng: np.random.Generator
) -> tuple[IntArray, list[Message]]:
    """Return a sample of cases that fills whole subsets, with the shares of groups and labels of all cases."""
    have = len(group)
    wanted = have if spec.cases is None else spec.cases
    if wanted > have:
        raise ConfigError("`cases` asks for {wanted:,}; there are {have:,}.", wanted=wanted, have=have)
    size = wanted // spec.per_critic * spec.per_critic
    if size == 0:
        raise ConfigError(
            "`per_critic` is {per_critic}, but there are only {cases}.",
            per_critic=spec.per_critic,
            cases=count(wanted, "case"),
        )
    order = np.lexsort((rng.random(have), label, group))
    taken = order[(np.arange(size) * have) // size]
    if size == have:
        return taken, []
    return taken, [say("cases_left_out", n=have - size, all=have)]


def _covering_deal(
    cases: Cases, chosen: IntArray, subsets: int, spec: CaseSettings, rng: np.random.Generator
) -> IntArray:
    """Return the subset of each case; if every group and label must be covered, retry until it is."""
    group, label = cases.group[chosen], cases.label[chosen]
    for what, codes, names in (("group", group, cases.group_names), ("label", label, cases.label_names)):
        sizes = np.bincount(codes, minlength=len(names))
        if spec.cover and sizes.min() < subsets:
            smallest, held = names[int(np.argmin(sizes))], count(int(sizes.min()), "case")
            raise DataError(
                "{what} {smallest!r} has {held}, too few for {subsets} subsets that must each hold one; use "
                "larger subsets (`per_critic`), fewer `cases`, or cover=False.",
                what=what,
                smallest=smallest,
                held=held,
                subsets=subsets,
            )
    for _ in range(_TRIES):
        deal = _deal(group, label, subsets, rng)
        if not spec.cover or all(_covers(codes, deal, subsets) for codes in (group, label)):
            return deal
    raise DataError(
        "the cases could not be dealt so that each of {subsets} subsets contains every group and label; use "
        "larger subsets (`per_critic`), or cover=False.",
        subsets=subsets,
    )


def _deal(group: IntArray, label: IntArray, subsets: int, rng: np.random.Generator) -> IntArray:
    """Return a random subset for each case: cases sorted by group and label, shuffled within, dealt in turn."""
    groups, labels = rng.permutation(int(group.max()) + 1), rng.permutation(int(label.max()) + 1)
    order = np.lexsort((rng.random(len(group)), labels[label], groups[group]))
    deal = np.empty(len(group), dtype=np.int64)
    deal[order] = rng.permutation(subsets)[np.arange(len(group)) % subsets]
    return deal


def _covers(codes: IntArray, deal: IntArray, subsets: int) -> bool:
    kinds = int(codes.max()) + 1
    return len(np.unique(deal * kinds + codes)) == kinds * subsets


def _coverage(
    what: Literal["group", "label"], codes: IntArray, names: list[str], seen: list[IntArray], chosen: IntArray
) -> list[CoverRecord]:
    table = np.array([np.bincount(codes[cases], minlength=len(names)) for cases in seen])
    sizes = np.bincount(codes[chosen], minlength=len(names))
    return [
        CoverRecord(what, name, int(sizes[code]), int(table[:, code].min()), int(table[:, code].max()))
        for code, name in enumerate(names)
    ]


class Critics(Settings):
    """Settings of simulated critics.

    Examples
    --------
    >>> Critics(groups={"Black": 0.4}).rate("White"), Critics(groups={"Black": 0.4}).rate("Black")
    (0.25, 0.4)
    """

    disagree: float = Field(0.25, gt=0, lt=1, description="Chance that a middling critic disagrees.")
    groups: dict[str, float] = Field({}, description="The same for groups of cases in which it is another.")
    too_high: float = Field(0.5, ge=0, le=1, description="Share of disagreement that finds a decision too high.")
    leaning: float = Field(0.5, ge=0, description="Spread of critics' own leanings, in log odds.")
    case: float = Field(0.5, ge=0, description="Spread over cases of the common opinion of each, in log odds.")
    careless: float = Field(0.04, ge=0, le=1, description="Share of critics who answer at random and fail checks.")
    reasons: float = Field(0.3, ge=0, le=1, description="Share of answers with a reason in words.")

    def rate(self, group: str) -> float:
        """Return the probability of disagreement in a group."""
        return self.groups.get(group, self.disagree)


def simulate_feedback(
    data: object,
    assignment: Assignment,
    *,
    id: str,  # noqa: A002
    decision: str,
    groups: Sequence[str] | str = (),
    labels: Sequence[str] | None = None,
    answers: Sequence[str] = ("agree", "disagree"),
    critics: Critics | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Responses:
    """Simulate the responses of a disagreement study: each critic of an assignment judges their cases.

    Parameters
    ----------
    data : the cases, as for `assign_cases`.
    assignment : the assignment of cases, from `assign_cases`.
    id, decision, groups : the columns, as in `assign_cases`.
    labels : all labels, lowest first: the highest is never too low nor the lowest too high. By default the data's.
    answers : the allowed answers; with 'too_high' or 'too_low' disagreement has a direction.
    critics : the settings of the simulated critics, as `Critics` or a mapping.
    seed : the same seed gives the same answers.

    Examples
    --------
    >>> import evenhand as eh
    >>> cases = {"case": range(100), "label": ["high", "low"] * 50, "race": ["A"] * 60 + ["B"] * 40}
    >>> dealt = eh.study.assign_cases(cases, id="case", decision="label", groups="race", per_critic=20, per_case=3)
    >>> eh.study.simulate_feedback(cases, dealt, id="case", decision="label", groups="race", critics={"disagree": 0.3})
    <Responses: disagreement, 15 people, 300 answers>
    """
    who = critics if isinstance(critics, Critics) else Critics.parse(critics or {}, "the critics")
    cases = read_cases(data, id, decision, (groups,) if isinstance(groups, str) else tuple(groups))
    order = cases.label_names if labels is None else list(map(str, labels))
    require_known(who.groups, cases.group_names, "`groups` of the critics got {name}")
    require_known(cases.label_names, order, "`labels` lacks {name}, which the system gave")
    rows = _rows(cases, assignment)
    critic = np.repeat(np.arange(len(assignment.critics)), list(map(len, assignment.critics)))
    rng = np.random.default_rng(seed)
    careless = rng.random(len(assignment.critics)) < who.careless
    chance = _chance_to_disagree(cases, rows=rows, critic=critic, careless=careless, who=who, rng=rng)
    level = np.array(list(map(order.index, cases.label_names)))[cases.label[rows]]
    words = _words(rng.random(rows.size) < chance, level, highest=len(order) - 1, answers=answers, who=who, rng=rng)
    return build_responses(
        {
            "participant": [f"c{number + 1:04d}" for number in critic],
            **_of_critics(careless, critic, rng),
            "item": [cases.ids[row] for row in rows],
            "position": [position for seen in assignment.critics for position in range(1, len(seen) + 1)],
            "decision": np.array(cases.label_names)[cases.label[rows]].tolist(),
            "answer": words,
            "reason": _reasons(words, who, rng),
        },
        "disagreement",
        where="the simulated answers",
    )


def _chance_to_disagree(
    cases: Cases, *, rows: IntArray, critic: IntArray, careless: BoolArray, who: Critics, rng: np.random.Generator
) -> FloatArray:
    """Return the probability of disagreement for every answer; 0.5 for careless critics."""
    rates = np.array([who.rate(name) for name in cases.group_names])[cases.group[rows]]
    odds = np.log(rates / (1 - rates)) + who.leaning * rng.standard_normal(len(careless))[critic]
    odds += who.case * rng.standard_normal(len(cases.ids))[rows]
    return np.where(careless[critic], 0.5, 1 / (1 + np.exp(-odds)))


def _rows(cases: Cases, assignment: Assignment) -> IntArray:
    """Return the row of the case of each answer, critic by critic."""
    indices = {name: index for index, name in enumerate(cases.ids)}
    try:
        return np.array([indices[case] for seen in assignment.critics for case in seen], dtype=np.int64)
    except KeyError as error:
        raise DataError("the assignment has a case {error} that is not among the cases.", error=error) from None


def _words(
    against: BoolArray, level: IntArray, *, highest: int, answers: Sequence[str], who: Critics, rng: np.random.Generator
) -> list[str]:
    """Return the answers as words; if both directions are possible, one is drawn at random."""
    allowed = set(answers)
    require_known(answers, FEEDBACK, "`answers` got {name}")
    if "agree" not in allowed or len(allowed) < 2:
        raise ConfigError("`answers` must hold 'agree' and something else.")
    high = rng.random(against.size) < who.too_high
    high = (high | (level == highest)) & (level > 0)
    chosen = np.full(against.size, "disagree" if "disagree" in allowed else "agree", dtype=object)
    for word, here in (("too_high", high), ("too_low", ~high)):
        if word in allowed:
            chosen[here] = word
    return [str(word) for word in np.where(against, chosen, "agree")]


def _of_critics(careless: BoolArray, critic: IntArray, rng: np.random.Generator) -> dict[str, list[Any]]:
    duration: FloatArray = np.round(np.where(careless, 300, 1500) * rng.lognormal(0, 0.3, careless.size))
    checks = rng.binomial(3, np.where(careless, 0.3, 0.97))
    return {
        "duration": duration[critic].tolist(),
        "finished": [1] * critic.size,
        "checks_passed": checks[critic].tolist(),
        "checks_total": [3] * critic.size,
    }


def _reasons(words: Sequence[str], who: Critics, rng: np.random.Generator) -> list[str | None]:
    quiet, pick = rng.random(len(words)) >= who.reasons, rng.integers(0, 2, len(words))
    return [None if q else _REASONS[word][number] for q, word, number in zip(quiet, words, pick, strict=True)]
