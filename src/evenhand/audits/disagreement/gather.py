"""Read tables as a panel of critics' answers on cases, coded in canonical order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.reading import (
    AnswerRows,
    Labels,
    find_labels,
    one_answer_each,
    positions_in,
    read_answers,
    read_times,
)
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.groups import ranks_of_groups
from evenhand.errors import ConfigError, DataError, count, problem
from evenhand.messages import Message
from evenhand.stats.feedback import TOO_HIGH, TOO_LOW, Feedback, numbered
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit
from evenhand.table.keys import shown
from evenhand.table.table import Table

MOST_KINDS = 20
_SHOWN = 3
_ABSENT = {"truth": say("no_truth"), "answered": say("no_time")}

TRANSFER = TransferLimit("the answers, once", MOST_ROWS, REFUSED)
"""The most data that an engine sends to this process for a disagreement audit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Answers of critics on cases.

    Parameters
    ----------
    critic, case, answer : (n,) the codes, sorted by critic and case; a critic answers a case only once.
    truth : (n,) the label that the critic has in mind, if known.
    weight : (n,) survey weights, or None.
    label, groups : (cases,) the system's label, and the group codes.
    critics, cases : the names behind the codes.
    stakeholder, stakeholders : (critics,) the kind of each critic (-1 if unknown), and the names of the kinds.
    labels, feedback : the labels, and the labels that each answer leaves possible.
    unanswered : the number of cases without an answer.
    dropped : the numbers of incomplete rows left out, by the missing item.
    repeated, superseded : the numbers of identical repeated answers, and of answers replaced by a later one.
    inconsistent : the number of answers that contradict the critic's own label.
    traits : (cases, traits) the numeric traits that define like cases, nan where missing; or None.
    """

    critic: IntArray
    case: IntArray
    answer: IntArray
    truth: IntArray | None
    weight: FloatArray | None
    label: IntArray
    groups: Cells
    critics: tuple[str, ...]
    cases: tuple[str, ...]
    stakeholder: IntArray | None
    stakeholders: tuple[str, ...]
    labels: Labels
    feedback: Feedback
    unanswered: int = 0
    dropped: tuple[tuple[int, Message], ...] = ()
    repeated: int = 0
    superseded: int = 0
    inconsistent: int = 0
    traits: FloatArray | None = None

    def digest(self) -> str:
        """Return the SHA-256 of the answers, the same for the same data on every engine."""
        names = {
            "critics": self.critics,
            "cases": self.cases,
            "labels": self.labels.names,
            "kind": self.feedback.kind,
            "stakeholders": self.stakeholders,
            "groups": dict(sorted(self.groups.labels.items())),
        }
        digest = hashlib.sha256(json.dumps(names, sort_keys=True).encode())
        codes = [self.critic, self.case, self.answer, self.label, self.truth, self.stakeholder]
        codes += [self.groups.codes[name] for name in sorted(self.groups.codes)]
        for array in codes:
            digest.update(b"-" if array is None else np.ascontiguousarray(array, dtype="<i8").data)
        for numbers in (self.weight, self.traits):
            if numbers is not None:
                digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
        return digest.hexdigest()


def gather(table: Table, spec: DisagreementSpec) -> Panel:
    """Return the panel of answers in a table, or in a separate table of answers on its cases."""
    rows = _two_tables(table, spec) if spec.answers.apart else _one_table(table, spec)
    names = spec.columns
    kind, codes = read_answers(rows.columns, names)
    rows = _answered_rows(rows, codes, table.roles.missing == "drop")
    if kind == "direction":
        rows.labels.require_order(problem("an answer of too high or too low"))
    if spec.answers.tolerance:
        rows.labels.require_order(problem("`tolerance`"))
    feedback = Feedback(len(rows.labels.names), kind, spec.answers.tolerance)
    truth = time = None
    if "truth" in rows.columns:
        truth = rows.labels.codes_of(rows.columns["truth"], "truth", names["truth"])
    if spec.answers.contradictions == "latest":
        time = read_times(rows.columns["answered"], names["answered"])
    rows = replace(rows, truth=truth, time=time)
    selected, repeated, superseded = one_answer_each(rows)
    panel = _make_panel(rows, selected, feedback)
    _refuse_impossible(panel)
    return replace(
        panel, dropped=rows.dropped, repeated=repeated, superseded=superseded, inconsistent=_inconsistent(panel)
    )


def _one_table(table: Table, spec: DisagreementSpec) -> AnswerRows:
    """Read a table with one row per answer.

    The label and groups of a case must be the same in all its rows.
    """
    columns_by_role = {"decision": spec.decision, **spec.columns}
    coded = table.coded_rows({**columns_by_role, **_trait_columns(spec)})
    columns = {role: coded.columns[role] for role in columns_by_role}
    _refuse_absent(columns, columns_by_role, ("decision", "critic", "case"))
    labels = find_labels({role: columns[role] for role in ("decision", "truth") if role in columns}, spec)
    label = labels.codes_of(columns["decision"], "decision", spec.decision)
    if "case" in columns:
        case, names = columns["case"].codes, columns["case"].labels
    else:
        case, names = _case_per_row(columns, label, coded.groups)
    traits = {name: coded.columns[role].codes for role, name in _trait_columns(spec).items()}
    attributes = {spec.decision: label, **coded.groups.codes, **traits}
    by_case = {name: _values_by_case(name, codes, case, names) for name, codes in attributes.items()}
    groups = Cells(
        {n: by_case[n] for n in coded.groups.codes}, coded.groups.labels, np.ones(len(names), dtype=np.int64)
    )
    rows = AnswerRows(
        critic=columns["critic"],
        case=case,
        columns=columns,
        label=by_case[spec.decision],
        groups=groups,
        cases=names,
        weight=coded.weight,
        labels=labels,
    )
    return replace(rows, traits=_traits(coded.columns, by_case, spec))


def _trait_columns(spec: DisagreementSpec) -> dict[str, str]:
    """Return the columns that define like cases, by role."""
    return {f"like {name}": name for name in spec.like or {}}


def _traits(columns: Mapping[str, Coded], by_case: Mapping[str, IntArray], spec: DisagreementSpec) -> FloatArray | None:
    """Return the columns that define like cases (cases, traits), as numbers or as codes that must be equal."""
    if spec.like is None:
        return None
    traits = []
    for role, name in _trait_columns(spec).items():
        values, codes = columns[role].values, by_case[name]
        numbers = np.arange(len(values), dtype=np.float64)
        if spec.like[name] > 0:
            if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                raise ConfigError(
                    "`like` allows {column!r} to be {far:g} apart, but it does not hold numbers (such as {values}); "
                    "allow 0, the same, or name another column.",
                    column=name,
                    far=spec.like[name],
                    values=shown(list(values[:_SHOWN]), _SHOWN),
                )
            numbers = np.array(values, dtype=np.float64)
        traits.append(np.where(codes >= 0, np.append(numbers, np.nan)[codes], np.nan))
    return np.column_stack(traits)


def _case_per_row(columns: Mapping[str, Coded], label: IntArray, groups: Cells) -> tuple[IntArray, tuple[str, ...]]:
    """Return a separate case for every row, numbered independently of the engine's row order."""
    contents = [label, *(column.codes for column in columns.values())]
    order = np.lexsort([*contents[1:], *ranks_of_groups(groups, contents), label])
    case = np.empty(order.size, dtype=np.int64)
    case[order] = np.arange(order.size)
    return case, tuple(str(number) for number in range(1, order.size + 1))


