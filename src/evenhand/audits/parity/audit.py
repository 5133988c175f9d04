"""The parity audit: compute a result from a table and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from evenhand.audits.parity.analysis import Analysis
from evenhand.audits.parity.calibration import calibration_records, number_calibration
from evenhand.audits.parity.clustered import ClusterCells
from evenhand.audits.parity.comparison import analyse
from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.findings import make_claims
from evenhand.audits.parity.four_fifths import on_the_favourable_side
from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.messages import SMALL, say
from evenhand.audits.parity.metrics import BOOTSTRAPPED, BUILT_IN, DEFAULTS, custom_metric
from evenhand.audits.parity.numbers import NumberPeople
from evenhand.audits.parity.resampled import DrawCache, Metrics, Support
from evenhand.audits.parity.result import CalibrationRecord, ParityGap, ParityResult
from evenhand.audits.parity.spec import ParitySpec
from evenhand.audits.parity.standardised_numbers import standardised
from evenhand.core.estimates import Estimate
from evenhand.core.groups import reference_of, require_reference
from evenhand.core.progress import step
from evenhand.core.records import STANDARDISED, LeftOut, Value
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, problem
from evenhand.messages import Argument, Message
from evenhand.messages.shared import say as shared
from evenhand.stats.auc import binned_auc_error
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.types import BoolArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.messages import say as of_table
from evenhand.table.roles import MISSING, TIMES
from evenhand.table.rows import NumberRows, ScoreRows
from evenhand.table.table import FINE_BINS, Table


@audit_function(ParitySpec)
def parity(table: Table, **settings: Any) -> ParityResult:
    """Compare groups' scores, decisions and errors, with intervals for every value and gap.

    Parameters
    ----------
    table
        The data with its roles.
    {settings}

    Returns
    -------
    ParityResult
        Tables `values`, `gaps` and `calibration`, findings, and what was left out.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    >>> result = eh.parity(eh.Table(data, groups="sex", predictions="hired"))
    >>> gap = result.get("gaps", metric="selection_rate", kind="difference", against="worst_pair")
    >>> round(gap.value, 2), gap.group, gap.reference
    (0.2, 'M', 'F')
    """
    return finalize(run(table, ParitySpec.parse(settings, "the arguments of parity()")))


def run(table: Table, spec: ParitySpec) -> Draft[ParityResult]:
    """Audit a table under the settings of a spec."""
    _require_roles(table)
    _refuse_draws_of_clusters(table, spec)
    require_reference(
        {name: table.cells.joint(columns)[1] for name, columns in table.groupings.items()}, spec.reference
    )
    require_known(spec.thresholds, groupings=table.groupings, models=table.models)
    spec, side_notes = on_the_favourable_side(table, spec)
    cache = DrawCache()
    parts = [part for model in table.models for part in _analyse_model(table, model, spec, cache)]
    whole = _Part(
        **{item.name: tuple(chain.from_iterable(getattr(part, item.name) for part in parts)) for item in fields(_Part)}
    )
    values = [value.record for value in whole.values]
    _require_computed(spec, {value.metric for value in values})
    dropped = [LeftOut(n=table.dropped, reason=shared("rows_dropped"))] if table.dropped else []
    notes = [*table.person_notes, *side_notes, *spec.translated, *_replacement_notes(spec), *whole.notes]
    notes += _heavy_tails([gap.record for gap in whole.gaps])
    result = ParityResult(
        spec=spec,
        findings=(),
        left_out=(*whole.left_out, *dropped),
        notes=tuple(dict.fromkeys(notes)),
        backend=table.backend,
        values=tuple(values),
        gaps=tuple(gap.record for gap in whole.gaps),
        calibration=whole.calibration,
        favourable={model: table.prediction(model).favourable for model in table.models},
    )
    return Draft(result=result, claims=list(make_claims(whole.gaps, values, spec, table.roles)), own=say)


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The results of one model: its notes, or the records of one grouping."""

    values: tuple[Estimate[Value], ...] = ()
    gaps: tuple[Estimate[ParityGap], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    calibration: tuple[CalibrationRecord, ...] = ()
    notes: tuple[Message, ...] = ()


def _analyse_model(table: Table, model: str, spec: ParitySpec, cache: DrawCache) -> Iterator[_Part]:
    """Yield the notes on a model, and then the results of each grouping."""
    metrics, notes = _metrics_for(table, model, spec)
    step(f"Counting the cells of {model}")
    prediction, scored = table.prediction(model), table.has_scores(model)
    strata = _strata(table, spec)
    cells = table.score_cells(model, strata, spec.bins) if scored else table.counts(model, strata)
    ranks, rank_notes = _ranks(table, model, metrics, spec, cells)
    numbers = table.number_rows(model, cells, _strata(table, spec)) if table.has_numbers(model) else None
    yield _Part(notes=(*_cluster_notes(table, cells), *notes, *rank_notes, *_number_notes(table, model, numbers)))
    for grouping, columns in table.groupings.items():
        step(f"Comparing {grouping} under {model}")
        whole = GroupCells.build(cells, model, columns, spec.within)
        clusters = ClusterCells.build(cells, table.roles.cluster, model, columns, within=spec.within)
        pooled = Analysis(
            model=model,
            grouping=grouping,
            stratum=None,
            cells=whole.pooled(),
            metrics=metrics,
            spec=spec,
            reference=_reference(whole, grouping, spec),
            score_range=prediction.range,
            favourable=prediction.favourable,
            ranks=(ranks, ranks.groups.joint(columns)[0]) if ranks is not None else None,
            numbers=_people_of(numbers, columns, len(whole.labels), spec),
            draws=cache,
            clusters=clusters and clusters.pooled(),
        )
        analysed = [analyse(pooled), *map(analyse, _within_strata(pooled, whole, clusters))]
        yield _Part(
            values=tuple(value for each in analysed for value in each.values),
            gaps=tuple(gap for each in analysed for gap in each.gaps),
            left_out=tuple(_left_out(pooled, [value.record for value in analysed[0].values])),
            calibration=tuple(_calibration(pooled, cells, table)),
            notes=tuple(_support_notes(pooled, whole)),
        )


def _strata(table: Table, spec: ParitySpec) -> tuple[str, ...]:
    """Return the columns that cells are counted by in addition to groups: strata, and the cluster if there is one."""
    return spec.within if table.roles.cluster is None else (*spec.within, table.roles.cluster)


def _cluster_notes(table: Table, cells: Cells) -> Iterator[Message]:
    if table.roles.cluster is not None:
        yield shared("clustered", cluster=table.roles.cluster, n=len(cells.labels[table.roles.cluster]))


def _within_strata(pooled: Analysis, whole: GroupCells, clusters: ClusterCells | None) -> Iterator[Analysis]:
    """Yield the analysis of each stratum, and then the analysis standardised over strata."""
    if not pooled.spec.within:
        return

    on_cells = _metrics_of_cells(pooled)
    for position, stratum in enumerate(whole.strata):
        cells, ranks, numbers = whole.stratum(position), _ranks_in(pooled, stratum), _numbers_in(pooled, stratum)
        part = replace(pooled, stratum=stratum, cells=cells, metrics=on_cells, ranks=ranks, numbers=numbers)
        yield replace(part, clusters=clusters and clusters.stratum(position))
    support = _support(pooled, whole)
    used = [pair for pair in on_cells if pair[0].name in support and support[pair[0].name].any()]
    part = replace(pooled, stratum=STANDARDISED, cells=whole, metrics=used, ranks=None, support=support)
    yield replace(part, clusters=clusters, numbers=_standardised_numbers(pooled, support) if used else None)


def _standardised_numbers(pooled: Analysis, support: Support) -> NumberPeople | None:
    """Return the numbers of people in the strata common to all groups; these strata are the same for all metrics."""
    people = pooled.numbers
    if people is None:
        return None
    strata = people.rows.groups.joint(pooled.spec.within)[0]
    return standardised(people, strata, np.flatnonzero(next(iter(support.values()))))


def _ranks_in(pooled: Analysis, stratum: str) -> tuple[ScoreRows, IntArray] | None:
    """Return the scores in a stratum, with their group codes."""
    if pooled.ranks is None:
        return None
    rows, codes = pooled.ranks
    strata, labels = rows.groups.joint(pooled.spec.within)
    inside = strata == labels.index(stratum)
    return rows.where(inside), codes[inside]


def _calibration(pooled: Analysis, cells: Cells, table: Table) -> Iterator[CalibrationRecord]:
    """Yield the calibration of scores or numbers; decisions have no calibration."""
    model, grouping = pooled.model, pooled.grouping
    if pooled.numbers is not None:
        labels, cluster = pooled.cells.labels, table.roles.cluster
        yield from number_calibration(pooled.numbers, labels, model, grouping, spec=pooled.spec, cluster=cluster)
    elif table.has_scores(model):
        yield from calibration_records(cells, table, model, grouping, pooled.spec)


def _people_of(rows: NumberRows | None, columns: Sequence[str], groups: int, spec: ParitySpec) -> NumberPeople | None:
    """Return people's numbers with their codes in a grouping, or None without numbers."""
    return None if rows is None else NumberPeople(rows, rows.groups.joint(columns)[0], groups, spec.tolerance)


def _numbers_in(pooled: Analysis, stratum: str) -> NumberPeople | None:
    """Return the numbers of people in a stratum, or None without numbers."""
    people = pooled.numbers
    if people is None:
        return None
    strata, labels = people.rows.groups.joint(pooled.spec.within)
    inside = strata == labels.index(stratum)
    return NumberPeople(people.rows.where(inside), people.codes[inside], people.groups, people.tolerance)


def _metrics_of_cells(pooled: Analysis) -> Metrics:
    """Return the metrics that can be computed within strata."""
    return [pair for pair in pooled.metrics if pair[0].method != "rank"]


def _support(pooled: Analysis, whole: GroupCells) -> Support:
    """Return the strata over which each metric is standardised."""
    least = pooled.spec.min_count
    metrics = [metric for metric, _ in _metrics_of_cells(pooled) if metric.can_be_standardised]
    return {metric.name: _shared_strata(whole, metric, least) for metric in metrics}


def _support_notes(pooled: Analysis, whole: GroupCells) -> Iterator[Message]:
    """Yield notes on strata left out of the standardisation, with the share of people in the strata used."""
    if not pooled.spec.within:
        return
    support = _support(pooled, whole)
    people, least = whole.n.sum(axis=(1, 2, 3)), pooled.spec.min_count
    where = shared("model_place", model=pooled.model, place=shared("by", grouping=pooled.grouping))
    factor = TIMES.join(pooled.spec.within)
    for used in dict.fromkeys(tuple(strata.tolist()) for strata in support.values() if not strata.all()):
        names = tuple(name for name, strata in support.items() if tuple(strata.tolist()) == used)
        arguments: dict[str, Argument] = {"where": where, "metrics": names, "factor": factor, "least": least}
        share = float(people[np.array(used)].sum() / people.sum())
        yield (
            say("standardised_over", **arguments, used=sum(used), strata=len(used), share=share)
            if any(used)
            else say("not_standardised", **arguments)
        )


def _shared_strata(whole: GroupCells, metric: ParityMetric, least: int) -> BoolArray:
    """Return the mask of strata in which every sufficiently large group has enough people."""
    rows = metric.people_counted(whole.n)[:, whole.named_groups]
    large = rows.sum(axis=0) >= least
    return np.asarray((rows[:, large] >= least).all(axis=1) & large.any(), dtype=np.bool_)


def _replacement_notes(spec: ParitySpec) -> Iterator[Message]:
    """Yield a note for each custom metric that replaces a built-in one."""
    for name in spec.custom:
        if name in BUILT_IN:
            yield say("own_function", metric=name)


def _require_roles(table: Table) -> None:
    if not table.models:
        raise ConfigError(
            "the table names no predictions; give `predictions={'model': 'column'}` (scores or decisions)."
        )
    if not table.groupings:
        raise ConfigError("the table names no groups; give `groups=['column', ...]`.")


def _require_computed(spec: ParitySpec, computed: set[str]) -> None:
    """Refuse a threshold for a metric that the table's roles do not allow."""
    for threshold in spec.thresholds:
        metric = spec.known_metrics()[spec.metric_of(threshold)]
        if metric.name not in computed:
            raise ConfigError(
                "the threshold for {metric!r} ({limit}) limits nothing: no model has what the metric needs, "
                "{needs:noun and}; {advice:and}, or leave it out.",
                metric=threshold.metric,
                limit=threshold.message(),
                needs=metric.needs,
                advice=_what_to_give(metric.needs),
            )


def _refuse_draws_of_clusters(table: Table, spec: ParitySpec) -> None:
    """Refuse bootstrap intervals if rows come in clusters, because the bootstrap draws single rows."""
    cluster = table.roles.cluster
    if cluster is None:
        return
    if spec.interval != "auto":
        raise ConfigError(
            "`interval` {interval!r} draws single rows, which are not independent within {cluster!r}; leave `interval` "
            "out.",
            interval=spec.interval,
            cluster=cluster,
        )


def _what_to_give(needs: Iterable[str]) -> tuple[Message, ...]:
    """Return advice on the roles and settings that a metric needs."""
    advice = {
        "outcome": problem("name an `outcome` column"),
        "scores": problem("give the model's scores instead of its decisions"),
        "scores between 0 and 1": problem("give scores that are probabilities"),
        "scores or decisions": problem("give scores or decisions"),
        "numbers": problem("say `kind='number'` of a prediction, such as a salary"),
        "a tolerance": problem("give a `tolerance`"),
    }
    return tuple(advice[need] for need in needs if need in advice)


_FUNCTIONS = {name: function for name, (_, function) in BOOTSTRAPPED.items()}


def _metrics_for(table: Table, model: str, spec: ParitySpec) -> tuple[Metrics, list[Message]]:
    """Return the metrics that the data allow, and notes on all other metrics.

    At least one model must meet the needs of each requested metric.
    """
    are_numbers = table.has_numbers(model)
    known_metrics, chosen = spec.known_metrics(), _chosen_metrics(spec, are_numbers=are_numbers)
    lacking = {name: _lacking(table, model, known_metrics[name], spec) for name in chosen}
    unmet = {name: needs for name, needs in lacking.items() if needs}
    _require_some_model(table, [known_metrics[name] for name in unmet if spec.metrics], model, spec)
    metrics = [(known_metrics[name], _FUNCTIONS.get(name)) for name in chosen if not lacking[name]]
    if are_numbers:
        unmet |= {name: ["scores or decisions"] for name in spec.custom}
    else:
        metrics += _own_metrics(spec)
    return metrics, [say("not_computed", model=model, lacking=_not_computed(unmet))] if unmet else []


def _own_metrics(spec: ParitySpec) -> Metrics:
    return [(custom_metric(name), function) for name, function in spec.custom.items()]


def _require_some_model(table: Table, metrics: Sequence[ParityMetric], model: str, spec: ParitySpec) -> None:
    """Refuse requested metrics that no model allows; the message names `model`."""
    for metric in metrics:
        if any(not _lacking(table, other, metric, spec) for other in table.models):
            continue
        needs = tuple(_lacking(table, model, metric, spec))
        raise ConfigError(
            "the metric {metric!r} needs {needs:noun and}, which model {model!r} does not have; {advice:and}, or "
            "leave the metric out.",
            metric=metric.name,
            needs=needs,
            model=model,
            advice=_what_to_give(needs),
        )


def _chosen_metrics(spec: ParitySpec, *, are_numbers: bool) -> list[str]:
    """Return the built-in metrics to compute: requested ones, or else default and limited ones of the kind."""
    limited = [spec.metric_of(threshold) for threshold in spec.thresholds]
    chosen = [name for name in dict.fromkeys(spec.metrics or (*DEFAULTS, *limited)) if name not in spec.custom]
    if spec.metrics is not None:
        return chosen
    of_kind = [name for name in chosen if (BUILT_IN[name].of_number is not None) == are_numbers]
    return [name for name in of_kind if spec.tolerance is not None or "a tolerance" not in BUILT_IN[name].needs]


def _not_computed(unmet: Mapping[str, Iterable[str]]) -> tuple[Message, ...]:
    """Return notes on metrics left out, grouped by their unmet needs.

    If scores are missing, "scores" replaces both needs of scores.
    """
    without_scores = "scores" in chain.from_iterable(unmet.values())
    by_needs: dict[tuple[str, ...], list[str]] = {}
    for name, needs in unmet.items():
        shown_needs = ("scores" if without_scores and need in _OF_SCORES else need for need in needs)
        by_needs.setdefault(tuple(dict.fromkeys(shown_needs)), []).append(name)
    return tuple(say("without", needs=needs, metrics=tuple(names)) for needs, names in by_needs.items())


_OF_SCORES = ("scores", "scores between 0 and 1")


def _lacking(table: Table, model: str, metric: ParityMetric, spec: ParitySpec) -> list[str]:
    """Return the needs of a metric that the data or the settings do not meet."""
    are_numbers = table.has_numbers(model)
    if are_numbers and metric.of_number is None:
        return ["scores or decisions"]
    low, high = table.prediction(model).range
    has = {"outcome": table.roles.outcome is not None, "scores": table.has_scores(model), "numbers": are_numbers}
    has["scores between 0 and 1"] = has["scores"] and low >= 0 and high <= 1
    has["a tolerance"] = spec.tolerance is not None
    return [need for need in metric.needs if not has[need]]


def _ranks(
    table: Table, model: str, metrics: Metrics, spec: ParitySpec, cells: Cells
) -> tuple[ScoreRows | None, list[Message]]:
    """Return people's scores if AUC or means need them, and notes on the AUC."""
    methods = {metric.method for metric, _ in metrics}
    needed = {"rank", "mean"} | ({"rate"} if table.roles.weight is not None else set())
    needed = needed if table.roles.cluster is None else {"rank"}
    is_read = table.has_scores(model) or (table.roles.weight is not None and not table.has_numbers(model))
    if not methods & needed or not is_read:
        return None, []
    step(f"Ranking the scores of {model}")
    rows = table.score_rows(model, cells, _strata(table, spec))
    if "rank" not in methods:
        return rows, []
    notes = []
    if rows.binned:
        bins = rows.score.astype(np.int64)
        counts = [
            np.bincount(bins, weights=rows.groups.n * which, minlength=FINE_BINS)
            for which in (rows.positive, ~rows.positive)
        ]
        error = float(binned_auc_error(*counts))
        notes.append(say("auc_from_bins", model=model, rows=table.rows, bins=FINE_BINS, error=error))
    if spec.within:
        notes.append(say("auc_not_within"))
    return rows, [*notes, *_other_way_round(model, rows, spec.confidence)]


def _heavy_tails(gaps: Sequence[ParityGap]) -> Iterator[Message]:
    """Warn of groups in which one person has most of the variance, so that means are not informative."""
    alone = [gap for gap in gaps if gap.rests_on == "one person" and gap.stratum is None]
    for model, grouping in dict.fromkeys((gap.model, gap.grouping) for gap in alone):
        here = (gap.metric for gap in alone if (gap.model, gap.grouping) == (model, grouping))
        where = shared("model_place", model=model, place=shared("by", grouping=grouping))
        yield say("one_person", where=where, metrics=tuple(dict.fromkeys(here)))


def _number_notes(table: Table, model: str, rows: NumberRows | None) -> Iterator[Message]:
    """Warn if the outcome equals the prediction in all rows."""
    if rows is not None and rows.outcome is not None and bool((rows.value == rows.outcome).all()):
        yield of_table("is_outcome", model=model, column=table.prediction(model).column, outcome=table.roles.outcome)


def _other_way_round(model: str, rows: ScoreRows, confidence: float) -> Iterator[Message]:
    """Warn if scores are higher for people without the outcome.

    If scores and outcomes are independent, the AUC of m and n people has the variance (m + n + 1) / (12 m n): Mann and
    Whitney (1947).
    """
    auc = rows.auc[0]
    m, n = (float(rows.groups.n[side].sum()) for side in (rows.positive, ~rows.positive))
    if m * n > 0 and auc < 0.45 and 0.5 - auc > normal_quantile(confidence) * np.sqrt((m + n + 1) / (12 * m * n)):
        yield say("other_way_round", model=model, auc=float(auc))


def _reference(cells: GroupCells, grouping: str, spec: ParitySpec) -> int:
    """Return the position of the reference group: the named group, else the largest."""
    wanted = reference_of(spec.reference, grouping, cells.labels)
    if wanted in cells.labels:
        return cells.labels.index(str(wanted))
    return int(next(group for group in cells.orders[1] if cells.labels[group] != MISSING))


def _left_out(pooled: Analysis, values: Sequence[Value]) -> Iterator[LeftOut]:
    """Yield the groups without any gap, and then the groups without gaps in some metrics."""
    cells, least = pooled.cells, pooled.spec.min_count
    sizes = dict(zip(cells.labels, cells.n.sum(axis=(0, 2, 3)).tolist(), strict=True))

    def record(group: str, n: int, reason: Message) -> LeftOut:
        return LeftOut(model=pooled.model, grouping=pooled.grouping, group=group, n=n, reason=reason)

    for label, size in sizes.items():
        if label == MISSING:
            yield record(label, size, shared("group_missing_in_gaps"))
        elif size < least:
            yield record(label, size, shared("few_people", least=least))
    metrics = pooled.spec.known_metrics()
    for value in values:
        if value.status.id in SMALL and sizes[value.group] >= least:
            title = metrics[value.metric].title_in_sentence
            yield record(value.group, value.n, say("small_in_metric", title=title, status=value.status))
