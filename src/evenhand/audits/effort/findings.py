"""The effort findings in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.audits.effort.records import BinRecord, DifferenceRecord, IndividualRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.findings import Finding, Verdict, judge
from evenhand.core.numbers import shown, shown_interval
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, count

_EAIF_CAVEAT = (
    "It does not say that more effort should be rewarded, nor which of two people is treated too well; it rests on the "
    "window, the measure and the inertia chosen."
)
_DIFFERENCE_CAVEAT = (
    "The interval holds for all pairs of models at this weight together. The scores are taken as they are: another fit "
    "of the same model could turn the order round."
)
_PARITY_CAVEAT = (
    "People of similar effort may still differ in what the score should rest on; bins with few people are unsure."
)
_ALL_BINS = "The interval and the verdict hold for all {bins} compared together."
_PARITY = ("effort_parity", "ratio")


def make_findings(
    individual: Sequence[IndividualRecord],
    differences: Sequence[DifferenceRecord],
    bins: Sequence[BinRecord],
    spec: EffortSpec,
) -> tuple[Finding, ...]:
    """Return findings for individual fairness, for the models' differences, and for the least equal effort bin.

    What several thresholds limit is a finding for each of them; a threshold that limits nothing is an error.
    """
    by_place: dict[tuple[str, str], list[BinRecord]] = {}
    for record in bins:
        by_place.setdefault((record.model, record.grouping), []).append(record)
    for threshold in spec.thresholds:
        if threshold.metric == "effort_parity" and not any(_limits(threshold, *place) for place in by_place):
            raise ConfigError(
                f"the threshold for 'effort_parity' ({threshold.in_words()}) limits nothing: the table names no groups."
            )
    return (
        *(_individual(r, limit, spec) for r in individual for limit in _limits_of(spec, "eaif", r.model)),
        *(_difference(record, spec) for record in differences),
        *(
            _least_equal(own, place, limit, spec)
            for place, own in by_place.items()
            for limit in _limits_of(spec, "effort_parity", *place)
        ),
    )


def _limits(threshold: Threshold, model: str, grouping: str | None = None) -> bool:
    return threshold.model in (None, model) and threshold.grouping in (None, grouping)


def _limits_of(spec: EffortSpec, metric: str, model: str, grouping: str | None = None) -> list[Threshold | None]:
    """Return the thresholds for something, or one None where there is none."""
    found = [t for t in spec.thresholds if t.metric == metric and _limits(t, model, grouping)]
    return [*found] or [None]


def _individual(record: IndividualRecord, threshold: Threshold | None, spec: EffortSpec) -> Finding:
    claim = (
        f"{record.model}: individual fairness at effort weight {record.weight:g} is {shown(record.value)}; "
        f"{shown(record.violated, percent=True)} of pairs are scored more differently than effort and aggregate are."
    )
    verdict = judge(threshold, record.value, record.low, record.high)
    return _finding(record, claim, threshold, verdict, spec, (record.model, None), ("eaif", "value"), _EAIF_CAVEAT)


def _difference(record: DifferenceRecord, spec: EffortSpec) -> Finding:
    if (record.value or 0.0) < 0:  # the fairer model first
        turned = [None if end is None else -end for end in (record.value, record.high, record.low)]
        record = replace(
            record, model_a=record.model_b, model_b=record.model_a, value=turned[0], low=turned[1], high=turned[2]
        )
    decided = record.low is not None and record.low > 0
    verb = "is fairer to individuals than" if decided else "cannot be told apart in individual fairness from"
    claim = f"{record.model_a} {verb} {record.model_b} at effort weight {record.weight:g}, by {shown(record.value)}."
    what = ("eaif", "difference")
    return _finding(record, claim, None, "no_threshold", spec, (None, None), what, _DIFFERENCE_CAVEAT)


def _least_equal(
    bins: Sequence[BinRecord], place: tuple[str, str], threshold: Threshold | None, spec: EffortSpec
) -> Finding:
    """Return the finding of the least equal bin, judged by limits that hold for all bins together.

    A limit is broken when one bin lies beyond it, and met when every bin that compares groups is shown to meet it.
    """
    where = f"{place[0]}, by {place[1]}"
    own = [record for record in bins if record.value is not None and record.bin_low is not None]
    if not own:
        claim = f"{where}: no bin of effort has two groups of {spec.min_count} people or more; none can be compared."
        nothing = replace(bins[0], value=None, low=None, high=None, status="undefined")
        verdict: Verdict = "no_threshold" if threshold is None else "insufficient_evidence"
        return _finding(nothing, claim, threshold, verdict, spec, place, _PARITY, _PARITY_CAVEAT)
    least, verdict = _judged(own, threshold)
    claim = (
        f"{where}: parity is lowest at effort {least.bin_low:g} to {least.bin_high:g}, where the mean score of "
        f"{least.group_low} is {shown(least.value)} times that of {least.group_high}."
    )
    caveat = f"{_ALL_BINS.format(bins=count(len(own), 'bin'))} {_PARITY_CAVEAT}"
    simultaneous = replace(least, low=least.all_low, high=least.all_high)
    return _finding(simultaneous, claim, threshold, verdict, spec, place, _PARITY, caveat)


def _judged(bins: Sequence[BinRecord], threshold: Threshold | None) -> tuple[BinRecord, Verdict]:
    """Return the bin to show, the one that breaks the limit most clearly or has the lowest parity, and the verdict."""
    least = min(bins, key=lambda record: record.value or 0.0)
    if threshold is None:
        return least, "no_threshold"
    verdicts = [judge(threshold, r.value, r.all_low, r.all_high) for r in bins]
    if "does_not_meet" in verdicts:
        broken = [r for r, verdict in zip(bins, verdicts, strict=True) if verdict == "does_not_meet"]
        return min(broken, key=lambda record: record.all_high or 0.0), "does_not_meet"
    return least, "meets" if all(verdict == "meets" for verdict in verdicts) else "insufficient_evidence"


def _finding(
    record: IndividualRecord | DifferenceRecord | BinRecord,
    claim: str,
    threshold: Threshold | None,
    verdict: Verdict,
    spec: EffortSpec,
    place: tuple[str | None, str | None],
    what: tuple[str, str],
    caveat: str,
) -> Finding:
    interval = (
        f"{100 * spec.confidence:g}% interval {shown_interval(record.low, record.high)}"
        if record.low is not None
        else record.status
    )
    return Finding(
        audit="effort",
        model=place[0],
        grouping=place[1],
        stratum=None,
        metric=what[0],
        kind=what[1],
        against="worst_pair",
        claim=claim,
        sentence=f"{claim.removesuffix('.')} ({interval}); n = {record.n:,}.",
        unit="",
        value=record.value,
        low=record.low,
        high=record.high,
        n=record.n,
        threshold=threshold.in_words() if threshold else None,
        verdict=verdict,
        caveat=caveat,
    )
