"""The splits: in each, candidates are made from the training rows and tested on the others, through joblib."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.curves import Curves, Margins, p_curves, shares_make_sense
from evenhand.audits.improvability.people import Sample
from evenhand.audits.improvability.planning import Planned, plan
from evenhand.audits.improvability.rules import Decided, Fitted, TrainingRows, decide, fit_rule, given_of, scores
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.weights import Coefficient, coefficients_of
from evenhand.errors import ConfigError, DataError, EvenhandError, count
from evenhand.stats.improvability import (
    FairnessTest,
    Goal,
    Pair,
    Rows,
    Split,
    SplitTest,
    ValueDraws,
    bootstrap_values,
    check_counts,
    component_values,
    make_rows,
    random_splits,
    worst_pair,
)
from evenhand.stats.linear_search import LinearCandidate
from evenhand.stats.types import FloatArray, IntArray


class NoCandidateError(EvenhandError):
    """A search has found no candidate in a split."""


@dataclass(frozen=True, eq=False)
class Made:
    """A candidate's decisions on the test rows, and what is known of how it was made."""

    decided: Decided
    what: str
    linear: LinearCandidate | None = None
    coefficients: tuple[Coefficient, ...] = ()


@dataclass(frozen=True, eq=False)
class Tested:
    """One candidate on one split.

    Parameters
    ----------
    candidate, split : which.
    status : "ok", or why there is no candidate here.
    test : the test rows.
    status_quo, made : the decisions of both on the test rows; `made` is None where there is no candidate.
    worst : for each fairness utility the pair of groups furthest apart on the training rows.
    values, low, high, spread : (G + 1, K, 2) values of groups and everyone, their intervals and standard errors.
    counted : (G, K, 2) rows that count.
    change : (A + F, 3) how much accuracy rises and gaps shrink, with intervals.
    curves : p-values of the components by test.
    planned : the power of the test.
    shares : whether accuracy is positive, so that it can improve by a share of itself.
    members, choice : for a search, the candidates that it chose among, and for each goal the one at each margin.
    remarks : what a reader should know.
    """

    candidate: str
    split: int
    status: str
    test: IntArray
    status_quo: Decided
    made: Made | None
    worst: tuple[Pair, ...]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    spread: FloatArray
    counted: IntArray
    change: FloatArray
    curves: Mapping[FairnessTest, Curves]
    planned: Planned | None
    shares: bool = True
    members: tuple[Tested, ...] = ()
    choice: Mapping[Goal, IntArray] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def parts(self, test: FairnessTest, goal: Goal) -> FloatArray:
        """Return (A + F, D) the p-values of all components at the margins of a goal."""
        if not self.members:
            return self.curves[test].parts(goal)
        every = np.stack([member.curves[test].parts(goal) for member in self.members])
        return np.asarray(np.take_along_axis(every, self.choice[goal][np.newaxis, np.newaxis], axis=0)[0])

    def p(self, test: FairnessTest, goal: Goal) -> FloatArray:
        """Return (D,) the p-values at the margins of a goal."""
        return np.asarray(self.parts(test, goal).max(axis=0))


@dataclass(frozen=True, eq=False)
class Setting:
    """What every split shares: the rows, the settings and the margins."""

    sample: Sample
    spec: ImprovabilitySpec
    margins: Margins

    @property
    def tests(self) -> tuple[FairnessTest, ...]:
        """The fairness tests that can be shown: the published one compares two groups, and is not studentised."""
        return ("signed", "published") if len(self.sample.groups) == 2 else ("signed",)


def rng_of(seed: int, *keys: int | str) -> np.random.Generator:
    """Return a generator of one's own for each purpose, so that adding a candidate changes no other."""
    return np.random.default_rng([seed, *(zlib.crc32(key.encode()) if isinstance(key, str) else key for key in keys)])


def run_splits(setting: Setting) -> dict[str, tuple[Tested, ...]]:
    """Return every candidate's tests, in the order of the splits."""
    spec, sample = setting.spec, setting.sample
    splits = make_splits(len(sample), spec)
    tasks = [(name, number) for number in range(len(splits)) for name in spec.candidates]
    work = ((try_candidate, (setting, name, number, splits[number])) for name, number in tasks)
    found = dict(zip(tasks, _run(work, spec.jobs), strict=True))
    return {name: tuple(found[name, number] for number in range(len(splits))) for name in spec.candidates}


def make_splits(rows: int, spec: ImprovabilitySpec) -> tuple[Split, ...]:
    """Return the splits; without training rows the one that tests on all rows."""
    if spec.train == 0:
        return (Split(np.arange(0), np.arange(rows)),)
    return random_splits(rows, spec.splits, spec.train, rng_of(spec.seed, "splits"))


