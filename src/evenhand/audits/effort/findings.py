"""The effort findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evenhand.audits.effort.records import BinRecord, DifferenceRecord, IndividualRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.findings import Finding, judge
from evenhand.core.numbers import shown, shown_interval
from evenhand.core.spec import Threshold

_EAIF_CAVEAT = (
    "It does not say that more effort should be rewarded, nor which of two people is treated too well; it rests on the "
    "window, the measure and the inertia chosen."
)
_PARITY_CAVEAT = (
    "People of similar effort may still differ in what the score should rest on; bins with few people are unsure."
)


def make_findings(
    individual: Sequence[IndividualRecord],
    differences: Sequence[DifferenceRecord],
    bins: Sequence[BinRecord],
    spec: EffortSpec,
) -> tuple[Finding, ...]:
    """Return findings for individual fairness, for the models' differences, and for the least equal effort bin."""
    return (
        *(_individual(record, spec) for record in individual),
        *(_difference(record, spec) for record in differences),
        *_least_equal(bins, spec),
    )


def _threshold(spec: EffortSpec, metric: str, model: str | None, grouping: str | None) -> Threshold | None:
    for threshold in spec.thresholds:
        if threshold.metric == metric and threshold.model in (None, model) and threshold.grouping in (None, grouping):
            return threshold
    return None


def _individual(record: IndividualRecord, spec: EffortSpec) -> Finding:
    claim = (
        f"{record.model}: individual fairness at effort weight {record.weight:g} is {shown(record.value)}; "
        f"{shown(record.violated, percent=True)} of pairs are scored more differently than effort and aggregate are."
    )
    threshold = _threshold(spec, "eaif", record.model, None)
    return _finding(record, claim, threshold, spec, record.model, None, "eaif", "value", record.n, _EAIF_CAVEAT)


def _difference(record: DifferenceRecord, spec: EffortSpec) -> Finding:
    if (record.value or 0.0) < 0:  # the fairer model first
        turned = [None if end is None else -end for end in (record.value, record.high, record.low)]
        record = replace(
            record, model_a=record.model_b, model_b=record.model_a, value=turned[0], low=turned[1], high=turned[2]
        )
    decided = record.low is not None and record.low > 0
    verb = "is fairer to individuals than" if decided else "cannot be told apart in individual fairness from"
    claim = f"{record.model_a} {verb} {record.model_b} at effort weight {record.weight:g}, by {shown(record.value)}."
    return _finding(record, claim, None, spec, None, None, "eaif", "difference", record.n, _EAIF_CAVEAT)


def _least_equal(bins: Sequence[BinRecord], spec: EffortSpec) -> Iterator[Finding]:
    for model, grouping in dict.fromkeys((record.model, record.grouping) for record in bins):
        own = [
            r
            for r in bins
            if (r.model, r.grouping) == (model, grouping) and r.bin_low is not None and r.value is not None
        ]
        if not own:
            continue
        least = min(own, key=lambda record: record.value or 0.0)
        claim = (
            f"{model}, by {grouping}: parity is lowest at effort {least.bin_low:g} to {least.bin_high:g}, "
            "where the mean score "
            f"of {least.group_low} is {shown(least.value)} times that of {least.group_high}."
        )
        threshold = _threshold(spec, "effort_parity", model, grouping)
        yield _finding(
            least, claim, threshold, spec, model, grouping, "effort_parity", "ratio", least.n, _PARITY_CAVEAT
        )


def _finding(
    record: IndividualRecord | DifferenceRecord | BinRecord, claim: str, threshold: Threshold | None, spec: EffortSpec,
    model: str | None, grouping: str | None, metric: str, kind: str, n: int, caveat: str,
) -> Finding:  # fmt: skip
    interval = (
        f"{100 * spec.confidence:g}% interval {shown_interval(record.low, record.high)}"
        if record.low is not None
        else record.status
    )
    return Finding(
        audit="effort", model=model, grouping=grouping, stratum=None, metric=metric, kind=kind, against="worst_pair",
        claim=claim, sentence=f"{claim.removesuffix('.')} ({interval}); n = {n:,}.", unit="", value=record.value,
        low=record.low, high=record.high, n=n, threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, record.value, record.low, record.high), caveat=caveat,
    )  # fmt: skip
