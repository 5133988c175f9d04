"""Splits: make candidates from the training rows and test them on the test rows.

A search over a family uses only the training rows. Cross-validation on them measures how promising a member is at a
margin: the smallest number of standard errors by which a component of the test exceeds its null, on out-of-fold
decisions. The test rows are not used, so the choice may depend on the margin and each test still has its level.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenhand.audits.improvability import curves as split_curves
from evenhand.audits.improvability import rules
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.curves import Curves, Margins, Power
from evenhand.audits.improvability.gather import AuditRows
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.core.records import OK
from evenhand.errors import ConfigError, DataError, EvenhandError, count, problem
from evenhand.messages import Message
from evenhand.stats import improvability as stats
from evenhand.stats.linear_search import TIME_LIMIT, LinearCandidate
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import in_parallel


class NoCandidateError(EvenhandError):
    """Error of a search that found no candidate in a split."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The shared inputs of all splits: the rows, the settings and the margins."""

    sample: AuditRows
    spec: ImprovabilitySpec
    margins: Margins

    @property
    def tests(self) -> tuple[stats.FairnessTest, ...]:
        """The available fairness tests; the published test compares only two groups."""
        return ("signed", "published") if len(self.sample.groups) == 2 else ("signed",)

    @property
    def goals(self) -> tuple[stats.Goal, ...]:
        """The goals of margins: fairness, joint accuracy, and accuracy of each group."""
        each = range(len(self.sample.groups)) if self.spec.test.accuracy_of == "groups" else ()
        return ("fairness", "joint_accuracy", *each)

    def rng(self, *keys: int | str) -> np.random.Generator:
        """Return a random generator for one purpose, so that an additional candidate changes no other."""
        return rng_of(self.spec.seed, *keys)

    def curves(self, value: float) -> Curves:
        """Return curves with the same number for every component and margin."""
        accuracy = 1 if self.spec.test.accuracy_of == "everyone" else len(self.sample.groups)
        return Curves(
            np.full((accuracy, self.margins.accuracy.size), value),
            np.full((len(self.spec.fairness), self.margins.fairness.size), value),
        )


@dataclass(frozen=True, eq=False)
class MadeCandidate:
    """A candidate's decisions on the test rows, and a description of its origin."""

    decisions: rules.Decisions
    what: str
    linear: LinearCandidate | None = None
    coefficients: tuple[rules.Coefficient, ...] = ()