def _values_by_case(name: str, codes: IntArray, case: IntArray, cases: tuple[str, ...]) -> IntArray:
    """Return the value of each case; refuse several values."""
    by_case = np.zeros(len(cases), dtype=np.int64)
    by_case[case] = codes
    ambiguous = np.unique(case[by_case.take(case) != codes])
    if ambiguous.size:
        raise DataError(
            "{cases_have} several values of {column!r} (such as {cases}); a case must have one label and one group.",
            cases_have=count(ambiguous.size, "case has", "cases have"),
            column=name,
            cases=shown([cases[code] for code in ambiguous[:_SHOWN]], _SHOWN),
        )
    return by_case


def _two_tables(table: Table, spec: DisagreementSpec) -> AnswerRows:
    """Read a table of cases and a table of answers, joined by the id of the case."""
    if table.roles.id is None:
        raise ConfigError("the table of answers is joined to the table by its cases; name the table's `id` column.")
    source = spec.answers.data if spec.answers.source is None else spec.folder / spec.answers.source
    cases = table.coded_rows({"id": table.roles.id, "decision": spec.decision, **_trait_columns(spec)})
    _refuse_absent(cases.columns, {"decision": spec.decision}, ("decision",))
    columns_by_role = {"case": table.roles.id, **spec.columns}
    columns = Table(source, missing=table.roles.missing).coded_rows(columns_by_role).columns
    _refuse_absent(columns, columns_by_role, ("critic", "case"))
    labelled = {"decision": cases.columns["decision"]} | {r: columns[r] for r in ("truth",) if r in columns}
    labels = find_labels(labelled, spec)
    order = np.argsort(cases.columns["id"].codes)  # an id is its own code
    names = cases.columns["id"].labels
    case = _known_cases(columns["case"], names, columns_by_role["case"])
    label = labels.codes_of(cases.columns["decision"], "decision", spec.decision)[order]
    groups = Cells(
        {name: codes[order] for name, codes in cases.groups.codes.items()}, cases.groups.labels, cases.groups.n
    )
    weight = None if cases.weight is None else cases.weight[order][case]
    by_case = {name: cases.columns[role].codes[order] for role, name in _trait_columns(spec).items()}
    traits = _traits(cases.columns, by_case, spec)
    return AnswerRows(
        critic=columns["critic"],
        case=case,
        columns=columns,
        label=label,
        groups=groups,
        cases=names,
        weight=weight,
        labels=labels,
        traits=traits,
    )