def _run(work: Iterator[tuple[object, tuple[object, ...]]], jobs: int | None) -> list[Tested]:
    """Run the tasks through joblib where it is installed, so that its backends can take them."""
    if find_spec("joblib") is None:
        return [function(*arguments) for function, arguments in work]  # type: ignore[operator]
    joblib = import_module("joblib")
    found: list[Tested] = joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(function)(*arguments) for function, arguments in work
    )
    return found


def try_candidate(setting: Setting, name: str, number: int, split: Split) -> Tested:
    """Make one candidate from the training rows of one split, and test it on the others."""
    candidate = setting.spec.candidates[name]
    if candidate.rule == "search":
        from evenhand.audits.improvability.family import search_family

        return search_family(setting, name, number, split)
    return try_made(setting, name, name, candidate, number, split)


def try_made(setting: Setting, name: str, shown: str, candidate: Candidate, number: int, split: Split) -> Tested:
    """Make and test a candidate that is no search; where a linear search finds nothing, say so."""
    sample, spec = setting.sample, setting.spec
    old = decide(
        sample.given["status_quo"],
        sample.given["status_quo"].values[split.test],
        spec.capacity,
        rng_of(spec.seed, "status quo, test", number),
    )
    worst = tuple(worst_pairs(setting, number, split))
    try:
        made = make_candidate(setting, name, candidate, number, split)
    except NoCandidateError as error:
        return _nothing(setting, shown, number, split, old, worst, str(error))
    where = f"split {number + 1}" if spec.train else "the rows"
    _refuse_all_or_none(made.decided.decisions, old.decisions, shown, where)
    rows = rows_of(setting, split.test, old.decisions, made.decided.decisions, f"{where}, candidate {shown!r}")
    remarks = check_counts(rows, f"the test rows of {where}, candidate {shown!r}")
    draws = bootstrap_values(
        rows, resamples=spec.resamples, rng=rng_of(spec.seed, "bootstrap", name, number), studentised=spec.studentised
    )
    return replace(
        _tested(setting, shown, number, split.test, draws, worst, old),
        made=made,
        remarks=remarks,
        counted=rows.counted(),
    )


def _refuse_all_or_none(new: FloatArray, old: FloatArray, name: str, where: str) -> None:
    """Refuse a candidate that decides the same for everybody: it wins on an error rate without choosing anybody."""
    if not np.isin(old, (0.0, 1.0)).all():  # prices, which may be the same for all
        return
    for value, whom in ((0.0, "none"), (1.0, "all")):
        if (new == value).all():
            raise DataError(
                f"in {where}, the candidate {name!r} selects {whom} of the {count(new.size, 'test row')}, so there is "
                "nothing to compare; give a `capacity` or another `threshold`, or leave the candidate out."
            )


def rows_of(setting: Setting, which: IntArray, old: FloatArray, new: FloatArray, where: str) -> Rows:
    """Return rows with their terms under both algorithms; missing outcomes that matter are told plainly."""
    sample, spec = setting.sample, setting.spec
    try:
        return make_rows(
            sample.group[which],
            sample.outcome[which],
            old,
            new,
            spec.criteria.utilities,
            sample.groups,
            None if sample.weight is None else sample.weight[which],
        )
    except DataError as error:
        unknown = np.isnan(sample.outcome[which])
        if not unknown.any():
            raise
        chosen = int((unknown & (new != 0) & (old == 0)).sum())
        raise DataError(
            f"in {where}, the outcome of {count(int(unknown.sum()), 'row')} is missing and is needed (of these the "
            f"candidate selects {chosen:,} whom the status quo does not). Where outcomes are known only for people who "
            "were selected (selective labels), nobody can tell how others would have done: use people whose outcome is "
            "known whatever was decided, or leave such rows out with missing='drop' and say that the result then holds "
            "for the others only."
        ) from error


def make_candidate(setting: Setting, name: str, candidate: Candidate, number: int, split: Split) -> Made:
    """Return a candidate's decisions on the test rows."""
    sample, spec = setting.sample, setting.spec
    ties = rng_of(spec.seed, "ties", name, number)
    if candidate.rule == "column":
        given = given_of(sample, name, candidate)
        return Made(decide(given, given.values[split.test], spec.capacity, ties), candidate.in_words())
    fitted = fit_candidate(setting, name, candidate, number, split)
    decided = decide(fitted, scores(fitted, sample.matrix[split.test], name), spec.capacity, ties)
    return Made(decided, candidate.in_words(), fitted.linear, coefficients_of(fitted, sample))


def fit_candidate(setting: Setting, name: str, candidate: Candidate, number: int, split: Split) -> Fitted:
    """Return the algorithm that a rule makes from the training rows of a split."""
    try:
        return fit_rule(candidate, training_rows(setting, name, number, split), setting.spec.utility.name, name)
    except (ConfigError, DataError):
        raise
    except EvenhandError as error:
        if candidate.linear_search:
            raise NoCandidateError(str(error)) from error
        raise


