"""The parity findings: the gaps that matter, in sentences a judge can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from evenhand.audits.parity.metrics import METRICS, NAMED_GAPS, Metric
from evenhand.audits.parity.records import STANDARDISED, GapRecord, GroupRecord
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.findings import Finding, judge, shown_amount, size_of_gap
from evenhand.core.numbers import shown
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.table.roles import TIMES
from evenhand.table.table import Table

Values = dict[tuple[str, str, str | None, str, str], GroupRecord]

_OWN_CAVEAT = "It shows what your own metric measures, no more."


def make_findings(
    gaps: Sequence[GapRecord], groups: Sequence[GroupRecord], spec: ParitySpec, table: Table
) -> tuple[Finding, ...]:
    """Return a finding for every threshold's gaps, then for the headline gaps that no threshold covers."""
    values = {(g.model, g.grouping, g.stratum, g.metric, g.group): g for g in groups}
    judged: set[GapRecord] = set()
    findings = []
    for threshold in spec.thresholds:
        matching = list(_matching(threshold, gaps, spec, table))
        judged.update(matching)
        findings += [_finding(gap, threshold, values, spec) for gap in matching]
    findings += [_finding(gap, None, values, spec) for gap in gaps if _is_headline(gap) and gap not in judged]
    return tuple(findings)


def _is_headline(gap: GapRecord) -> bool:
    metric = METRICS.get(gap.metric)
    on_the_whole = gap.stratum is None or gap.stratum == STANDARDISED
    return (
        (metric is None or metric.headline)
        and on_the_whole
        and gap.kind == "difference"
        and gap.against == "worst_pair"
    )


def _matching(threshold: Threshold, gaps: Sequence[GapRecord], spec: ParitySpec, table: Table) -> Iterator[GapRecord]:
    """Yield the gaps a threshold limits; one that limits nothing is an error, never a silent pass."""
    metric, kind, against = NAMED_GAPS.get(threshold.metric, (threshold.metric, threshold.kind, threshold.against))
    _require_known("metric", threshold.metric, [*METRICS, *NAMED_GAPS, *spec.custom])
    _require_sense(threshold, kind, METRICS.get(metric))
    if threshold.grouping is not None:
        _require_known("grouping", threshold.grouping, list(table.groupings))
    if threshold.model is not None:
        _require_known("model", threshold.model, list(table.models))
    found = False
    for gap in gaps:
        fits = (gap.metric, gap.kind, gap.against) == (metric, kind, against)
        fits &= threshold.grouping in (None, gap.grouping) and threshold.model in (None, gap.model)
        if fits and gap.stratum == threshold.stratum:
            found = True
            yield gap
    if not found:
        raise ConfigError(
            f"the threshold for {threshold.metric!r} ({threshold.in_words()}) limits nothing: no such gap was "
            "computed; "
            "check its metric, kind, grouping, model and stratum."
        )


def _require_sense(threshold: Threshold, kind: str | None, metric: Metric | None) -> None:
    """Refuse a limit that every system meets, that none does, or that asks for inequality."""
    if kind == "ratio" and (threshold.min is None or not 0 < threshold.min <= 1):
        raise ConfigError(
            f"the threshold for {threshold.metric!r} limits a ratio, of the smaller to the larger: give min= above 0 "
            f"and at most 1; got {threshold.in_words()}."
        )
    most = 1.0 if metric is None or metric.percent or metric.kind == "rank" else inf
    if kind == "difference" and (threshold.max is None or not 0 <= threshold.max < most):
        raise ConfigError(
            f"the threshold for {threshold.metric!r} limits a difference: give max= of 0 or more"
            f"{' and below 1' if most == 1.0 else ''}; got {threshold.in_words()}."
        )


def _require_known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ConfigError(f"`{what}` {name!r} of a threshold is not known; {did_you_mean(name, known)}")


def _finding(gap: GapRecord, threshold: Threshold | None, values: Values, spec: ParitySpec) -> Finding:
    metric = METRICS.get(gap.metric)
    points = _in_points(gap, metric)
    claim, aside = _claim(gap, metric, values, spec), _not_compared(gap, values)
    finding = Finding(
        audit="parity",
        model=gap.model,
        grouping=gap.grouping,
        stratum=gap.stratum,
        metric=gap.metric,
        kind=gap.kind,
        against=gap.against,
        claim=f"{claim}.{aside}",
        sentence=f"{claim}.{aside}",
        unit="points" if points else "",
        value=gap.value,
        low=gap.low,
        high=gap.high,
        n=gap.n,
        threshold=threshold.in_words(points=points) if threshold else None,
        verdict=judge(threshold, *size_of_gap(gap.kind, gap.value, gap.low, gap.high)),
        caveat=metric.caveat if metric else _OWN_CAVEAT,
    )
    if gap.value is None:
        return finding
    sure = f"{100 * spec.confidence:g}% interval {shown_amount(finding)[1]}"
    certainty = gap.status if gap.low is None and gap.high is None else sure
    return replace(finding, sentence=f"{claim}, {_amount(gap, finding)} ({certainty}); n = {gap.n:,}.{aside}")


def _amount(gap: GapRecord, finding: Finding) -> str:
    value = shown_amount(finding)[0]
    return (
        f"a ratio of {value}" if gap.kind == "ratio" else f"a gap of {value.replace(' points', ' percentage points')}"
    )


def _in_points(gap: GapRecord, metric: Metric | None) -> bool:
    return metric is not None and metric.percent and gap.kind == "difference"


def _claim(
    gap: GapRecord,
    metric: Metric | None,
    values: Values,
    spec: ParitySpec,
) -> str:
    title = metric.title_in_sentence if metric else gap.metric
    where = f"{gap.model}, by {gap.grouping}"
    if gap.stratum == STANDARDISED:
        where += f", standardised over {TIMES.join(spec.within)}"
    elif gap.stratum is not None:
        where += f", within {gap.stratum}"
    if gap.value is None or gap.group_high is None or gap.group_low is None:
        return f"{where}: the {gap.kind} in {title} is {gap.status}"
    records = (
        values.get((gap.model, gap.grouping, gap.stratum, gap.metric, name)) for name in (gap.group_high, gap.group_low)
    )
    percent = metric is not None and metric.percent
    ends = " and ".join(f"{shown(r.value, percent=percent)} for {r.group}" for r in records if r is not None)
    if gap.against == "overall":
        ends += ", set against everybody"
    worse = "" if gap.worse_off is None else f" ({gap.worse_off} worse off)"
    return f"{where}: {title} is {ends}{worse}"


def _not_compared(gap: GapRecord, values: Values) -> str:
    """Name the groups that have a value but do not enter the gap."""
    own = (gap.model, gap.grouping, gap.stratum, gap.metric)
    out = [r for key, r in values.items() if key[:4] == own and r.status.startswith(("small", "missing"))]
    if not out or gap.against != "worst_pair":
        return ""
    named = ", ".join(f"{r.group} (n = {r.n:,})" for r in out[:3])
    more = f" and {count(len(out) - 3, 'more group')}" if len(out) > 3 else ""
    return f" Not compared: {named}{more}."