class Piece(NamedTuple):
    """The decisions of a candidate and the status quo on the test rows of one split or step."""

    split: int
    test: IntArray
    status_quo: rules.Decisions
    made: MadeCandidate | None
    status: Message

    @property
    def stopped(self) -> bool:
        """Whether the solver of a search was stopped by its time limit."""
        linear = None if self.made is None else self.made.linear
        return linear is not None and linear.solver is not None and linear.solver.status == TIME_LIMIT


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates:
    """Estimates for the status quo and a candidate on the test rows.

    Parameters
    ----------
    values, low, high, stderr : (groups + 1, utilities, 2) the values of groups and of all people, with intervals and
        standard errors.
    counted : (groups, utilities, 2) the number of rows that count.
    change : (components, 3) the rise in accuracy and the shrinkage of gaps, with intervals.
    region : (2, 2, 3) the overall accuracy and the gap of both algorithms, with limits simultaneous over all points.
    eigenvalue : the smallest eigenvalue of the correlation between both algorithms' values.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    stderr: FloatArray
    counted: IntArray
    change: FloatArray
    region: FloatArray
    eigenvalue: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Tests:
    """The tests of a candidate at all margins.

    Parameters
    ----------
    curves : the p-values of the components, by test.
    power : the power of the test; None for an untested candidate.
    shares : whether accuracy is not negative, so that relative improvements are defined.
    """

    curves: Mapping[stats.FairnessTest, Curves]
    power: Power | None = None
    shares: bool = True


class Search(NamedTuple):
    """The trials of a search's members, and its choice by goal and margin."""

    members: tuple[Trial, ...]
    choice: Mapping[stats.Goal, IntArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """One candidate on one split, or in one pass through the rows.

    Parameters
    ----------
    candidate : the name of the candidate.
    piece : the decisions of candidate and status quo on the test rows.
    worst : the pair of groups furthest apart on the training rows, for each fairness utility.
    estimates, tests : the estimates on the test rows, and their tests.
    search : the choices of a search; None for other candidates.
    steps : the decisions in each step, if the candidate was made in several steps.
    remarks : notes for the reader.
    """

    candidate: str
    piece: Piece
    worst: tuple[stats.Pair, ...]
    estimates: Estimates
    tests: Tests
    search: Search | None = None
    steps: tuple[Piece, ...] = ()
    remarks: tuple[Message, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The decisions in this split, or in each of the steps."""
        return self.steps or (self.piece,)

    @property
    def unchanged(self) -> bool:
        """Whether all decisions on the test rows equal the status quo's, so that nothing is compared."""
        made = self.piece.made
        return made is not None and bool((made.decisions.values == self.piece.status_quo.values).all())

    def parts(self, test: stats.FairnessTest, goal: stats.Goal) -> FloatArray:
        """Return the p-values of all components at the margins of a goal (components, margins)."""
        if self.search is None:
            return self.tests.curves[test].parts(goal)
        every = np.stack([member.tests.curves[test].parts(goal) for member in self.search.members])
        return np.asarray(np.take_along_axis(every, self.search.choice[goal][np.newaxis, np.newaxis], axis=0)[0])

    def p(self, test: stats.FairnessTest, goal: stats.Goal) -> FloatArray:
        """Return the p-values at the margins of a goal."""
        return np.asarray(self.parts(test, goal).max(axis=0))


Trials = Mapping[str, tuple[Trial, ...]]
"""The trials of every candidate, in the order of the splits."""


def rng_of(seed: int, *keys: int | str) -> np.random.Generator:
    """Return the random generator of one purpose."""
    return np.random.default_rng([seed, *(zlib.crc32(key.encode()) if isinstance(key, str) else key for key in keys)])


def run_splits(inputs: Inputs) -> Trials:
    """Make and test every candidate on every split."""
    splits = make_splits(len(inputs.sample), inputs.spec, inputs.sample.cluster)
    tasks = [(name, number) for number in range(len(splits)) for name in inputs.spec.candidates]
    trials = in_parallel(
        try_candidate, [(inputs, name, number, splits[number]) for name, number in tasks], inputs.spec.jobs
    )
    by_task = dict(zip(tasks, trials, strict=True))
    return {name: tuple(by_task[name, number] for number in range(len(splits))) for name in inputs.spec.candidates}


def make_splits(rows: int, spec: ImprovabilitySpec, cluster: IntArray | None = None) -> tuple[stats.Split, ...]:
    """Return the splits, or the steps of one pass through the rows, without dividing clusters."""
    units = rows if cluster is None else int(cluster.max()) + 1
    if spec.test.design == "one_pass":
        splits = stats.forward_splits(units, spec.test.start, spec.test.steps, rng_of(spec.seed, "steps"))
    else:
        splits = stats.random_splits(units, spec.test.splits, spec.test.train, rng_of(spec.seed, "splits"))
    return splits if cluster is None else stats.rows_of_clusters(splits, cluster)


def try_candidate(inputs: Inputs, name: str, number: int, split: stats.Split) -> Trial:
    """Make one candidate from the training rows of one split, and test it on the test rows."""
    candidate = inputs.spec.candidates[name]
    if candidate.rule == "search":
        return _search_family(inputs, name, number, split)
    return _try_single(inputs, name, shown=name, candidate=candidate, number=number, split=split)


def _try_single(
    inputs: Inputs, name: str, *, shown: str, candidate: Candidate, number: int, split: stats.Split
) -> Trial:
    """Make and test a candidate that is not a search.

    If a linear search finds nothing, return an untested trial with the reason.
    """
    trial = untested(inputs, shown, number, split)
    try:
        made = make_candidate(inputs, name, candidate, number, split)
    except NoCandidateError as error:
        return replace(trial, piece=trial.piece._replace(status=say("no_candidate", why=error.message)))
    return tested(inputs, name, trial, made, Comparison(say("split", split=number + 1)))


class Comparison(NamedTuple):
    """The setting of a comparison: the rows, their steps, and the direction of the pair of groups."""

    where: Message
    part: IntArray | None = None
    direction: stats.Direction = "named"


def tested(inputs: Inputs, name: str, trial: Trial, made: MadeCandidate, comparison: Comparison) -> Trial:
    """Return a trial with the test of a candidate's decisions.

    `name` is the name of the candidate, or of its search.
    """
    spec, shown, where = inputs.spec, trial.candidate, comparison.where
    old, new = trial.piece.status_quo.values, made.decisions.values
    _refuse_all_or_none(new, old, shown, where)
    rows = rows_of(inputs, trial.piece.test, old, new, say("candidate_in", where=where, candidate=shown))
    of = where if spec.test.design == "one_pass" else say("test_rows_of", where=where)
    remarks = stats.check_counts(rows, say("candidate_in", where=of, candidate=shown))
    rng, part = inputs.rng("bootstrap", name, trial.piece.split), comparison.part
    cluster = None if inputs.sample.cluster is None else inputs.sample.cluster[trial.piece.test]
    if cluster is None:
        studentised = spec.test.studentised
        draws = stats.bootstrap_values(rows, resamples=spec.resamples, rng=rng, studentised=studentised, part=part)
    else:
        draws = stats.bootstrap_clusters(rows, cluster, resamples=spec.resamples, rng=rng, part=part)
    freedom = rows.freedom() if cluster is None else stats.fewest_clusters(rows, cluster)[1]
    tests = {
        kind: stats.SplitTest(
            draws=draws,
            criteria=spec.criteria,
            worst=trial.worst,
            fairness_test=kind,
            studentised=kind == "signed" and spec.test.studentised,
            direction=comparison.direction,
        )
        for kind in inputs.tests
    }
    return replace(
        trial,
        piece=trial.piece._replace(made=made),
        remarks=remarks,
        estimates=_estimates(inputs, tests["signed"], rows, freedom),
        tests=_tests(inputs, tests),
    )


def untested(inputs: Inputs, name: str, number: int, split: stats.Split) -> Trial:
    """Return a trial without a candidate; all its p-values are 1, so that it counts against rejection."""
    sample, spec = inputs.sample, inputs.spec
    shape = (len(sample.groups) + 1, len(spec.criteria.utilities), 2)
    nothing, ones = np.full(shape, np.nan), inputs.curves(1.0)
    return Trial(
        candidate=name,
        piece=Piece(number, split.test, _status_quo(inputs, "test", number, split.test), None, OK),
        worst=tuple(_worst_pairs(inputs, number, split)),
        estimates=Estimates(
            values=nothing,
            low=nothing,
            high=nothing,
            stderr=nothing,
            counted=np.zeros((len(sample.groups), *shape[1:]), dtype=np.int64),
            change=np.full((len(ones.accuracy) + len(ones.fairness), 3), np.nan),
            region=np.full((2, 2, 3), np.nan),
            eigenvalue=float("nan"),
        ),
        tests=Tests(curves=dict.fromkeys(inputs.tests, ones)),
    )


def _estimates(inputs: Inputs, signed: stats.SplitTest, rows: stats.Rows, freedom: float) -> Estimates:
    """Return the values of both algorithms on the test rows, with their limits."""
    spec, draws = inputs.spec, signed.draws
    ends = [(1 - spec.confidence) / 2, 1 - (1 - spec.confidence) / 2]
    low, high = np.nanquantile(draws.values, ends, axis=0)
    change = split_curves.component_changes(signed, draws.estimate[np.newaxis])[0]
    moved = np.nanquantile(split_curves.component_changes(signed, draws.values), ends, axis=0)
    together = 1 - (1 - spec.confidence) / (len(spec.candidates) + 1)  # the candidates and the status quo
    return Estimates(
        values=draws.estimate,
        low=np.fmin(low, draws.estimate),  # at a low confidence the middle of the draws may lie beside it
        high=np.fmax(high, draws.estimate),
        stderr=np.nanstd(draws.values, axis=0),
        counted=rows.counted(),
        change=np.column_stack([change, np.fmin(moved[0], change), np.fmax(moved[1], change)]),
        region=stats.frontier_region(draws, spec.criteria.fairness_index[0], together, freedom),
        eigenvalue=stats.smallest_eigenvalue(draws),
    )


def _tests(inputs: Inputs, tests: Mapping[stats.FairnessTest, stats.SplitTest]) -> Tests:
    """Return the p-values of every test at all margins, and the power of the signed test."""
    spec, signed = inputs.spec, tests["signed"]
    left = 1 - signed.draws.rows / len(inputs.sample)
    return Tests(
        curves={kind: split_curves.p_curves(test, inputs.margins) for kind, test in tests.items()},
        power=split_curves.split_power(signed, spec, spec.test.alpha / spec.counts, left),
        shares=split_curves.shares_defined(signed),
    )


def _refuse_all_or_none(new: FloatArray, old: FloatArray, name: str, where: Message) -> None:
    """Refuse a candidate that decides equally for all people, which could win on an error rate without a choice."""
    if not np.isin(old, (0.0, 1.0)).all():  # prices, which may be the same for all
        return
    for value, whom in ((0.0, problem("none")), (1.0, problem("all"))):
        if (new == value).all():
            raise DataError(
                "in {where}, the candidate {name!r} selects {whom} of the {test_rows}, so there is nothing to "
                "compare; give a `capacity` or another `threshold`, or leave the candidate out.",
                where=where,
                name=name,
                whom=whom,
                test_rows=count(new.size, "test row"),
            )


def rows_of(inputs: Inputs, rows: IntArray, old: FloatArray, new: FloatArray, where: Message) -> stats.Rows:
    """Return rows with their terms under both algorithms.

    Refuse missing outcomes that the terms need, with an explanation.
    """
    sample = inputs.sample.rows(rows)
    try:
        return stats.make_rows(
            sample.group,
            sample.outcome,
            old,
            new,
            inputs.spec.criteria.utilities,
            names=sample.groups,
            weights=sample.weight,
            columns=sample.columns,
        )
    except DataError as error:
        unknown = np.isnan(sample.outcome)
        if not unknown.any():
            raise
        chosen = int((unknown & (new != 0) & (old == 0)).sum())
        raise DataError(
            "in {where}, the outcome of {rows} is missing and is needed (of these the candidate selects "
            "{chosen:,} whom the status quo does not). Where outcomes are known only for people who were "
            "selected (selective labels), nobody can tell how others would have done: use people whose "
            "outcome is known whatever was decided, or leave such rows out with `missing='drop' in "
            "eh.Table` and say that the result then holds for the others only.",
            where=where,
            rows=count(int(unknown.sum()), "row"),
            chosen=chosen,
        ) from error


def make_candidate(inputs: Inputs, name: str, candidate: Candidate, number: int, split: stats.Split) -> MadeCandidate:
    """Return a candidate's decisions on the test rows."""
    sample, capacity = inputs.sample, inputs.spec.capacity
    ties = inputs.rng("ties", name, number)
    if candidate.rule == "column":
        column = sample.column_of(name, candidate)
        return MadeCandidate(rules.decide(column, column.values[split.test], capacity, ties), candidate.in_words())
    fitted = fit_candidate(inputs, name, candidate, number, split)
    decisions = rules.decide(fitted, rules.scores(fitted, sample.matrix[split.test], name), capacity, ties)
    return MadeCandidate(decisions, candidate.in_words(), fitted.linear, rules.coefficients_of(fitted, sample))


def fit_candidate(inputs: Inputs, name: str, candidate: Candidate, number: int, split: stats.Split) -> rules.Fitted:
    """Return the algorithm that a rule learns from the training rows of a split."""
    try:
        return rules.fit_rule(candidate, training_rows(inputs, name, number, split), inputs.spec.utility, name)
    except (ConfigError, DataError):
        raise
    except EvenhandError as error:
        if candidate.linear_search:
            raise NoCandidateError(error.message) from error
        raise


def training_rows(inputs: Inputs, name: str, number: int, split: stats.Split) -> rules.TrainingRows:
    """Return the part of a split that a selection rule may use."""
    sample = inputs.sample.rows(split.train)
    return rules.TrainingRows(
        features=sample.matrix,
        names=sample.features,
        labels=sample.labels,
        outcome=sample.outcome,
        group=sample.group,
        groups=sample.groups,
        status_quo=_status_quo(inputs, "train", number, split.train).values,
        weight=sample.weight,
        capacity=inputs.spec.capacity,
        seed=int(inputs.rng("fit", name, number).integers(2**31)),
        columns=sample.columns,
    )


def _status_quo(inputs: Inputs, part: str, number: int, rows: IntArray) -> rules.Decisions:
    """Return the status quo's decisions on the training or test rows.

    A capacity is applied within these rows.
    """
    status_quo = inputs.sample.status_quo
    return rules.decide(
        status_quo, status_quo.values[rows], inputs.spec.capacity, inputs.rng(f"status quo, {part}", number)
    )


def _worst_pairs(inputs: Inputs, number: int, split: stats.Split) -> Iterator[stats.Pair]:
    """Yield each fairness utility's pair of groups furthest apart: the named pair, or the pair on the training rows."""
    if (named := inputs.spec.test.worst_pair) is not None:
        yield from [stats.Pair(*(inputs.sample.groups.index(name) for name in named))] * len(inputs.spec.fairness)
        return
    has_outcome = ~np.isnan(inputs.sample.outcome[split.train])
    old = _status_quo(inputs, "train", number, split.train).values[has_outcome]
    sample = inputs.sample.rows(split.train[has_outcome])
    where = say("rows") if split.train is split.test else _training_rows(number)
    for utility in inputs.spec.fairness:
        yield stats.worst_pair(
            sample.group,
            sample.outcome,
            old,
            utility=utility,
            names=sample.groups,
            weights=sample.weight,
            where=where,
            columns=sample.columns,
        )


def _training_rows(number: int) -> Message:
    return say("training_rows_of", where=say("split", split=number + 1))


def _search_family(inputs: Inputs, name: str, number: int, split: stats.Split) -> Trial:
    """Choose the most promising members on the training rows by goal and margin, and test them."""
    chosen, choice = choose_members(inputs, name, number, split)
    members = tuple(
        _try_single(inputs, name, shown=f"{name}: {member.in_words()}", candidate=member, number=number, split=split)
        for member in chosen
    )
    first = members[int(choice["fairness"][0])]
    return replace(first, candidate=name, search=Search(members, choice))


def choose_members(
    inputs: Inputs, name: str, number: int, split: stats.Split
) -> tuple[tuple[Candidate, ...], dict[stats.Goal, IntArray]]:
    """Return the members chosen on the training rows, and the position of the chosen member by goal and margin."""
    family = inputs.spec.candidates[name].family
    promises = [_promise(inputs, name, member, number, split) for member in family]
    choice: dict[stats.Goal, IntArray] = {
        goal: np.argmax([promise.of(goal, lowest=True) for promise in promises], axis=0) for goal in inputs.goals
    }
    chosen = sorted({int(member) for members in choice.values() for member in members})
    position = np.full(len(family), -1)
    position[chosen] = np.arange(len(chosen))
    return tuple(family[member] for member in chosen), {goal: position[positions] for goal, positions in choice.items()}


def _promise(inputs: Inputs, name: str, member: Candidate, number: int, split: stats.Split) -> Curves:
    """Return the number of standard errors by which a member's components exceed their nulls, out of fold."""
    try:
        decisions = _out_of_fold(inputs, name, member, number, split)
    except NoCandidateError:
        return inputs.curves(-np.inf)
    old = _status_quo(inputs, "train", number, split.train).values
    rows = rows_of(inputs, split.train, old, decisions, _training_rows(number))
    draws = stats.bootstrap_values(rows, resamples=1, rng=np.random.default_rng(0), studentised=True)
    worst = tuple(_worst_pairs(inputs, number, split))
    return split_curves.z_curves(
        stats.SplitTest(draws=draws, criteria=inputs.spec.criteria, worst=worst), inputs.margins
    )


def _out_of_fold(inputs: Inputs, name: str, member: Candidate, number: int, split: stats.Split) -> FloatArray:
    """Return a member's decisions on the training rows, each by a fit to the other folds."""
    folds = inputs.spec.candidates[name].folds
    part = inputs.rng("folds", name, number).permutation(split.train.size) % folds
    decisions = np.empty(split.train.size)
    for fold in range(folds):
        inner = stats.Split(split.train[part != fold], split.train[part == fold])
        decisions[part == fold] = make_candidate(inputs, name, member, number, inner).decisions.values
    return decisions
