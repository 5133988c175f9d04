"""The improvability audit: compute a result from a table and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import comb
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.improvability import estimate
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.curves import make_margins
from evenhand.audits.improvability.findings import make_claims, make_notes, reason_records
from evenhand.audits.improvability.frontier import frontier_records
from evenhand.audits.improvability.gather import AuditRows, Predictions, read_sample
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.result import Evidence, ImprovabilityResult, Margin
from evenhand.audits.improvability.rules import Decisions
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import (
    Comparison,
    Inputs,
    MadeCandidate,
    NoCandidateError,
    Piece,
    Search,
    Trial,
    Trials,
    choose_members,
    make_candidate,
    make_splits,
    rows_of,
    run_splits,
    tested,
    untested,
)
from evenhand.core.estimates import Estimate
from evenhand.core.findings import without_kind
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, EvenhandError, count, problem, require_extra
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats import improvability as stats
from evenhand.stats.types import IntArray
from evenhand.stats.workers import in_parallel
from evenhand.table.table import Table


@audit_function(ImprovabilitySpec)
def improvability(table: Table, **settings: Any) -> ImprovabilityResult:
    """Test whether decisions could be fairer without being less accurate.

    Candidates are compared with the status quo on rows that they were not fitted to, by the accuracy A_g = sum u / sum
    w of every group and the gap between groups. A column is tested on all rows. A fitted candidate is refitted in
    several steps from the rows before, and tested on all steps together. The null hypothesis is that the candidate is
    not better in all components at once. It is tested by a bootstrap of the rows, with the largest p-value of the
    components. With `test={"design": "splits"}`, random splits are tested separately and combined, as in the paper.

    Parameters
    ----------
    table
        The data with its roles.
    {settings}

    Returns
    -------
    ImprovabilityResult
        Tables `values`, `gaps`, `frontier`, `decisions`, `margins`, `curves`, `candidates`, `coefficients`, `power`,
        `sample_sizes` and `reasons`. In `decisions`, `rejected` is a candidate's own test, `established` the decision
        adjusted for all candidates. `export(folder)` writes the candidates; it needs `evidence`, the rows and fitted
        rules, which are kept beside the result and are no part of it once it is pickled or written.

    References
    ----------
    E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the fairness-improvability of algorithms.

    Examples
    --------
    >>> import evenhand as eh
    >>> patients = eh.datasets.make_patients(100_000, seed=1)
    >>> result = eh.improvability(
    ...     eh.Table(patients, id="patient", groups="race"), status_quo="risk_score", outcome="illnesses",
    ...     utility="calibration", capacity=0.05, candidates="need_score", resamples=1_000,
    ... )
    >>> decisions = result.rows("decisions", test="signed", group="(overall)")
    >>> [(decision.metric, decision.rejected) for decision in decisions]
    [('improvable_fairness', True), ('improvable_accuracy', True)]
    """
    return finalize(run(table, ImprovabilitySpec.parse(settings, "the arguments of improvability()")))


def run(table: Table, spec: ImprovabilitySpec) -> Draft[ImprovabilityResult]:
    """Audit a table under the settings of a spec."""
    step("Reading the rows of the improvability test")
    sample = read_sample(table, spec)
    require_known(spec.thresholds, groupings=[sample.grouping], models=spec.candidates)
    _check(sample, spec)
    if sample.cluster is not None and spec.test.studentised:
        raise ConfigError("`studentised` takes every row for another person; leave it out where there is a `cluster`.")
    margins = make_margins(spec.test.margins, coarse=spec.test.studentised, higher=spec.utility.better == "higher")
    inputs = Inputs(sample, spec, margins)
    _refuse_unknown_outcomes(inputs)
    splits = spec.test.design == "splits"
    where = count(spec.test.splits, "split") if splits else "one pass through the rows"
    step(f"Testing {count(len(spec.candidates), 'candidate')} on {where}")
    trials = run_splits(inputs) if splits else run_one_pass(inputs)
    _require_some(trials)
    return _result(table, inputs, trials)


def _cluster_notes(table: Table, sample: AuditRows) -> Iterator[Message]:
    if sample.cluster is not None:
        yield shared("clustered", cluster=table.roles.cluster, n=int(sample.cluster.max()) + 1)


def _result(table: Table, inputs: Inputs, trials: Trials) -> Draft[ImprovabilityResult]:
    spec, sample = inputs.spec, inputs.sample
    values = tuple(estimate.value_records(inputs, trials))
    curves = estimate.make_curves(inputs, trials)
    decisions = tuple(estimate.decision_records(inputs, curves))
    limits = _margin_limits(inputs, trials)
    margins = [
        Estimate(margin, partial(limits, _margin_key(margin))) for margin in estimate.margin_records(inputs, curves)
    ]
    power, sizes = tuple(estimate.power_records(inputs, trials)), tuple(estimate.size_records(inputs, trials))
    reasons = tuple(reason_records(inputs, trials, decisions, power, sizes))
    claims = list(make_claims(inputs, trials, decisions, margins, reasons))
    bounds = spec.model_copy(update={"confidence": 1 - spec.test.alpha})  # a margin is a bound at the test's level
    pair = next(iter(trials.values()))[0].worst[0]
    result = ImprovabilityResult(
        spec=spec,
        findings=(),
        left_out=sample.left_out,
        notes=(*table.person_notes, *_cluster_notes(table, sample), *make_notes(inputs, trials)),
        backend=table.backend,
        values=values,
        gaps=tuple(estimate.gap_records(inputs, trials)),
        frontier=tuple(frontier_records(inputs, trials, curves)),
        decisions=decisions,
        margins=tuple(margin.record for margin in margins),
        curves=tuple(estimate.curve_records(curves)),
        candidates=tuple(estimate.candidate_records(inputs, trials)),
        coefficients=tuple(estimate.coefficient_records(trials)),
        power=power,
        sample_sizes=sizes,
        reasons=reasons,
        groups=sample.groups,
        furthest_apart=(sample.groups[pair.high], sample.groups[pair.low]),
        better=spec.utility.better,
        n=len(sample),
        unlabelled=sample.unlabelled,
        hash=sample.digest(),
        kept=Evidence(inputs, trials),
    )
    return Draft(result=result, claims=claims, own=say, bounds=bounds)


MarginKey = tuple[str | None, ...]


def _margin_key(margin: Margin) -> MarginKey:
    """Return a margin's key: candidate, test, and target."""
    return margin.model, margin.test, margin.metric, margin.group


