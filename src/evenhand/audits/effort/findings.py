"""The effort findings: what is told of individuals, of models, of groups, and of other choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.audits.effort.metrics import METRICS
from evenhand.audits.effort.result import DirectionRecord, EffortGap, EffortValue, FairestRecord
from evenhand.audits.effort.robustness import SpecificationCurve, fairest_records, flip_records
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.findings import Claim
from evenhand.core.formats import show
from evenhand.errors import all_of, count

SENTENCES = {
    "individual": "{where}: individual fairness at effort weight {weight} is {value:number}.",
    "direction": (
        "{where}: in {value:percent} of comparable pairs the person who came further is scored worse; a random score "
        "would give {random:percent}."
    ),
    "direction_punishes": (
        "{where}: the person who came further is scored worse in {value:percent} of comparable pairs and better in "
        "only {concordant:percent}."
    ),
    "direction_none": "{where}: reversed pairs cannot be counted.",
    "direction_groups": (
        "{where}: {group} who came further than {reference} are scored worse {value:points} points more often than "
        "{reference} who came further than {group}."
    ),
    "fairer_model": "{model} is fairer to individuals than {other} at effort weight {weight}, by {value:number}.",
    "close_models": ("{model} and {other} cannot be distinguished in individual fairness at effort weight {weight}."),
    "least_equal": "{where}, at similar effort: the {what} of {group} is {value:number} times that of {reference}.",
    "untested_models": "{model} and {other} were not tested for a difference at effort weight {weight}.",
    "least_equal_untested": (
        "{where}, at similar effort: the {what} of {group} is {value:number} times that of {reference}; not tested."
    ),
    "least_equal_unclear": (
        "{where}, at similar effort: the {what} of {group} is {value:number} times that of {reference}; no clear "
        "difference."
    ),
    "no_bin": "{where}: no bin of effort has two groups of {min_count} people or more, so none can be compared.",
    "fairest": "{models} is the fairest {scope} in {share:percent} of {ranked:count} specifications.",
    "fairest_always": "{models} is the fairest {scope} in all {ranked:count} ranked specifications.",
    "fairest_once": "{models} is the fairest {scope} in the only specification that can be ranked.",
    "fairest_tied": "{models} are the fairest {scope} in {share:percent} of {ranked:count} specifications each.",
    "fairest_unknown": "Which model is the fairest {scope} cannot be said under any specification.",
    "range": "{where}: {title} runs from {low:number} to {high:number} over all specifications.",
    "range_undefined": "{where}: {title} is undefined in all specifications.",
}

_NOT_SAMPLES = "no interval: specifications are choices, not samples"


def make_claims(
    values: Sequence[EffortValue],
    gaps: Sequence[EffortGap],
    curves: Sequence[SpecificationCurve],
    spec: EffortSpec,
    direction: Sequence[DirectionRecord] = (),
) -> Iterator[Claim]:
    """Yield what can be told: individual fairness, direction, models, the least equal effort bin, other choices."""
    individual = [value for value in values if value.metric == "eaif"]
    for value in individual:
        yield Claim(
            records=(value,),
            sentence_id="individual",
            arguments={"where": value.model, "weight": value.weight, "value": value.value},
            headline=True,
            aside=f"{show(value.violated, 'percent')} of pairs are scored more differently than their effort and "
            f"aggregate differ.{_from_rates(value)}",
        )
    yield from _direction_claims(values, gaps, direction)
    between_models = [gap for gap in gaps if gap.against == "model"]
    yield from (_model_claim(gap) for gap in between_models)
    bins: dict[tuple[str | None, str | None], list[EffortGap]] = {}
    for gap in gaps:
        if gap.metric == "eagf" and gap.bin_low is not None:
            bins.setdefault((gap.model, gap.grouping), []).append(gap)
    yield from (_least_equal_claim(grouped, spec) for grouped in bins.values())
    for curve in curves:
        yield _robustness_claim(curve, between_models, individual[0].n)


def _from_rates(record: EffortValue | EffortGap) -> str:
    """Return how much of an interval comes from uncertain rates of inertia, as a sentence."""
    share = record.rates_share
    return (
        ""
        if share is None
        else f" {show(share, 'percent')} of the interval's variance comes from the rates of inertia."
    )


def _direction_claims(
    values: Sequence[EffortValue], gaps: Sequence[EffortGap], direction: Sequence[DirectionRecord]
) -> Iterator[Claim]:
    """Yield how often effort is punished, for every model; of its other numbers and of groups what a limit asks for."""
    rows = {row.model: row for row in direction if row.grouping is None}
    for value in values:
        if value.metric == "reversed_pairs":
            yield _direction_claim(value, rows.get(str(value.model)))
        elif value.metric in ("concordant_pairs", "reversal_shortfall"):
            yield Claim(records=(value,), sentence_id="value", arguments=_value_words(value))
    for gap in gaps:
        if gap.metric == "reversed_pairs":
            sides = {"where": f"{gap.model}, by {gap.grouping}", "group": gap.group, "reference": gap.reference}
            yield Claim(records=(gap,), sentence_id="direction_groups", arguments={**sides, "value": gap.value})


def _value_words(value: EffortValue) -> dict[str, Any]:
    return {"where": value.model, "title": METRICS[value.metric].title_in_sentence, "value": value.value}


def _direction_claim(value: EffortValue, row: DirectionRecord | None) -> Claim:
    """Return how often one model punishes effort, or that there is nothing to compare."""
    where = _value_words(value)
    if row is None or row.value is None:
        return Claim(records=(value,), sentence_id="value", undefined_id="direction_none", arguments=where)
    punishes = (row.concordant or 0.0) < row.value
    return Claim(
        records=(value,),
        sentence_id="direction",
        when={"clear": {"sentence_id": "direction_punishes"}} if punishes else {},
        arguments={**where, "random": row.random, "concordant": row.concordant},
        headline=True,
        p_value=row.p_value,
        aside=_direction_aside(row),
    )


def _direction_aside(row: DirectionRecord) -> str:
    shortfall = (
        "" if row.shortfall is None else f" In a reversed pair the score is {show(row.shortfall)} worse on average."
    )
    return (
        f"{show(row.pairs, 'count')} pairs are comparable: one has more effort, from no better a start to no worse an "
        f"end. {show(row.concordant, 'percent')} are concordant, {show(row.tied, 'percent')} tied.{shortfall}"
    )


def _model_claim(gap: EffortGap) -> Claim:
    if (gap.value or 0.0) < 0:  # the fairer model first
        gap = _turned(gap)
    return Claim(
        records=(gap,),
        sentence_id="close_models",
        when={"clear": {"sentence_id": "fairer_model"}, "untested": {"sentence_id": "untested_models"}},
        arguments={"model": gap.model, "other": gap.model_reference, "weight": gap.weight, "value": gap.value},
        headline=True,
        family="all pairs of models at this weight",
    )


def _turned(gap: EffortGap) -> EffortGap:
    """Return the same difference the other way round."""
    ends = {"value": "value", "low": "high", "high": "low", "joint_low": "joint_high", "joint_high": "joint_low"}
    negated: dict[str, Any] = {end: None if (x := getattr(gap, other)) is None else -x for end, other in ends.items()}
    return replace(gap, model=gap.model_reference, model_reference=gap.model, **negated)


def _least_equal_claim(bins: Sequence[EffortGap], spec: EffortSpec) -> Claim:
    """Return the claim of one model and grouping: told by its least equal bin, judged over all bins together."""
    where = f"{bins[0].model}, by {bins[0].grouping}"
    compared = sorted((gap for gap in bins if gap.value is not None), key=lambda gap: gap.value or 0.0)
    if not compared:
        arguments = {"where": where, "min_count": spec.min_count}
        return Claim(
            records=(bins[0],), sentence_id="no_bin", undefined_id="no_bin", arguments=arguments, headline=True
        )

    def arguments_of(gap: EffortGap) -> dict[str, Any]:
        what = "mean score" if spec.parity_of == "scores" else "share selected"
        sides = {"what": what, "group": gap.group, "reference": gap.reference, "value": gap.value}
        return {"where": where, **sides}

    def bin_of(gap: EffortGap) -> str:
        why = "where parity is lowest" if gap is compared[0] else "the bin that lies most clearly beyond the limit"
        return f"Effort bin {gap.bin_low:g} to {gap.bin_high:g}, {why}.{_from_rates(gap)}"

    return Claim(
        records=tuple(compared),
        sentence_id="least_equal",
        arguments=arguments_of,
        headline=True,
        aside=bin_of,
        family=f"{all_of(len(compared), 'bins') if len(compared) > 1 else '1 bin'} compared",
        p_value=None if (p := compared[0].p_value) is None else min(1.0, len(compared) * p),  # the bin was picked
        when={
            "unclear": {"sentence_id": "least_equal_unclear"},
            "untested": {"sentence_id": "least_equal_untested"},
        },
    )


# Other choices -------------------------------------------------------------------------------------------------------


def _robustness_claim(curve: SpecificationCurve, between_models: Sequence[EffortGap], people: int) -> Claim:
    """Return how often a model is the fairest and which choice changes that most; of one model the range of its values.

    The audit's own differences of models tell whether the order of individual fairness may be chance.
    """
    fairest = list(fairest_records(curve))
    alone = len(fairest) == 1
    leaders = fairest if alone else _leaders(fairest)
    value = leaders[0].own_value if alone else leaders[0].share
    record = EffortValue(
        model=leaders[0].model if len(leaders) == 1 else None,
        grouping=curve.grouping,
        metric="specification_range" if alone else "fairest_share",
        n=people,
        value=value,
        status=_NOT_SAMPLES if value is not None else "undefined: no specification can be ranked",
    )
    sentence_id, arguments = _range(leaders[0]) if alone else _ranking(curve, leaders)
    asides = _range_asides(leaders[0]) if alone else _ranking_asides(curve, fairest, leaders, between_models)
    text = " ".join(f"{aside[:1].upper()}{aside[1:]}." for aside in (*asides, *_alike(curve)))
    return Claim(
        records=(record,),
        sentence_id=sentence_id,
        undefined_id=sentence_id,
        arguments=arguments,
        headline=True,
        aside=text,
    )


def _leaders(fairest: Sequence[FairestRecord]) -> list[FairestRecord]:
    """Return the models that are the fairest most often."""
    most = max(record.wins or 0.0 for record in fairest)
    return [record for record in fairest if (record.wins or 0.0) > most - 1e-9]


def _ranking(curve: SpecificationCurve, leaders: Sequence[FairestRecord]) -> tuple[str, dict[str, Any]]:
    lead = leaders[0]
    arguments = {
        "models": " and ".join(record.model for record in leaders),
        "scope": "to individuals" if curve.grouping is None else f"by {curve.grouping} among people of similar effort",
        "share": lead.share,
        "ranked": lead.ranked,
    }
    if not lead.ranked:
        return "fairest_unknown", arguments
    if len(leaders) > 1:
        return "fairest_tied", arguments
    if lead.share != 1:
        return "fairest", arguments
    return "fairest_always" if lead.ranked > 1 else "fairest_once", arguments


def _ranking_asides(
    curve: SpecificationCurve,
    fairest: Sequence[FairestRecord],
    leaders: Sequence[FairestRecord],
    between_models: Sequence[EffortGap],
) -> Iterator[str]:
    """Yield whether the audit's own specification agrees, what changes the order, and whether it may be chance."""
    lead = leaders[0]
    if not lead.ranked:
        yield f"none of {count(curve.size, 'specification')} gives every model a value"
        return
    if lead.share != 1:
        tied = ", counted in parts where models are tied" if any(record.tied for record in fairest) else ""
        agreement = _own_ranking(fairest, [record.model for record in leaders])
        yield f"that is {lead.wins or 0.0:,.6g} of {lead.ranked:,}{tied}{agreement}"
    if curve.size > lead.ranked:
        yield f"{curve.size - lead.ranked:,} more cannot be ranked"
    yield _most_changing(curve)
    if curve.grouping is None and (close := _close_to(lead.model, between_models)):
        yield f"the data do not distinguish it from {' and '.join(close)}"


