"""The findings of the effort audit, on individuals, models, groups and other choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from evenhand.audits.effort.messages import named_choice, say
from evenhand.audits.effort.metrics import METRICS
from evenhand.audits.effort.result import DirectionRecord, EffortGap, EffortValue, FairestRecord
from evenhand.audits.effort.robustness import UNRANKED, SpecificationCurve, fairest_records, flip_records
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.estimates import Estimate
from evenhand.core.findings import Claim, join_sentences
from evenhand.messages import Argument, Message
from evenhand.messages.shared import say as shared


def make_claims(
    values: Sequence[Estimate[EffortValue]],
    gaps: Sequence[Estimate[EffortGap]],
    curves: Sequence[SpecificationCurve],
    spec: EffortSpec,
    direction: Sequence[DirectionRecord] = (),
) -> Iterator[Claim]:
    """Yield the claims on individual fairness, direction, models, groups, effort bins and other choices."""
    individual = [value for value in values if value.record.metric == "eaif"]
    yield from map(_individual_claim, individual)
    yield from _direction_claims(values, gaps, direction)
    between_models = [gap for gap in gaps if gap.record.against == "model"]
    yield from map(_model_claim, between_models)
    yield from (_equal_effort_claim(gap, spec) for gap in gaps if gap.record.metric == "equal_effort")
    yield from (_bins_claim(grouped, spec) for grouped in _gaps_in_bins(gaps))
    for curve in curves:
        yield _robustness_claim(curve, [gap.record for gap in between_models], individual[0].record.n)


def _gaps_in_bins(gaps: Sequence[Estimate[EffortGap]]) -> list[list[Estimate[EffortGap]]]:
    """Return the gaps in effort bins as lists, one for each model and grouping."""
    bins: dict[tuple[str | None, str | None], list[Estimate[EffortGap]]] = {}
    for gap in gaps:
        if gap.record.metric == "eagf" and gap.record.bin_low is not None:
            bins.setdefault((gap.record.model, gap.record.grouping), []).append(gap)
    return list(bins.values())


def _individual_claim(estimate: Estimate[EffortValue]) -> Claim:
    value = estimate.record
    return Claim(
        estimates=(estimate,),
        sentence_id="individual",
        arguments={"where": value.model, "weight": value.weight, "value": value.value},
        headline=True,
        aside=join_sentences([*_individual_asides(value)]),
    )


def _individual_asides(value: EffortValue) -> Iterator[Message]:
    """Yield sentences with the share of unfair pairs, and with the value at the smallest spread."""
    yield say("violated", share=value.violated)
    if value.at_least_spread != value.value:
        yield say("at_least_spread", value=value.at_least_spread)
    yield from _rate_uncertainty(value)


def _rate_uncertainty(record: EffortValue | EffortGap) -> Iterator[Message]:
    """Yield a sentence with the share of an interval due to uncertain rates of inertia, if they are uncertain."""
    if record.rates_share is not None:
        yield say("from_rates", share=record.rates_share)


def _direction_claims(
    values: Sequence[Estimate[EffortValue]], gaps: Sequence[Estimate[EffortGap]], direction: Sequence[DirectionRecord]
) -> Iterator[Claim]:
    """Yield the claims on reversed pairs of every model.

    Claims on other metrics and on groups are findings only with a threshold.
    """
    rows = {row.model: row for row in direction if row.grouping is None}
    for value in values:
        if value.record.metric == "reversed_pairs":
            yield _direction_claim(value, rows.get(str(value.record.model)))
        elif value.record.metric in ("concordant_pairs", "reversal_shortfall"):
            yield Claim(estimates=(value,), sentence_id="value", arguments=_value_words(value.record))
    for gap in gaps:
        if gap.record.metric == "reversed_pairs":
            sides = {"where": _arguments(gap.record), "group": gap.record.group, "reference": gap.record.reference}
            arguments = {**sides, "value": gap.record.value}
            yield Claim(estimates=(gap,), sentence_id="direction_groups", arguments=arguments)


def _arguments(gap: EffortGap) -> Message:
    return shared("model_place", model=gap.model, place=shared("by", grouping=gap.grouping))


def _value_words(value: EffortValue) -> dict[str, Argument]:
    return {"where": value.model, "title": METRICS[value.metric].title_in_sentence, "value": value.value}


def _direction_claim(value: Estimate[EffortValue], row: DirectionRecord | None) -> Claim:
    """Return the claim on reversed pairs of one model, or on the lack of comparable pairs."""
    where = _value_words(value.record)
    if row is None or row.value is None:
        return Claim(estimates=(value,), sentence_id="value", undefined_id="direction_none", arguments=where)
    punishes = (row.concordant or 0.0) < row.value
    return Claim(
        estimates=(value,),
        sentence_id="direction",
        when={"significant": {"sentence_id": "direction_punishes"}} if punishes else {},
        arguments={**where, "random": row.random, "concordant": row.concordant},
        headline=True,
        p_value=row.p_value,
        aside=_direction_aside(row),
    )


def _direction_aside(row: DirectionRecord) -> Message | None:
    comparable = say("comparable", pairs=row.pairs, concordant=row.concordant, tied=row.tied)
    return join_sentences([comparable, *([] if row.shortfall is None else [say("shortfall", shortfall=row.shortfall)])])


def _model_claim(estimate: Estimate[EffortGap]) -> Claim:
    if (estimate.record.value or 0.0) < 0:  # the fairer model first
        estimate = estimate.map(_swap_models)
    gap = estimate.record
    return Claim(
        estimates=(estimate,),
        sentence_id="close_models",
        when={"significant": {"sentence_id": "fairer_model"}, "untested": {"sentence_id": "untested_models"}},
        arguments={"model": gap.model, "other": gap.model_reference, "weight": gap.weight, "value": gap.value},
        headline=True,
        aside=say("equal_spread", spread=gap.spread),
        family=say("pairs_of_models"),
    )


def _swap_models(gap: EffortGap) -> EffortGap:
    """Return the difference with the two models swapped."""
    ends = {"value": "value", "low": "high", "high": "low", "joint_low": "joint_high", "joint_high": "joint_low"}
    negated: dict[str, Any] = {end: None if (x := getattr(gap, other)) is None else -x for end, other in ends.items()}
    return replace(gap, model=str(gap.model_reference), model_reference=gap.model, **negated)


def _equal_effort_claim(estimate: Estimate[EffortGap], spec: EffortSpec) -> Claim:
    """Return the claim on the two groups of a model and grouping with the largest difference at equal effort."""
    gap = estimate.record
    if gap.group is None:
        nothing: dict[str, Argument] = {"where": _arguments(gap), "min_count": spec.min_count}
        return Claim(
            estimates=(estimate,), sentence_id="no_bin", undefined_id="no_bin", arguments=nothing, headline=True
        )
    return Claim(
        estimates=(estimate,),
        sentence_id="least_equal",
        arguments={**_parity_words(gap, spec), "title": METRICS[gap.metric].title_in_sentence},
        headline=True,
        aside=_equal_effort_aside,
        when={
            "not_significant": {"sentence_id": "least_equal_unclear"},
            "untested": {"sentence_id": "least_equal_untested"},
        },
    )


def _equal_effort_aside(gap: EffortGap) -> Message | None:
    """Return sentences on few people in a group, people without a counterpart, and uncertain rates."""
    apart = [*_few_of_one_group(gap), say("apart", n=gap.apart)] if gap.apart else []
    return join_sentences([*apart, *_rate_uncertainty(gap)])


def _few_of_one_group(gap: EffortGap) -> Iterator[Message]:
    """Yield a sentence with the number of compared people in the smaller group."""
    if gap.n_group is not None:
        sides = (gap.n_group, gap.group), (gap.n - gap.n_group, gap.reference)
        n, group = min(sides, key=itemgetter(0))
        yield say("of_smaller_group", n=n, group=group)


def _parity_words(gap: EffortGap, spec: EffortSpec) -> dict[str, Argument]:
    what = "mean score" if spec.parity_of == "scores" else "share selected"
    times = 1.0 / gap.value if gap.value else None
    return {"where": _arguments(gap), "what": what, "group": gap.group, "reference": gap.reference, "times": times}


def _bins_claim(bins: Sequence[Estimate[EffortGap]], spec: EffortSpec) -> Claim:
    """Return the claim on all effort bins of a model and grouping, a finding only with a threshold."""
    compared = sorted((gap for gap in bins if gap.record.value is not None), key=lambda gap: gap.record.value or 0.0)
    lowest = (compared or list(bins))[0].record

    def bin_of(gap: EffortGap) -> Message | None:
        key = "lowest_bin" if gap.bin_low == lowest.bin_low else "clearest_bin"
        return join_sentences([say(key, low=gap.bin_low, high=gap.bin_high), *_rate_uncertainty(gap)])

    def arguments_of(gap: EffortGap) -> dict[str, Argument]:
        return {**_parity_words(gap, spec), "min_count": spec.min_count}

    p_values = [gap.record.p_value for gap in compared if gap.record.p_value is not None]
    return Claim(
        estimates=tuple(compared) or (bins[0],),
        sentence_id="bin_parity",
        undefined_id="no_bin",
        arguments=arguments_of,
        aside=bin_of if compared else None,
        family=_compared_bins(len(compared)) if compared else None,
        p_value=min(1.0, len(compared) * min(p_values)) if p_values else None,
    )


def _compared_bins(number: int) -> Message:
    return say("one_bin" if number == 1 else "both_bins" if number == 2 else "all_bins", number=number)


# Other choices -------------------------------------------------------------------------------------------------------


def _robustness_claim(curve: SpecificationCurve, between_models: Sequence[EffortGap], people: int) -> Claim:
    """Return the claim on the fairest model and on the choice that changes it most.

    With a single model, the claim is about its range.

    The audit's own differences of models show whether the order of individual fairness could be due to chance.
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
        status=shared("no_interval", why=say("not_samples")) if value is not None else UNRANKED,
    )
    sentence_id, arguments = _range(leaders[0]) if alone else _ranking(curve, leaders)
    asides = _range_asides(leaders[0]) if alone else _ranking_asides(curve, fairest, leaders, between_models)
    return Claim(
        estimates=(Estimate(record),),
        sentence_id=sentence_id,
        undefined_id=sentence_id,
        arguments=arguments,
        headline=True,
        aside=join_sentences([*asides, *_distinct_count(curve)]),
    )