def _margin_limits(inputs: Inputs, trials: Trials) -> Callable[[MarginKey, float], Margin]:
    """Return a function from a key and a confidence to the margin as a bound, computed from the trials' p-values."""

    @cache
    def margins_at(confidence: float) -> Mapping[MarginKey, Margin]:
        test = inputs.spec.test.model_copy(update={"alpha": 1.0 - confidence})
        strict = replace(inputs, spec=inputs.spec.model_copy(update={"test": test}))
        made = estimate.margin_records(strict, estimate.make_curves(strict, trials))
        return {_margin_key(margin): margin for margin in made}

    return lambda key, confidence: margins_at(confidence)[key]


def _check(sample: AuditRows, spec: ImprovabilitySpec) -> None:
    """Refuse settings that no split could satisfy, before any computation."""
    _require_resamples(sample, spec)
    if spec.test.fairness == "published" and len(sample.groups) > 2:
        raise ConfigError(
            "the published fairness test compares two groups; {grouping!r} has {number}. Use fairness = "
            "'signed' in `test`, which compares every pair.",
            grouping=sample.grouping,
            number=len(sample.groups),
        )
    instead = problem(
        "status_quo = { column = ..., threshold = ... }; for decisions that are numbers, such as prices, "
        "kind = 'decision'"
    )
    _require_cut(sample.status_quo, spec, problem("the status quo"), instead)
    for name, candidate in spec.candidates.items():
        for member in (candidate, *candidate.family):
            _check_member(sample, spec, name, member)


