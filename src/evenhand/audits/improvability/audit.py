"""The improvability audit: a table and settings in, a result out."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.audits.improvability import tables
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.curves import make_margins
from evenhand.audits.improvability.findings import make_findings
from evenhand.audits.improvability.gather import Predictions, Sample, read_sample
from evenhand.audits.improvability.notes import make_notes
from evenhand.audits.improvability.reasons import power_records, reason_records, size_records
from evenhand.audits.improvability.result import ImprovabilityResult
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trials, rows_of, run_splits
from evenhand.core.progress import step
from evenhand.errors import ConfigError, EvenhandError, count, did_you_mean, require_extra
from evenhand.table.table import Table


def improvability(table: Table, **settings: Any) -> ImprovabilityResult:
    """Test whether decisions could be fairer without being less accurate.

    In each of several random splits a selection rule sees the training rows only and returns a candidate. On the test
    rows the candidate is compared with the status quo: accuracy A_g = sum u / sum w of every group, and the gap between
    groups. The null is that the candidate is not better in all of these at once; it is tested by a bootstrap of the
    test rows, with the largest p-value of the components, and the splits are combined.

    Parameters
    ----------
    table
        The data with its roles.
    status_quo
        The decisions that are challenged: a column of decisions, a column of scores (with `capacity`, or as
        ``{"column": "risk", "threshold": 0.5}``), a model of the table, or a fitted model with `predict`.
    grouping
        The grouping to compare; not needed where the table has one.
    features
        Columns that candidates may use.
    outcome
        Column of what really happened, any number. By default the table's outcome, as 0 or 1.
    utility, fairness_utility
        What a decision is worth to a group, for accuracy and for fairness (by default the same; several must all become
        fairer): 'classification', 'calibration', 'false_positive_rate', 'false_negative_rate', 'profit', or an
        `evenhand.stats.improvability.Utility` of your own.
    accuracy_of
        Whether accuracy must rise for each of the 'groups', or for 'everyone' taken together.
    candidates
        Names, or a mapping of names to settings: estimators ('linear', 'lasso', 'random_forest', 'gradient_boosting',
        ...), any scikit-learn estimator, 'reductions' (fairlearn), 'search' over a family, 'sweep' and 'milp' (linear
        classifiers), a column of decisions or scores, or a function of `TrainingRows`. Decisions, margins and power
        allow for their number: a p-value counts once for each (Bonferroni).
    capacity
        The share of rows that is selected: scores are ranked to it on the test rows. Ties at the cut are drawn at
        random from the seed, and counted.
    splits, train
        Number of splits, and the share of rows that train. With given candidates and a `worst_pair`, `train` may be 0.
    alpha
        Level of the test.
    delta
        Margins to decide at: fairness, or accuracy, must improve by this share.
    fairness_test
        'signed', which is valid at all margins, or 'published', the paper's, which is not for margins above 0: it is
        shown for comparison, and findings and verdicts rest on the signed test.
    combine
        'median' (the paper's: median p below alpha / 2) or 'exchangeable', which is valid too and has more power.
    studentised
        Whether errors are divided by their standard errors.
    worst_pair
        Two groups, the higher first, known from elsewhere to be furthest apart under the status quo.
    use_group
        Whether the columns of the grouping may be features.
    gain, reduction, power
        The improvement that planning is for, and the power wanted.
    jobs
        Processes for the splits; by default joblib's own inputs, so that its backends (Dask, Ray) can take them.
    min_count
        Groups with fewer rows are left out.
    resamples, confidence, seed
        Bootstrap resamples, confidence of the intervals, and the seed.
    thresholds
        Limits, such as ``{"metric": "improvable_fairness", "max": 0}``: the status quo must not be shown to be
        improvable by more than this share.

    Returns
    -------
    ImprovabilityResult
        Tables `splits`, `decision`, `deltas`, `curves`, `values`, `candidates`, `coefficients`, `power`, `sample_sizes`
        and `reasons`. In `decision`, `rejected` is a candidate's own test, `established` the decision with all
        candidates allowed for. `export(folder)` writes the candidates.

    References
    ----------
    E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the fairness-improvability of algorithms.

    Examples
    --------
    >>> import evenhand as eh
    >>> patients = eh.datasets.make_patients(100_000, seed=1)
    >>> result = eh.improvability(
    ...     eh.Table(patients, id="patient", groups="race"), status_quo="risk_score", outcome="illnesses",
    ...     utility="calibration", capacity=0.05, candidates="need_score", splits=3, resamples=1_000,
    ... )
    >>> [(one.target, one.rejected) for one in result.decision if one.test == "signed"][:2]
    [('fairness', True), ('joint_accuracy', True)]
    """
    return run(table, ImprovabilitySpec.parse(settings, "the arguments of improvability()"))


def run(table: Table, spec: ImprovabilitySpec) -> ImprovabilityResult:
    """Audit a table as a spec says."""
    step("Reading the rows of the improvability test")
    sample = read_sample(table, spec)
    _check(sample, spec)
    margins = make_margins(spec.test.margins, coarse=spec.test.studentised, higher=spec.utility.better == "higher")
    inputs = Inputs(sample, spec, margins)
    _refuse_unknown_outcomes(inputs)
    step(f"Testing {count(len(spec.candidates), 'candidate')} on {count(spec.test.splits, 'split')}")
    trials = run_splits(inputs)
    _require_some(trials)
    return _result(table, inputs, trials)


def _result(table: Table, inputs: Inputs, trials: Trials) -> ImprovabilityResult:
    spec = inputs.spec
    decisions = tuple(tables.decision_records(inputs, trials))
    deltas = tuple(tables.delta_records(inputs, trials))
    values = tuple(tables.value_records(inputs, trials))
    power, sizes = tuple(power_records(inputs, trials)), tuple(size_records(inputs, trials))
    reasons = tuple(reason_records(inputs, trials, decisions, power, sizes))
    return ImprovabilityResult(
        spec=spec,
        findings=make_findings(inputs, trials, decisions, deltas, values, reasons),
        left_out=inputs.sample.left_out,
        notes=(*table.source.notes, *make_notes(inputs, trials)),
        backend=table.backend,
        splits=tuple(tables.split_records(inputs, trials)),
        decision=decisions,
        deltas=deltas,
        curves=tuple(tables.curve_records(inputs, trials)),
        values=values,
        candidates=tuple(tables.candidate_records(inputs, trials)),
        coefficients=tuple(tables.coefficient_records(trials)),
        power=power,
        sample_sizes=sizes,
        reasons=reasons,
        hash=inputs.sample.digest(),
        inputs=inputs,
        trials=trials,
    )


def _check(sample: Sample, spec: ImprovabilitySpec) -> None:
    """Refuse, before the work, what no split could do."""
    for threshold in spec.thresholds:
        if threshold.grouping not in (None, sample.grouping):
            hint = did_you_mean(threshold.grouping, [sample.grouping])
            raise ConfigError(f"`grouping` {threshold.grouping!r} of a threshold is not the one tested; {hint}")
    if spec.test.fairness == "published" and len(sample.groups) > 2:
        raise ConfigError(
            f"the published fairness test compares two groups; {sample.grouping!r} has {len(sample.groups)}. Use "
            "fairness = 'signed', which compares every pair."
        )
    _require_cut(
        sample.status_quo,
        spec,
        "the status quo",
        "status_quo = { column = ..., threshold = ... }; for decisions "
        "that are numbers, such as prices, kind = 'decision'",
    )
    for name, candidate in spec.candidates.items():
        for member in (candidate, *candidate.family):
            _check_member(sample, spec, name, member)


def _check_member(sample: Sample, spec: ImprovabilitySpec, name: str, member: Candidate) -> None:
    """Refuse a candidate, or a member of a search's family, that cannot be made or cut."""
    if member.refits:
        for package in ("sklearn", "joblib", "threadpoolctl"):
            require_extra(package, "models", f"the candidate {name!r}")
    scored = member.rule in ("estimator", "reductions")
    if scored and spec.capacity is None and member.threshold is None and not sample.binary:
        raise ConfigError(
            f"the candidate {name!r} predicts an outcome that is not 0 or 1, so nothing says who is selected; give "
            "`capacity`, or the candidate's `threshold`."
        )
    if member.column is not None:
        _require_cut(sample.column_of(name, member), spec, f"the candidate {name!r}", "the candidate's `threshold`")
    if member.linear_search and spec.fairness != (spec.utility,):
        raise ConfigError(
            f"the candidate {name!r} searches with one utility for accuracy and fairness; here they differ. Use "
            "another rule."
        )


def _require_cut(predictions: Predictions, spec: ImprovabilitySpec, whose: str, instead: str) -> None:
    if predictions.kind == "score" and spec.capacity is None and predictions.threshold is None:
        raise ConfigError(f"{whose} holds scores, so nothing says who is selected; give `capacity`, or {instead}.")


def _refuse_unknown_outcomes(inputs: Inputs) -> None:
    """Say at once where a missing outcome is needed whatever a candidate selects."""
    unknown = np.flatnonzero(np.isnan(inputs.sample.outcome))
    if unknown.size:
        nobody = np.zeros(unknown.size)
        rows_of(inputs, unknown, nobody, nobody, "the data")


def _require_some(trials: Trials) -> None:
    """Refuse where no candidate has a split to be tested on; where some have, the others are noted."""
    if all(one.status != "ok" for tested in trials.values() for one in tested):
        for name, tested in trials.items():
            raise EvenhandError(
                f"in no split was there a candidate to test: {tested[0].status.removeprefix('no candidate: ')}"
                if repr(name) in tested[0].status
                else f"candidate {name!r}: in no split was there one to test: {tested[0].status}"
            )
