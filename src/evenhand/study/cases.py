"""The design of a feedback study: which critic sees which cases, so that everybody and everything is covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.settings import Settings
from evenhand.stats.types import IntArray
from evenhand.study.responses import read_columns
from evenhand.study.schema import as_text
from evenhand.table.frames import build_frame

_TRIES = 200


class CaseSettings(Settings):
    """How cases are dealt out.

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
    """The cases: their ids, and the group and label of each as places in the sorted names."""

    ids: tuple[str, ...]
    group: IntArray
    label: IntArray
    group_names: list[str]
    label_names: list[str]


@dataclass(frozen=True)
class CoverRecord:
    """How often critics see a group or a label: the fewest and the most cases of it that a critic has."""

    what: Literal["group", "label"]
    name: str
    cases: int
    fewest: int
    most: int


@dataclass(frozen=True, repr=False)
class Assignment:
    """Which critic sees which cases.

    Parameters
    ----------
    critics : for each critic, the cases in the order in which they are shown.
    subsets : for each critic, the number of their subset, from 1.
    coverage : how often each group and label is seen by a critic.
    settings : what was asked.
    notes : cases that were left out, and why.
    """

    critics: tuple[tuple[str, ...], ...]
    subsets: tuple[int, ...]
    coverage: tuple[CoverRecord, ...]
    settings: CaseSettings
    notes: tuple[str, ...]

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row a critic and case: critic, subset, position and case."""
        columns: dict[str, list[Any]] = {"critic": [], "subset": [], "position": [], "case": []}
        for critic, (cases, subset) in enumerate(zip(self.critics, self.subsets, strict=True), 1):
            columns["critic"] += [critic] * len(cases)
            columns["subset"] += [subset] * len(cases)
            columns["position"] += list(range(1, len(cases) + 1))
            columns["case"] += list(cases)
        return build_frame(columns, backend)

    def __repr__(self) -> str:
        per_critic = count(self.settings.per_critic, "case")
        return f"<Assignment: {count(len(self.critics), 'critic')}, {per_critic} each, {self.settings.per_case} a case>"


def assign_cases(
    data: Any,
    *,
    id: str,  # noqa: A002
    decision: str,
    groups: Sequence[str] | str = (),
    **settings: Any,
) -> Assignment:
    """Deal cases out to critics: each case to `per_case` critics, to each critic `per_critic` cases.

    Cases are sorted by group and label, shuffled within, and dealt in turn, so that the numbers of cases of a group
    that two critics see differ by at most one. Where the cases do not fill whole subsets, the rest is left out evenly.

    Parameters
    ----------
    data : the cases: a data frame, a mapping of columns or a file.
    id, decision : the columns that identify a case and hold what the system decided.
    groups : columns of the groups to cover; several are covered together.
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
    """Deal cases out to critics as the settings say."""
    group, label = cases.group, cases.label
    rng = np.random.default_rng(spec.seed)
    chosen, notes = _chosen(group, label, spec, rng)
    subsets = len(chosen) // spec.per_critic
    deals = [
        _covering_deal(group[chosen], label[chosen], subsets, spec, rng, cases.group_names, cases.label_names)
        for _ in range(spec.per_case if spec.design == "spread" else 1)
    ]
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


def read_cases(data: Any, id_column: str, decision: str, groups: Sequence[str]) -> Cases:
    """Read the cases and check that each has an id of its own and a decision."""
    columns, _ = read_columns(data)
    for name in (id_column, decision, *groups):
        if name not in columns:
            raise ConfigError(f"column {name!r} is not in the cases; {did_you_mean(name, columns)}")
    ids, labels = as_text(columns[id_column]), as_text(columns[decision])
    for name, values in ((id_column, ids), (decision, labels)):
        gone = int(sum(value is None for value in values))
        if gone:
            raise DataError(f"column {name!r} of the cases is empty in {count(gone, 'row')}; every case needs one.")
    if len(set(ids)) < len(ids):
        raise DataError(f"column {id_column!r} names a case more than once.")
    parts = [[value or "(missing)" for value in as_text(columns[name])] for name in groups]
    joined = [" × ".join(row) for row in zip(*parts, strict=True)] if parts else ["all"] * len(ids)
    group_names, group = np.unique(joined, return_inverse=True)
    label_names, label = np.unique(labels.astype(str), return_inverse=True)
    return Cases(tuple(ids), group, label, group_names.tolist(), label_names.tolist())


def _chosen(
    group: IntArray, label: IntArray, spec: CaseSettings, rng: np.random.Generator
) -> tuple[IntArray, list[str]]:
    """Return as many cases as fill whole subsets, in the same shares of groups and labels as all cases."""
    have = len(group)
    wanted = have if spec.cases is None else spec.cases
    if wanted > have:
        raise ConfigError(f"`cases` asks for {wanted:,}; there are {have:,}.")
    size = wanted // spec.per_critic * spec.per_critic
    if size == 0:
        raise ConfigError(f"`per_critic` is {spec.per_critic}, but there are only {count(wanted, 'case')}.")
    order = np.lexsort((rng.random(have), label, group))
    taken = order[(np.arange(size) * have) // size]
    if size == have:
        return taken, []
    return taken, [f"{count(have - size, 'case')} of {have:,} were left out, evenly over groups and labels."]


def _covering_deal(
    group: IntArray,
    label: IntArray,
    subsets: int,
    spec: CaseSettings,
    rng: np.random.Generator,
    group_names: list[str],
    label_names: list[str],
) -> IntArray:
    """Return the subset of each case; when everything must be covered, try new deals until it is."""
    for what, codes, names in (("group", group, group_names), ("label", label, label_names)):
        sizes = np.bincount(codes, minlength=len(names))
        if spec.cover and sizes.min() < subsets:
            at = int(np.argmin(sizes))
            raise DataError(
                f"{what} {names[at]!r} has {count(int(sizes[at]), 'case')}, too few for {subsets} subsets that must "
                "each hold one; use larger subsets (`per_critic`), fewer `cases`, or cover=False."
            )
    for _ in range(_TRIES):
        deal = _deal(group, label, subsets, rng)
        if not spec.cover or all(_covers(codes, deal, subsets) for codes in (group, label)):
            return deal
    raise DataError(
        f"no deal was found in which all {subsets} subsets hold every group and every label; use larger subsets "
        "(`per_critic`), or cover=False."
    )


def _deal(group: IntArray, label: IntArray, subsets: int, rng: np.random.Generator) -> IntArray:
    """Sort by group and label in a random order of both, shuffle within, and deal in turn."""
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
        CoverRecord(what, name, int(sizes[at]), int(table[:, at].min()), int(table[:, at].max()))
        for at, name in enumerate(names)
    ]