def _require_resamples(sample: AuditRows, spec: ImprovabilitySpec) -> None:
    """Refuse too few resamples for a significant p-value with the number of pairs of groups."""
    pairs = comb(len(sample.groups), 2) if (spec.test.design, spec.test.worst_pair) == ("one_pass", None) else 1
    least = int(2 * pairs * spec.counts / spec.test.alpha)
    if pairs > 1 and spec.resamples < least:
        raise ConfigError(
            "`resamples` is {resamples:,}, too few for a p-value that could show anything with {pairs} "
            "pairs of groups and {candidates}; set it to {least:,} or more.",
            resamples=spec.resamples,
            pairs=pairs,
            candidates=count(len(spec.candidates), "candidate"),
            least=least,
        )


def _check_member(sample: AuditRows, spec: ImprovabilitySpec, name: str, member: Candidate) -> None:
    """Refuse a candidate (or a member of a search's family) that cannot be fitted or has no cut-off."""
    if member.refits:
        for package in ("sklearn", "joblib", "threadpoolctl"):
            require_extra(package, "models", f"the candidate {name!r}")
    scored = member.rule in ("estimator", "reductions") and member.kind != "decision"
    cut = spec.capacity is not None or member.threshold is not None or spec.predicts
    if scored and not cut and not sample.binary:
        raise ConfigError(
            "the candidate {name!r} predicts an outcome that is not 0 or 1, so nothing says who is "
            "selected; give `capacity`, or the candidate's `threshold`.",
            name=name,
        )
    if member.column is not None:
        _require_cut(
            sample.column_of(name, member),
            spec,
            problem("the candidate {name!r}", name=name),
            problem("the candidate's `threshold`, or for amounts kind = 'decision'"),
        )
    if member.linear_search and spec.fairness != (spec.utility,):
        raise ConfigError(
            "the candidate {name!r} searches with one utility for accuracy and fairness; here they differ. "
            "Use another rule.",
            name=name,
        )


def _require_cut(predictions: Predictions, spec: ImprovabilitySpec, whose: Message, instead: Message) -> None:
    if predictions.kind == "score" and spec.capacity is None and predictions.threshold is None:
        raise ConfigError(
            "{whose} holds scores, so nothing says who is selected; give `capacity`, or {instead}.",
            whose=whose,
            instead=instead,
        )


def _refuse_unknown_outcomes(inputs: Inputs) -> None:
    """Refuse missing outcomes that every selection would need."""
    unknown = np.flatnonzero(np.isnan(inputs.sample.outcome))
    if unknown.size:
        nobody = np.zeros(unknown.size)
        rows_of(inputs, unknown, nobody, nobody, say("data"))


def _require_some(trials: Trials) -> None:
    """Refuse a run without any tested candidate."""
    if all(trial.piece.status != OK for each in trials.values() for trial in each):
        first = next(iter(trials.values()))[0]
        raise EvenhandError("in no split was there a candidate to test: {why}", why=without_kind(first.piece.status))


# One pass through the rows --------------------------------------------------------------------------------------------


_WHERE = say("rows")


class RuleStep(NamedTuple):
    """The output of a rule in one step: candidates or reasons for none, and the choice by goal and margin."""

    made: tuple[MadeCandidate | Message, ...]
    choice: Mapping[stats.Goal, IntArray]


def run_one_pass(inputs: Inputs) -> Trials:
    """Test every candidate in one pass: a column on all rows, a fitted candidate step by step.

    The rows are put in a random order. In each step, a rule makes a candidate from all previous rows, which decides
    the next rows. The tested algorithm is the average of the steps' candidates, which assigns each person to one of
    them at random. Rows are resampled within steps. For every rule, the rows of a step are new to its candidate, so
    the sums over steps are martingales, and the rule need not be stable, as it must be for cross-fitting. No other
    rows determine which group the status quo favours, so both directions are tested.
    """
    spec, sample = inputs.spec, inputs.sample
    fitted = [name for name, candidate in spec.candidates.items() if candidate.refits]
    splits = make_splits(len(sample), spec, sample.cluster) if fitted else ()
    tasks = [(name, number) for number in range(len(splits)) for name in fitted]
    work = [(inputs, name, number, splits[number]) for name, number in tasks]
    made = dict(zip(tasks, in_parallel(make_step, work, spec.jobs), strict=True))
    return {
        name: (
            _joint_trial(inputs, name, splits, [made[name, number] for number in range(len(splits))])
            if candidate.refits
            else _column_trial(inputs, name),
        )
        for name, candidate in spec.candidates.items()
    }


