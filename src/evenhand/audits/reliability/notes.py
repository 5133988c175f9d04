"""Notes of the reliability audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.reliability.derived import features_of_groups, functions_of_groups
from evenhand.audits.reliability.estimate import Simulated, base_predictions, undefined_in_every_run, unused_items
from evenhand.audits.reliability.evidence import (
    LEAST_FOR_RATIOS,
    LEAST_IN_A_FOLD,
    LEAST_PEOPLE,
    too_few,
)
from evenhand.audits.reliability.gaps import is_significant
from evenhand.audits.reliability.gather import ScoredPeople
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import METRICS
from evenhand.audits.reliability.mistakes import Mistakes, Reasons
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.noise import GroupNoise
from evenhand.audits.reliability.result import ReliabilityGap, ReliabilityValue
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.groups import ComparedGroups
from evenhand.messages import Message
from evenhand.stats.noise import FixedFunction, Normal, fixed_functions, fixed_products
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

FEW_REPLICATES = 20
MOST_COPIES = 0.01
"""The share of copied rows above which a note warns."""
_MOST_GROUPS = 20
_MOST_NAMED = 4


# Mistakes -------------------------------------------------------------------------------------------------------------


def mistake_notes(
    people: ScoredPeople, mistakes: Mistakes, following: Sequence[str], spec: ReliabilitySpec
) -> Iterator[Message]:
    """Yield the notes on a noise setting, contradictions in the data first."""
    yield from _contradictions(people, mistakes.columns, following)
    yield from mistakes.notes
    yield from _group_notes(mistakes, people)
    yield from _limit_notes(mistakes, people, spec)
    yield from _copy_notes(people)


def _contradictions(people: ScoredPeople, perturbed: Sequence[int], following: Sequence[str]) -> Iterator[Message]:
    """Warn of fixed features that are functions of a perturbed one, because they can reverse the sign of a gap."""
    moving = {*perturbed, *people.positions(following)}
    named: dict[int, set[int]] = {}
    by_kind: dict[tuple[int, bool, bool], list[FixedFunction]] = {}
    for function in fixed_functions(people.matrix, moving):
        if function.column not in named:
            by_kind.setdefault((function.perturbed, function.repeated, function.share == 1), []).append(function)
        named.setdefault(function.column, set()).add(function.perturbed)
    for functions in by_kind.values():
        yield _function_note(people, functions)
    yield from _product_notes(people, moving, named)


def _product_notes(people: ScoredPeople, moving: set[int], named: dict[int, set[int]]) -> Iterator[Message]:
    """Warn of fixed features that are undeclared products of a perturbed feature."""
    names = list(people.names)
    indicators, labels = _group_indicators(people)
    for product in fixed_products(np.column_stack([people.matrix, *indicators]), moving):
        if product.column >= len(names) or product.perturbed in named.setdefault(product.column, set()):
            continue
        named[product.column].add(product.perturbed)
        column, source, factor = names[product.column], names[product.perturbed], [*names, *labels][product.factor]
        links = f"{{{column!r}: [{source!r}, {factor!r}]}}"
        adds_factor = product.factor < len(names)
        mend = say("let_link_product", links=links) if adds_factor else say("let_link_group")
        what = say("product", source=source, factor=factor, rows=_rows_of(product.share))
        yield _contradiction(people, [column], source, what, _remedy(mend, product.share))


def _function_note(people: ScoredPeople, functions: Sequence[FixedFunction]) -> Message:
    columns = [people.names[function.column] for function in functions]
    source = people.names[functions[0].perturbed]
    each = "" if len(columns) == 1 else "_each"
    if not functions[0].repeated:
        what, mend = say("nearly_function", source=source), say(f"let_derive{each}")
        return _contradiction(people, columns, source, what, mend)
    share = min(function.share for function in functions)
    links = ", ".join(f"{column!r}: {source!r}" for column in columns)
    mend = _remedy(say(f"let_link{each}", links=f"{{{links}}}"), share)
    return _contradiction(people, columns, source, say("function", source=source, rows=_rows_of(share)), mend)


def _remedy(mend: Message, share: float) -> Message:
    """Return the remedy for a contradiction in the data.

    If the function does not hold in every row, the remedy begins with the rows where it fails.
    """
    return mend if share == 1 else say("mend_rows", mend=mend)


def _contradiction(people: ScoredPeople, columns: Sequence[str], source: str, what: Message, mend: Message) -> Message:
    if any(column_key(column) in people.groups.codes for column in columns):
        mend = say("hold_fixed_too", source=source)
    key = "held_fixed" if len(columns) == 1 else "held_fixed_each"
    return say(key, columns=tuple(map(repr, columns)), what=what, source=source, mend=mend)


def _rows_of(share: float) -> Message:
    return say("every_row") if share == 1 else say("share_of_rows", share=f"{math.floor(1000 * share) / 10:g}")


def _group_indicators(people: ScoredPeople) -> tuple[list[FloatArray], list[str]]:
    """Return the groups as columns of 0 and 1, and the columns' names."""
    indicators, labels = [], []
    for column, codes in people.groups.codes.items():
        group_labels = people.groups.labels[column]
        for code, label in enumerate(group_labels if len(group_labels) <= _MOST_GROUPS else ()):
            if label != MISSING:
                indicators.append((codes == code).astype(np.float64))
                labels.append(label if label.startswith(f"{column} = ") else f"{column} = {label}")
    return indicators, labels