def training_rows(setting: Setting, name: str, number: int, split: Split) -> TrainingRows:
    """Return what a selection rule may see of a split."""
    sample, spec = setting.sample, setting.spec
    own = split.train
    return TrainingRows(
        features=sample.matrix[own],
        names=sample.features,
        labels=sample.labels,
        outcome=sample.outcome[own],
        group=sample.group[own],
        groups=sample.groups,
        status_quo=old_decisions(setting, number, own),
        weight=None if sample.weight is None else sample.weight[own],
        capacity=spec.capacity,
        seed=int(rng_of(spec.seed, "fit", name, number).integers(2**31)),
    )


def old_decisions(setting: Setting, number: int, train: IntArray) -> FloatArray:
    """Return the status quo's decisions on the training rows; a capacity is that of these rows."""
    quo = setting.sample.given["status_quo"]
    ties = rng_of(setting.spec.seed, "status quo, train", number)
    return decide(quo, quo.values[train], setting.spec.capacity, ties).decisions


def worst_pairs(setting: Setting, number: int, split: Split) -> Iterator[Pair]:
    """Yield for each fairness utility the pair of groups furthest apart: named beforehand, or on the training rows."""
    sample, spec = setting.sample, setting.spec
    if spec.worst_pair is not None:
        yield from [Pair(*(sample.groups.index(name) for name in spec.worst_pair))] * len(spec.fairness)
        return
    own = split.train
    old = old_decisions(setting, number, own)
    known = ~np.isnan(sample.outcome[own])
    for utility in spec.fairness:
        yield worst_pair(
            sample.group[own][known],
            sample.outcome[own][known],
            old[known],
            utility,
            sample.groups,
            None if sample.weight is None else sample.weight[own][known],
            f"the training rows of split {number + 1}",
        )


def split_test(setting: Setting, draws: ValueDraws, worst: Sequence[Pair], kind: FairnessTest) -> SplitTest:
    """Return the test of one split; the published one is never studentised."""
    return SplitTest(draws, setting.spec.criteria, worst, kind, setting.spec.studentised and kind == "signed")


def _tested(
    setting: Setting, name: str, number: int, test: IntArray, draws: ValueDraws, worst: tuple[Pair, ...], old: Decided
) -> Tested:
    spec = setting.spec
    tests = {kind: split_test(setting, draws, worst, kind) for kind in setting.tests}
    tail = (1 - spec.confidence) / 2
    low, high = np.nanquantile(draws.values, [tail, 1 - tail], axis=0)
    estimate = _changes(tests["signed"], draws.estimate[np.newaxis])[0]
    ends = np.nanquantile(_changes(tests["signed"], draws.values), [tail, 1 - tail], axis=0)
    return Tested(
        candidate=name,
        split=number,
        status="ok",
        test=test,
        status_quo=old,
        made=None,
        worst=worst,
        values=draws.estimate,
        low=low,
        high=high,
        spread=np.nanstd(draws.values, axis=0),
        counted=np.empty(0, dtype=np.int64),
        change=np.column_stack([estimate, *ends]),
        curves={kind: p_curves(one, setting.margins) for kind, one in tests.items()},
        planned=plan(tests["signed"], spec, len(test)),
        shares=shares_make_sense(tests["signed"]),
    )


def _changes(test: SplitTest, values: FloatArray) -> FloatArray:
    """Return (J, A + F) by how much accuracy rises, and by how much the gap shrinks, for values (J, G + 1, K, 2)."""
    every = component_values(test, values)
    own = len(test.accuracy_contrasts)
    pairs = every[:, own:].reshape(len(values), len(test.worst), -1)
    return np.concatenate([every[:, :own], pairs.min(axis=2)], axis=1)


def _nothing(
    setting: Setting, name: str, number: int, split: Split, old: Decided, worst: tuple[Pair, ...], why: str
) -> Tested:
    """Return a split without a candidate: every p-value is 1, so that it speaks against rejection."""
    groups, spec = len(setting.sample.groups), setting.spec
    shape = (groups + 1, len(spec.criteria.utilities), 2)
    own = 1 if spec.accuracy_of == "everyone" else groups
    empty = np.full(shape, np.nan)
    ones = Curves(
        np.ones((own, setting.margins.accuracy.size)), np.ones((len(spec.fairness), setting.margins.fairness.size))
    )
    return Tested(
        candidate=name,
        split=number,
        status=f"no candidate: {why}",
        test=split.test,
        status_quo=old,
        made=None,
        worst=worst,
        values=empty,
        low=empty,
        high=empty,
        spread=empty,
        counted=np.zeros((groups, *shape[1:]), dtype=np.int64),
        change=np.full((own + len(spec.fairness), 3), np.nan),
        curves=dict.fromkeys(setting.tests, ones),
        planned=None,
    )