def _known_cases(column: Coded, cases: tuple[str, ...], name: str) -> IntArray:
    codes, unknown = positions_in(cases, column)
    if unknown:
        rows = int((codes < 0).sum())
        raise DataError(
            "`case` column {column!r} of the answers names {number} in {rows} that the table does not have (such as "
            "{cases}); add the cases, or remove the answers.",
            column=name,
            number=count(len(unknown), "case"),
            rows=count(rows, "row"),
            cases=shown(unknown, _SHOWN),
        )
    return codes


def _refuse_absent(columns: Mapping[str, Coded], names: Mapping[str, str], roles: tuple[str, ...]) -> None:
    problems = [
        problem(
            "`{role}` column {column!r} is missing in {missing} of {rows:,}; fill or remove them.",
            role=role,
            column=names[role],
            missing=count(columns[role].absent, "row"),
            rows=len(columns[role].codes),
        )
        for role in roles
        if role in columns and columns[role].absent
    ]
    if problems:
        raise DataError(problems)


def _answered_rows(rows: AnswerRows, answer: IntArray, drop: bool) -> AnswerRows:
    """Return the rows with an answer (and with the critic's own label, if the table has such a column)."""
    absent = answer < 0
    dropped = [(int(absent.sum()), say("no_answer"))]
    for role, reason in _ABSENT.items():
        if role in rows.columns:
            without = (rows.columns[role].codes < 0) & ~absent
            dropped.append((int(without.sum()), reason))
            absent |= without
    lost = int(absent.sum())
    if not lost:
        return replace(rows, answer=answer)
    if not drop or lost == absent.size:
        raise DataError(
            "{lost} of {rows:,} have no answer, no time or no label of the critic's own; fill {which}, or drop {which} "
            "with `missing='drop'`.",
            lost=count(lost, "row"),
            rows=absent.size,
            which="it" if lost == 1 else "them",
        )
    keep = ~absent
    columns = {role: Coded(column.codes[keep], column.values) for role, column in rows.columns.items()}
    weight = None if rows.weight is None else rows.weight[keep]
    complete = replace(rows, critic=columns["critic"], case=rows.case[keep], columns=columns, weight=weight)
    return replace(complete, answer=answer[keep], dropped=tuple(dropped))