def _direction(inputs: Inputs) -> stats.Direction:
    return "either" if inputs.spec.test.worst_pair is None else "named"


def _column_trial(inputs: Inputs, name: str) -> Trial:
    """Return the test of a column of existing decisions or scores."""
    rows = np.arange(len(inputs.sample))
    split = stats.Split(rows, rows)
    made = make_candidate(inputs, name, inputs.spec.candidates[name], 0, split)
    return tested(inputs, name, untested(inputs, name, 0, split), made, Comparison(_WHERE, None, _direction(inputs)))


def make_step(inputs: Inputs, name: str, number: int, split: stats.Split) -> RuleStep:
    """Make the candidates of one step from the previous rows."""
    candidate = inputs.spec.candidates[name]
    members: tuple[Candidate, ...] = (candidate,)
    choice: Mapping[stats.Goal, IntArray] = {
        goal: np.zeros(inputs.margins.of(goal).size, dtype=np.int64) for goal in inputs.goals
    }
    if candidate.rule == "search":
        members, choice = choose_members(inputs, name, number, split)
    made: list[MadeCandidate | Message] = []
    for member in members:
        try:
            made.append(make_candidate(inputs, name, member, number, split))
        except NoCandidateError as error:
            made.append(say("no_candidate", why=error.message))
    return RuleStep(tuple(made), choice)


def _joint_trial(inputs: Inputs, name: str, splits: Sequence[stats.Split], steps: Sequence[RuleStep]) -> Trial:
    """Return the joint test of all steps.

    For a search, it contains a test of each combination of choices, selected by margin.
    """
    rows = np.sort(np.concatenate([split.test for split in splits]))
    bare = untested(inputs, name, 0, stats.Split(rows, rows))
    chosen = {goal: np.stack([step.choice[goal] for step in steps]) for goal in inputs.goals}
    every, position = np.unique(np.concatenate(list(chosen.values()), axis=1), axis=1, return_inverse=True)
    members = tuple(
        _combination(inputs, name, bare, splits, [step.made[at] for step, at in zip(steps, column, strict=True)])
        for column in every.T
    )
    ends = np.cumsum([columns.shape[1] for columns in chosen.values()])[:-1]
    choice = dict(zip(chosen, np.split(position.ravel(), ends), strict=True))
    first = members[int(choice["fairness"][0])]
    return first if len(members) == 1 else replace(first, search=Search(members, choice))


def _combination(
    inputs: Inputs, name: str, bare: Trial, splits: Sequence[stats.Split], made: Sequence[MadeCandidate | Message]
) -> Trial:
    """Return the test of a combination of one candidate per step.

    Steps without a candidate have the decisions of the status quo.
    """
    pieces = tuple(
        _piece(bare, number, split.test, made_candidates)
        for number, (split, made_candidates) in enumerate(zip(splits, made, strict=True))
    )
    made_candidates = [piece.made for piece in pieces if piece.made is not None]
    bare = replace(bare, steps=pieces)
    if not made_candidates:
        return replace(bare, piece=bare.piece._replace(status=pieces[0].status))
    decisions, step = bare.piece.status_quo.values.copy(), np.empty(bare.piece.test.size, dtype=np.int64)
    for piece in pieces:
        positions = np.searchsorted(bare.piece.test, piece.test)
        step[positions] = piece.split
        if piece.made is not None:
            decisions[positions] = piece.made.decisions.values
    ties = [sum(column) for column in zip(*(each.decisions[1:] for each in made_candidates), strict=True)]
    whole = MadeCandidate(Decisions(decisions, *ties), "; ".join(dict.fromkeys(each.what for each in made_candidates)))
    return tested(inputs, name, bare, whole, Comparison(_WHERE, step, _direction(inputs)))


def _piece(bare: Trial, number: int, rows: IntArray, made: MadeCandidate | Message) -> Piece:
    values = bare.piece.status_quo.values[np.searchsorted(bare.piece.test, rows)]
    status_quo = bare.piece.status_quo._replace(values=values)
    if isinstance(made, Message):
        return Piece(number, rows, status_quo, None, made)
    return Piece(number, rows, status_quo, made, OK)
