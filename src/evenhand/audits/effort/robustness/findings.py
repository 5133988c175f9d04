"""The robustness findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.effort.records import DifferenceRecord
from evenhand.audits.effort.robustness.explore import Robustness
from evenhand.audits.effort.robustness.ranking import Curve, fairest_records, flip_records
from evenhand.audits.effort.robustness.records import FairestRecord
from evenhand.core.findings import Finding
from evenhand.core.numbers import shown, shown_interval
from evenhand.errors import count

_CAVEAT = (
    "Specifications are choices, not samples: the share is no probability and rests on which choices were declared. "
    "It does not say which of them is right, nor whether other people would give the same order: all specifications "
    "have the same people, and close models may be in one order in all of them by chance."
)


def robustness_findings(robustness: Robustness, differences: Sequence[DifferenceRecord] = ()) -> Iterator[Finding]:
    """Yield for each metric how often a model is the fairest and which choice changes that most.

    With one model there is nothing to rank: the finding is the range of its values. The audit's own differences of
    models tell whether the order of individual fairness may be chance.
    """
    for curve in robustness.curves:
        fairest = list(fairest_records(curve))
        model: str | None
        if len(fairest) == 1:
            claim, value, model = _range(fairest[0]), fairest[0].own_value, fairest[0].model
        else:
            leaders = _leaders(fairest)
            claim, value = ranking_claim(curve, fairest), leaders[0].share
            if curve.grouping is None and (close := _close_to(leaders[0].model, differences)):
                claim = f"{claim.removesuffix('.')}; the data does not tell it apart from {' and '.join(close)}."
            model = leaders[0].model if len(leaders) == 1 else None
        yield Finding(
            audit="effort",
            model=model,
            grouping=curve.grouping,
            stratum=None,
            metric=curve.metric,
            kind="robustness",
            against="specifications",
            claim=claim,
            unit="",
            value=value,
            low=None,
            high=None,
            n=robustness.people,
            sentence=f"{claim.removesuffix('.')}; n = {robustness.people:,}.",
            threshold=None,
            verdict="no_threshold",
            caveat=f"{_alike(curve)}{_CAVEAT}",
        )


def ranking_claim(curve: Curve, fairest: Sequence[FairestRecord]) -> str:
    """Return who is the fairest how often, whether the audit's own specification agrees, and what changes it."""
    place = "to individuals" if curve.grouping is None else f"by {curve.grouping} among people of similar effort"
    ranked, size = fairest[0].ranked, fairest[0].specifications
    if not ranked:
        return f"Which model is the fairest {place} cannot be said under any of {count(size, 'specification')}."
    leaders = _leaders(fairest)
    names = " and ".join(record.model for record in leaders)
    wins, share = leaders[0].wins or 0.0, leaders[0].share or 0.0
    if share == 1:
        often = f"in all {count(ranked, 'specification')}" if ranked > 1 else "in the one specification"
    else:
        each = " each" if len(leaders) > 1 else ""
        often = f"in {wins:,.6g} of {count(ranked, 'specification')}{each} ({shown(share, percent=True)})"
    verb = "is" if len(leaders) == 1 else "are"
    tied = any(record.tied for record in fairest)
    parts = [
        f"{names} {verb} the fairest {place} {often}",
        *(["counted in parts where models are tied"] if tied else []),
        *([f"{size - ranked:,} more cannot be ranked"] if size > ranked else []),
        *_own(fairest, [record.model for record in leaders], share),
    ]
    return f"{', '.join(parts)}; {_most_changing(curve)}."


def _close_to(model: str, differences: Sequence[DifferenceRecord]) -> list[str]:
    """Return the models that the audit's own differences do not tell apart from one, at its own weight."""
    own = [r for r in differences if r.weight == differences[0].weight and model in (r.model_a, r.model_b)]
    return [
        r.model_b if r.model_a == model else r.model_a
        for r in own
        if r.low is None or r.high is None or r.low <= 0 <= r.high
    ]


def _leaders(fairest: Sequence[FairestRecord]) -> list[FairestRecord]:
    """Return the models that are the fairest most often."""
    most = max(record.wins or 0.0 for record in fairest)
    return [record for record in fairest if (record.wins or 0.0) > most - 1e-9]


def _alike(curve: Curve) -> str:
    """Say how many specifications have numbers of their own, where some have the same."""
    numbers = np.round(curve.value.reshape(curve.size, -1), 12)
    different = len(np.unique(np.nan_to_num(numbers, nan=-1.0), axis=0))
    if different == curve.size:
        return ""
    return f"Of all {curve.size:,} specifications only {different:,} give different numbers. "


def _own(fairest: Sequence[FairestRecord], leaders: Sequence[str], share: float) -> list[str]:
    """Say whether the audit's own specification agrees, unless all do."""
    own = [record.model for record in fairest if record.own_fairest]
    if share == 1:
        return []
    if not own:
        return ["the audit's own cannot be ranked"]
    if set(own) & set(leaders):
        return ["the audit's own among them"] if len(leaders) == 1 else []
    return [f"but in the audit's own it is {' and '.join(own)}"]


def _most_changing(curve: Curve) -> str:
    shares = [record.share or 0.0 for record in flip_records(curve)]
    most = max(shares)
    if not any(record.comparisons for record in flip_records(curve)):
        return "no choice was varied"
    if most == 0:
        return "no choice alone changes it"
    titles = [c.title[0].lower() + c.title[1:] for c, share in zip(curve.choices, shares, strict=True) if share == most]
    words = titles[0] if len(titles) == 1 else f"{', the '.join(titles[:-1])} and the {titles[-1]}"
    return f"which model is the fairest changes most with the {words} (in {shown(most, percent=True)} of comparisons)"


def _range(record: FairestRecord) -> str:
    name = "individual fairness" if record.grouping is None else f"the lowest parity by {record.grouping}"
    if record.low is None:
        return f"{record.model}: {name} is undefined in all {count(record.specifications, 'specification')}."
    defined = record.specifications - record.undefined
    lost = f" ({record.undefined:,} more are undefined)" if record.undefined else ""
    return (
        f"{record.model}: {name} runs from {shown_interval(record.low, record.high)} over "
        f"{count(defined, 'specification')}{lost}; the audit's own is {shown(record.own_value)}."
    )