def _make_panel(rows: AnswerRows, selected: IntArray, feedback: Feedback) -> Panel:
    """Return a panel of the selected answers, sorted, without critics and cases that have no answers."""
    critics, critic = numbered(rows.critic.codes[selected], len(rows.critic.values))
    cases, case = numbered(rows.case[selected], len(rows.cases))
    kind, kinds = _kinds(rows, critics)
    groups = Cells(
        {name: codes[cases] for name, codes in rows.groups.codes.items()}, rows.groups.labels, rows.groups.n[cases]
    )
    return Panel(
        critic=critic,
        case=case,
        answer=rows.answer[selected],
        truth=None if rows.truth is None else rows.truth[selected],
        weight=None if rows.weight is None else rows.weight[selected],
        label=rows.label[cases],
        groups=groups,
        critics=_names_of_codes(rows.critic.labels, critics),
        cases=_names_of_codes(rows.cases, cases),
        stakeholder=kind,
        stakeholders=kinds,
        labels=rows.labels,
        feedback=feedback,
        unanswered=len(rows.cases) - cases.size,
        traits=None if rows.traits is None else rows.traits[cases],
    )


def _names_of_codes(names: tuple[str, ...], codes: IntArray) -> tuple[str, ...]:
    """Return the names of the distinct codes, in order."""
    return names if codes.size == len(names) else tuple(names[code] for code in codes.tolist())


def _kinds(rows: AnswerRows, critics: IntArray) -> tuple[IntArray | None, tuple[str, ...]]:
    """Return the kind of each critic, which must be the same in all their answers."""
    if "stakeholder" not in rows.columns:
        return None, ()
    column = rows.columns["stakeholder"]
    if len(column.values) > MOST_KINDS:
        raise DataError(
            "`stakeholder` has {number:,} kinds of critics, more than {most}; is it an identifier? Choose something "
            "coarser.",
            number=len(column.values),
            most=MOST_KINDS,
        )
    kind = np.full(len(rows.critic.values), -1, dtype=np.int64)
    kind[rows.critic.codes] = column.codes
    ambiguous = np.unique(rows.critic.codes[kind[rows.critic.codes] != column.codes])
    if ambiguous.size:
        raise DataError(
            "{critics_have} several values of `stakeholder` (such as {critics}); a critic must be of one kind.",
            critics_have=count(ambiguous.size, "critic has", "critics have"),
            critics=shown([rows.critic.values[code] for code in ambiguous[:_SHOWN]], _SHOWN),
        )
    return kind[critics], column.labels


def _refuse_impossible(panel: Panel) -> None:
    """Refuse 'too high' at the lowest label and 'too low' at the highest label."""
    if panel.feedback.kind != "direction":
        return
    label = panel.label[panel.case]
    wrong = ~panel.feedback.possible[label, panel.answer]
    for answer, words, end in ((TOO_HIGH, "too high", "lowest"), (TOO_LOW, "too low", "highest")):
        bad = wrong & (panel.answer == answer)
        if bad.any():
            name = panel.labels.names[int(label[bad][0])]
            raise DataError(
                "{answer!r} is the answer to the label {label!r} in {rows}, but {label!r} is {among}; correct the "
                "answers, or declare all `labels` in their order.",
                answer=words,
                label=name,
                rows=count(int(bad.sum()), "row"),
                among=_restrict_to(end, panel),
            )


def _restrict_to(end: str, panel: Panel) -> Message:
    if not panel.feedback.tolerance:
        return problem("the {end} label", end=end)
    near = panel.feedback.tolerance
    return problem("the {end} label or within the tolerance of {tolerance} of it", end=end, tolerance=near)


def _inconsistent(panel: Panel) -> int:
    """Return the number of answers that contradict the critic's own label."""
    if panel.truth is None:
        return 0
    open_labels: Any = panel.feedback.admissible[panel.label[panel.case], panel.answer, panel.truth]
    return int((~open_labels).sum())
