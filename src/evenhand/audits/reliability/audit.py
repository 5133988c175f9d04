"""The reliability audit: compute a result from models, a table and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from evenhand.audits.reliability.derived import make_derivation
from evenhand.audits.reliability.estimate import Setup, model_records, run_simulation, value_records
from evenhand.audits.reliability.findings import make_claims
from evenhand.audits.reliability.gaps import attribution_records, gap_key, gap_records, undefined_gaps, with_worse_off
from evenhand.audits.reliability.gather import ScoredPeople, deal_folds, gather
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.mistakes import make_mistakes, untouched_features
from evenhand.audits.reliability.mitigation import mitigation_records
from evenhand.audits.reliability.models import FOLDS, Model, needs_folds, prepare_model
from evenhand.audits.reliability.moved import move, moved_records
from evenhand.audits.reliability.notes import mistake_notes, model_notes, outcome_notes, setup_notes, simulation_notes
from evenhand.audits.reliability.numbers import with_kind, with_kind_of_models
from evenhand.audits.reliability.result import (
    AttributionRecord,
    MovedRecord,
    ReliabilityGap,
    ReliabilityResult,
    ReliabilityValue,
)
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.estimates import estimates_at
from evenhand.core.groups import ComparedGroups, compared_groups
from evenhand.core.progress import step
from evenhand.core.records import LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.table.table import Table


@audit_function(ReliabilitySpec)
def reliability(model: object, table: Table, **settings: Any) -> ReliabilityResult:
    """Measure which groups are hurt more by mistakes in a model's inputs.

    A simulated second rater enters the same people's features with mistakes. The model scores both sets of entries.
    The audit measures their agreement in each group, at rising shares of wrong entries.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator or pipeline, any object with `predict_proba` or `predict`, a function of rows,
        the path of an ONNX or skops file, or an estimator to be fitted out of fold: an unfitted one, or a name such as
        'logistic'. Several models side by side as a mapping, each also with features or a threshold of its own:
        ``{"full": pipeline, "sparse": {"estimator": "logistic", "features": ["age", "priors"]}}``.
    table
        The data with its roles; it needs groups, and an outcome where models are fitted.
    {settings}

    Returns
    -------
    ReliabilityResult
        Tables `values`, `gaps`, `attribution`, `moved`, `mitigation` and `models`.

    Notes
    -----
    `noise` by feature: ``{"age": 5, "sex": "flip"}`` is an error with standard deviation 5 and another category;
    ``{"age": {"sd": 5, "minimum": 18}}``, ``{"stage": {"ordinal": ["I", "II", "III"]}}``,
    ``{"kind": {"values": [...], "chances": [[...]]}}``, ``{"bin": {"one_hot": ["bin_a", "bin_b"]}}``; units are those
    of the raw columns. A published setting by name: ``"raez-2024/all/5"``. Learned from a table in which two raters
    rated the same people: ``{"pilot": {"data": frame, "suffixes": ["_a", "_b"]}}``, and ``"by": "race"`` in each group.

    With more to say it is a `Noise`, or a mapping of its settings:
    ``Noise(features={"age": 5}, noise_levels=[0.1, 0.2], group_noise={"race": {"Black": 1.5}})``. A mapping with
    `features`, `published` or `pilot` holds the settings of `Noise`; any other holds features.

    References
    ----------
    T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.datasets.make_defendants(2_000, seed=1)
    >>> table = eh.Table(people, groups="sex", outcome="rearrested")
    >>> def risk(rows):
    ...     return 1 / (1 + 2.7183 ** (2 - 0.4 * rows[:, 1] + 0.03 * (rows[:, 0] - 30)))
    >>> noise = {"features": {"age": 2, "arrests_year4": 1}, "noise_levels": [0.1, 0.2]}
    >>> result = eh.reliability(
    ...     risk, table, features=["age", "arrests_year4"], noise=noise, replicates=10, resamples=100
    ... )
    >>> gap = result.get("gaps", metric="pabak", against="reference", noise_level=None)
    >>> gap.group, gap.reference, gap.status.text
    ('Female', 'Male', 'ok')
    """
    return finalize(run(table, ReliabilitySpec.parse({"model": model, **settings}, "the arguments of reliability()")))


def run(table: Table, spec: ReliabilitySpec) -> Draft[ReliabilityResult]:
    """Audit models on a table under the settings of a spec."""
    require_known(spec.thresholds, groupings=table.groupings, models=spec.model)
    spec = with_kind(table, spec)
    step("Reading the features")
    people = gather(table, spec)
    groups = compared_groups(table, people.groups, spec.reference, spec.min_count, people.contents)
    derivation = make_derivation(people, table.roles.group_columns, spec)
    untouched = untouched_features(people, table.roles.group_columns, derivation.following, spec)
    settings = [make_mistakes(setting, people, table.groupings, untouched, spec) for setting in spec.noise.settings]
    notes: list[Message] = list(table.source.notes)
    models = _models(table, people, spec)
    spec = with_kind_of_models(models, people, spec)
    for mistakes in settings:
        notes += mistake_notes(people, mistakes, derivation.following, spec)
    notes += setup_notes(table, people, groups, untouched, spec)
    values: list[ReliabilityValue] = []
    compared: list[Callable[[ReliabilitySpec], Iterable[ReliabilityGap]]] = []
    attribution: list[AttributionRecord] = []
    places: list[MovedRecord] = []
    pairs = sum(len(grouping.groups) * (len(grouping.groups) - 1) // 2 for grouping in groups)
    tests = max(1, len(models) * len(settings) * pairs)
    for model in models:
        notes += model_notes(model, people, has_decisions=not spec.scoring.are_numbers)
        for mistakes in settings:
            remarked = False
            for grouping in groups:
                if len(grouping.groups) < 2:
                    compared.append(partial(undefined_gaps, model.name, mistakes.setting.name, grouping))
                if not grouping.groups:
                    continue
                setup = Setup(
                    model=model,
                    mistakes=mistakes,
                    groups=grouping,
                    people=people,
                    derivation=derivation,
                    spec=spec,
                    tests=tests,
                )
                simulated = run_simulation(setup)
                values += value_records(simulated, spec)
                compared.append(partial(gap_records, simulated))
                attribution += attribution_records(simulated, spec)
                places += moved_records(move(simulated, spec), spec)
                notes += () if remarked else simulation_notes(simulated)
                remarked = True

    def gaps_at(confidence: float) -> Iterator[ReliabilityGap]:
        spec_at_level = spec.with_confidence(confidence)
        return (with_worse_off(gap) for gaps in compared for gap in gaps(spec_at_level))

    gaps = estimates_at(gaps_at, spec.confidence, gap_key)
    result = ReliabilityResult(
        spec=spec,
        findings=(),
        left_out=tuple(_left_out(table, people, groups)),
        notes=tuple(dict.fromkeys(notes)),
        backend=table.backend,
        values=tuple(values),
        gaps=tuple(gap.record for gap in gaps),
        attribution=tuple(attribution),
        moved=tuple(places),
        mitigation=tuple(
            mitigation_records(models, people, settings=settings, groups=groups, derivation=derivation, spec=spec)
        ),
        models=tuple(model_records(models, people, are_numbers=spec.scoring.are_numbers)),
        hash=people.digest(),
    )
    return Draft(
        result=result,
        claims=list(make_claims(gaps, groups, spec)),
        own=say,
        notes=lambda draft: outcome_notes(values, draft.gaps, spec),
    )


def _models(table: Table, people: ScoredPeople, spec: ReliabilitySpec) -> list[Model]:
    fitting = any(needs_folds(source, spec) for source in spec.model.values())
    fold = deal_folds(people, spec.folds or FOLDS, spec.seed) if fitting else None
    positive = table.roles.positive
    return [
        prepare_model(name, source, people, spec=spec, positive=positive, fold=fold)
        for name, source in spec.model.items()
    ]


def _left_out(table: Table, people: ScoredPeople, groups: Sequence[ComparedGroups]) -> Iterator[LeftOut]:
    if table.dropped:
        yield LeftOut(n=table.dropped, reason=shared("rows_dropped"))
    if people.dropped:
        yield LeftOut(n=people.dropped, reason=say("missing_feature"))
    for grouping in groups:
        yield from grouping.left_out