def _group_notes(mistakes: Mistakes, people: ScoredPeople) -> Iterator[Message]:
    """Note fixed features that reveal the group, and warn of perturbed features that reveal it."""
    published = mistakes.setting.published
    for name, column in features_of_groups(people).items() if published is not None else ():
        yield say("held_for_group", name=name, column=column, published=published)
    warned: set[int] = set()
    for function, column in functions_of_groups(people):
        if function.column in set(mistakes.columns) - warned:
            warned.add(function.column)
            name = people.names[function.column]
            rows = _rows_of(function.share)
            yield say("wrong_for_group", name=name, column=column, rows=rows, fixed=repr([name]))


def _limit_notes(mistakes: Mistakes, people: ScoredPeople, spec: ReliabilitySpec) -> Iterator[Message]:
    """Warn of limits that the data violate, because any mistake moves such an entry to the limit."""
    beyond: dict[tuple[int, str, float], int] = {}

    def look(column: int, minimum: float | None, maximum: float | None, members: BoolArray | bool) -> None:
        values = people.matrix[:, column]
        for side, limit, sign in (("minimum", minimum, 1.0), ("maximum", maximum, -1.0)):
            if limit is not None and (n := int(((sign * values < sign * limit) & members).sum())):
                beyond[column, side, limit] = beyond.get((column, side, limit), 0) + n

    profiles = mistakes.profiles
    for item in mistakes.items:
        for profile, model in enumerate((item.model, *item.others)):
            if isinstance(model, Normal):
                members = profiles is None or not item.others or profiles.code == profile
                look(item.columns[0], model.minimum, model.maximum, members)
    for name, least in spec.noise.minima.items() if mistakes.setting.pilot is not None else ():
        look(people.positions([name])[0], least, None, True)
    for (column, side, limit), n in beyond.items():
        key = "below_minimum" if side == "minimum" else "above_maximum"
        yield say(key, name=people.names[column], limit=limit, n=n, people=len(people.matrix))


def _copy_notes(people: ScoredPeople) -> Iterator[Message]:
    """Warn of repeated rows, because people entered twice make intervals too narrow."""
    if people.copies > MOST_COPIES * len(people.matrix):
        yield say("copies", n=people.copies, rows=len(people.matrix))


# The settings --------------------------------------------------------------------------------------------------------


def setup_notes(
    table: Table, people: ScoredPeople, groups: Sequence[ComparedGroups], untouched: Reasons, spec: ReliabilitySpec
) -> Iterator[Message]:
    """Yield the notes on the settings."""
    yield say("only_these")
    yield from _group_noise_notes(spec)
    still = tuple(name for name, why in untouched.items() if why == "groups")
    if still:
        yield say("groups_stay", columns=still)
    if table.roles.weight is not None:
        yield say("no_weights")
    if people.dropped:
        yield say("dropped", n=people.dropped)
    for grouping in groups:
        if len(grouping.groups) < 2:
            yield say("nothing_to_compare", grouping=grouping.name, least=spec.min_count)
    if spec.replicates < FEW_REPLICATES:
        yield say("few_replicates", n=spec.replicates)
    if spec.noise.noisy_raters == 2 and spec.attribution is not False:
        yield say("attributed_for_one")


def _group_noise_notes(spec: ReliabilitySpec) -> Iterator[Message]:
    """Note whether all groups have the same mistakes, an assumption of the gaps.

    Mistakes learned by group from a pilot have their own notes.
    """
    all_alike = spec.noise.pilot is None or not spec.noise.pilot.by
    for grouping, groups in spec.noise.group_noise.items():
        by_group = {group: tuple(_noise_differences(how)) for group, how in groups.items()}
        differences = tuple(say("about_group", group=group, ways=how) for group, how in by_group.items() if how)
        if differences:
            all_alike = False
            yield say("not_alike", grouping=grouping, differences=differences)
    if all_alike:
        yield say("alike")


def _noise_differences(how: GroupNoise) -> Iterator[Message]:
    """Yield the differences of one group's mistakes from all other people's."""
    if how.times != 1:
        yield say("times_as_often", times=how.times) if how.times else say("never")
    if how.noise:
        yield say("in_another_way", features=tuple(map(repr, how.noise)))