def _own_ranking(fairest: Sequence[FairestRecord], leaders: Sequence[str]) -> str:
    """Return whether the audit's own specification agrees, as the end of a sentence."""
    models = [record.model for record in fairest if record.own_fairest]
    if not models:
        return "; the audit's own specification cannot be ranked"
    if not set(models) & set(leaders):
        return f"; in the audit's own specification it is {' and '.join(models)}"
    return ", the audit's own among them" if len(leaders) == 1 else ""


def _most_changing(curve: SpecificationCurve) -> str:
    flips = list(flip_records(curve))
    if not any(flip.comparisons for flip in flips):
        return "no choice was varied"
    most = max(flip.share or 0.0 for flip in flips)
    if most == 0:
        return "no choice alone changes it"
    titles = [
        c.title[0].lower() + c.title[1:] for c, flip in zip(curve.choices, flips, strict=True) if flip.share == most
    ]
    named = titles[0] if len(titles) == 1 else f"{', the '.join(titles[:-1])} and the {titles[-1]}"
    return f"which model is the fairest changes most with the {named} (in {show(most, 'percent')} of comparisons)"


def _close_to(model: str, between_models: Sequence[EffortGap]) -> list[str]:
    """Return the models that the audit's own differences do not distinguish from this one, at its first weight."""
    return [
        str(gap.model_reference if gap.model == model else gap.model)
        for gap in between_models
        if gap.weight == between_models[0].weight
        and model in (gap.model, gap.model_reference)
        and (gap.joint_low is None or gap.joint_high is None or gap.joint_low <= 0 <= gap.joint_high)
    ]


def _range(record: FairestRecord) -> tuple[str, dict[str, Any]]:
    title = METRICS["eaif"].title_in_sentence if record.grouping is None else f"the lowest parity by {record.grouping}"
    arguments = {"where": record.model, "title": title, "low": record.low, "high": record.high}
    return "range_undefined" if record.low is None else "range", arguments


def _range_asides(record: FairestRecord) -> Iterator[str]:
    if record.low is None:
        yield f"it has no value in any of {count(record.specifications, 'specification')}"
        return
    undefined = f" ({record.undefined:,} more are undefined)" if record.undefined else ""
    yield f"there are {count(record.specifications - record.undefined, 'specification')} with a value{undefined}"
    yield f"the audit's own value is {show(record.own_value)}"


def _alike(curve: SpecificationCurve) -> Iterator[str]:
    """Yield how many specifications have numbers of their own, where some have the same."""
    numbers = np.round(curve.value.reshape(curve.size, -1), 12)
    different = len(np.unique(np.nan_to_num(numbers, nan=-1.0), axis=0))
    if different < curve.size:
        yield f"of all {curve.size:,} specifications only {different:,} give different numbers"