def _leaders(fairest: Sequence[FairestRecord]) -> list[FairestRecord]:
    """Return the models that are fairest in most specifications."""
    most = max(record.wins or 0.0 for record in fairest)
    return [record for record in fairest if (record.wins or 0.0) > most - 1e-9]


def _ranking(curve: SpecificationCurve, leaders: Sequence[FairestRecord]) -> tuple[str, dict[str, Argument]]:
    lead = leaders[0]
    scope = say("to_individuals") if curve.grouping is None else say("at_similar_effort", grouping=curve.grouping)
    arguments: dict[str, Argument] = {
        "models": tuple(record.model for record in leaders),
        "scope": scope,
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
) -> Iterator[Message]:
    """Yield sentences on the audit's own ranking, on choices that change the order, and on chance."""
    lead = leaders[0]
    if not lead.ranked:
        yield say("none_ranked", n=curve.size)
        return
    if lead.share != 1:
        tied = say("wins_tied") if any(record.tied for record in fairest) else None
        own_ranking = _own_ranking(fairest, [record.model for record in leaders])
        yield say("wins", wins=lead.wins or 0.0, ranked=lead.ranked, tied=tied, own=own_ranking)
    if curve.size > lead.ranked:
        yield say("more_unranked", number=curve.size - lead.ranked)
    yield _most_changing(curve)
    if curve.grouping is None and (close := _indistinguishable_models(lead.model, between_models)):
        yield say("not_distinguished", models=tuple(close))