# Models and simulations -----------------------------------------------------------------------------------------------


def model_notes(model: Model, people: ScoredPeople, *, has_decisions: bool) -> Iterator[Message]:
    """Yield the notes on a model."""
    yield from model.notes
    base = base_predictions(model, people)
    if base.score.min() == base.score.max():
        yield say("one_score", model=model.name, score=float(base.score[0]))
    elif has_decisions and (base.label.all() or not base.label.any()):
        key = "selects_everybody" if base.label.all() else "selects_nobody"
        yield say(key, model=model.name, threshold=model.threshold)


def simulation_notes(simulated: Simulated) -> Iterator[Message]:
    """Yield the notes on a simulation: mistakes that changed no entry, and mistakes that changed no score."""
    model, setting = simulated.model.name, simulated.mistakes.setting.name
    unchanged = [name for name in simulated.mistakes.names if not simulated.changed[name]]
    ignored = [name for name in unused_items(simulated) if name not in unchanged]
    for key, names in (("never_changed", unchanged), ("no_reaction", ignored)):
        if names:
            yield say(key, model=model, setting=setting, features=tuple(map(repr, names)))


# The results ---------------------------------------------------------------------------------------------------------


def outcome_notes(
    values: Sequence[ReliabilityValue], gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec
) -> Iterator[Message]:
    """Yield the notes on the results: undefined values, groups too small for a test, and contradictory metrics."""
    yield from _undefined(values)
    to_reference = [gap for gap in gaps if gap.against == "reference"]
    yield from _size_notes(to_reference)
    yield from _disagreements(to_reference, spec)


def _undefined(values: Sequence[ReliabilityValue]) -> Iterator[Message]:
    undefined = [record for record in values if record.value is None]
    always = [record for record in undefined if undefined_in_every_run(record)]
    sometimes = [record for record in undefined if not undefined_in_every_run(record)]
    for key, records in (("undefined_always", always), ("undefined_sometimes", sometimes)):
        if records:
            yield say(
                key, n=len(records), groups=_named_groups({(record.group, str(record.grouping)) for record in records})
            )


def _named_groups(groups: set[tuple[str, str]]) -> Message:
    """Return a clause with the first groups, each with its grouping."""
    named = sorted((say("group_of", group=group, grouping=grouping) for group, grouping in groups), key=str)
    key = "groups_named_and_others" if len(named) > _MOST_NAMED else "groups_named"
    return say(key, groups=tuple(named[:_MOST_NAMED]))


def _size_notes(gaps: Sequence[ReliabilityGap]) -> Iterator[Message]:
    """Yield notes on groups too small for a test, and on groups with too narrow bands."""
    few = sorted({who for gap in gaps if (who := too_few(gap.status)) is not None}, key=str)
    if few:
        more = len(few) - _MOST_NAMED
        yield say(
            "too_small_and_more" if more > 0 else "too_small",
            least=LEAST_PEOPLE,
            in_a_fold=LEAST_IN_A_FOLD,
            for_ratios=LEAST_FOR_RATIOS,
            few=tuple(few[:_MOST_NAMED]),
            more=more,
        )


def _disagreements(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> Iterator[Message]:
    """Yield the groups with one metric clearly lower and another metric clearly higher than the reference."""
    by_pair: dict[tuple[str | None, ...], list[ReliabilityGap]] = {}
    for gap in gaps:
        if gap.noise_level is None and gap.value:
            pair = (gap.model, gap.setting, gap.grouping, gap.group, gap.reference)
            by_pair.setdefault(pair, []).append(gap)
    notes = [note for pair_gaps in by_pair.values() if (note := _disagreement(pair_gaps, spec)) is not None]
    yield from notes
    if notes:
        yield say("what_metrics_measure")


def _disagreement(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> Message | None:
    """Return a note on two groups with clearly contradictory gaps, or None."""
    first = gaps[0]
    lower = [gap for gap in gaps if (gap.value or 0.0) < 0]
    higher = [gap for gap in gaps if (gap.value or 0.0) > 0]
    if not all(any(is_significant(gap, spec) for gap in side) for side in (lower, higher)):
        return None
    return say(
        "metrics_disagree",
        model=first.model,
        grouping=first.grouping,
        setting=first.setting,
        group=first.group,
        reference=first.reference,
        lower=_list_metrics(lower, spec),
        higher=_list_metrics(higher, spec),
    )


def _list_metrics(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> Message:
    """Return a list of metrics that marks the significant ones."""
    named = tuple(
        say(
            "metric_clearly" if is_significant(gap, spec) else "metric_alone",
            title=METRICS[gap.metric].title_in_sentence,
        )
        for gap in gaps
    )
    return say("one_metric", metric=named[0]) if len(named) == 1 else say("several_metrics", metrics=named)