def _own_ranking(fairest: Sequence[FairestRecord], leaders: Sequence[str]) -> Message | None:
    """Return a clause on the fairest models of the audit's own specification, or None."""
    models = [record.model for record in fairest if record.own_fairest]
    if not models:
        return say("own_unranked")
    if not set(models) & set(leaders):
        return say("own_other", models=tuple(models))
    return say("own_among_them") if len(leaders) == 1 else None


def _most_changing(curve: SpecificationCurve) -> Message:
    flips = list(flip_records(curve))
    if not any(flip.comparisons for flip in flips):
        return say("not_varied")
    most = max(flip.share or 0.0 for flip in flips)
    if most == 0:
        return say("not_changed")
    choices = tuple(named_choice(flip.choice) for flip in flips if flip.share == most)
    return say("changes_most", choices=choices, share=most)


def _indistinguishable_models(model: str, between_models: Sequence[EffortGap]) -> list[str]:
    """Return the models not significantly different from a model in the audit's differences at the first weight."""
    return [
        str(gap.model_reference if gap.model == model else gap.model)
        for gap in between_models
        if gap.weight == between_models[0].weight
        and model in (gap.model, gap.model_reference)
        and (gap.joint_low is None or gap.joint_high is None or gap.joint_low <= 0 <= gap.joint_high)
    ]


def _range(record: FairestRecord) -> tuple[str, dict[str, Argument]]:
    whole = METRICS["eaif"].title_in_sentence
    title = whole if record.grouping is None else say("lowest_parity", grouping=record.grouping)
    arguments: dict[str, Argument] = {"where": record.model, "title": title, "low": record.low, "high": record.high}
    return "range_undefined" if record.low is None else "range", arguments


def _range_asides(record: FairestRecord) -> Iterator[Message]:
    if record.low is None:
        yield say("no_value", n=record.specifications)
        return
    undefined = say("more_undefined", number=record.undefined) if record.undefined else None
    yield say("with_value", n=record.specifications - record.undefined, undefined=undefined)
    yield say("own_value", value=record.own_value)


def _distinct_count(curve: SpecificationCurve) -> Iterator[Message]:
    """Yield a sentence with the number of distinct specifications, if some give the same values."""
    numbers = np.round(curve.value.reshape(curve.size, -1), 12)
    different = len(np.unique(np.nan_to_num(numbers, nan=-1.0), axis=0))
    if different < curve.size:
        yield say("alike", size=curve.size, different=different)
