"""Remarks that a reader of a reliability audit needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.reliability.derived import features_of_groups, functions_of_groups
from evenhand.audits.reliability.estimate import EVERY_RUN, Simulated, base_predictions, unused_items
from evenhand.audits.reliability.evidence import (
    LEAST_DAMAGED,
    LEAST_FOR_RATIOS,
    LEAST_IN_A_FOLD,
    LEAST_MOVED,
    LEAST_PEOPLE,
    RESTS_ON,
    TOO_FEW,
)
from evenhand.audits.reliability.gaps import is_clear
from evenhand.audits.reliability.gather import People
from evenhand.audits.reliability.metrics import METRICS
from evenhand.audits.reliability.mistakes import Mistakes
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.result import ReliabilityGap, ReliabilityValue
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.groups import ComparedGroups
from evenhand.errors import count
from evenhand.stats.noise import FixedFunction, Normal, fixed_functions, fixed_products
from evenhand.stats.types import BoolArray, FloatArray
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

FEW_REPLICATES = 20
MOST_COPIES = 0.01
"""Share of rows that are copies, above which a note warns."""
_MOST_GROUPS = 20
_MOST_NAMED = 4


# Mistakes -------------------------------------------------------------------------------------------------------------


def mistake_notes(people: People, mistakes: Mistakes, following: Sequence[str], spec: ReliabilitySpec) -> Iterator[str]:
    """Yield the remarks on a way of going wrong, contradictions first."""
    yield from _contradictions(people, mistakes.columns, following)
    yield from mistakes.notes
    yield from _group_notes(mistakes, people)
    yield from _limit_notes(mistakes, people, spec)
    yield from _copy_notes(people)


def _contradictions(people: People, perturbed: Sequence[int], following: Sequence[str]) -> Iterator[str]:
    """Warn of features that are made of a perturbed one and are held fixed: they can turn the sign of a gap."""
    moving = {*perturbed, *people.positions(following)}
    named: dict[int, set[int]] = {}
    alike: dict[tuple[int, bool, bool], list[FixedFunction]] = {}
    for function in fixed_functions(people.matrix, moving):
        if function.column not in named:
            alike.setdefault((function.perturbed, function.repeated, function.share == 1), []).append(function)
        named.setdefault(function.column, set()).add(function.perturbed)
    for functions in alike.values():
        yield _function_note(people, functions)
    yield from _product_notes(people, moving, named)


def _product_notes(people: People, moving: set[int], named: dict[int, set[int]]) -> Iterator[str]:
    """Warn of products of a perturbed feature that are held fixed, and were not named as functions of it."""
    names = list(people.names)
    indicators, labels = _group_indicators(people)
    for product in fixed_products(np.column_stack([people.matrix, *indicators]), moving):
        if product.column >= len(names) or product.perturbed in named.setdefault(product.column, set()):
            continue
        named[product.column].add(product.perturbed)
        column, source, factor = names[product.column], names[product.perturbed], [*names, *labels][product.factor]
        mend = (
            f"let it follow with linked={{{column!r}: [{source!r}, {factor!r}]}}."
            if product.factor < len(names)
            else "put that column among `features` as 0 and 1, and let the product follow with `linked`."
        )
        if product.share < 1:
            mend = f"mend the other rows, and {mend}"
        what = f"{source!r} times {factor!r} in {_rows_of(product.share)}"
        yield _contradiction(people, [column], source, what, mend)


def _function_note(people: People, functions: Sequence[FixedFunction]) -> str:
    columns = [people.names[function.column] for function in functions]
    source = people.names[functions[0].perturbed]
    links = ", ".join(f"{column!r}: {source!r}" for column in columns)
    follow = f"let {'it' if len(columns) == 1 else 'them'} follow with "
    if not functions[0].repeated:
        return _contradiction(people, columns, source, f"all but a function of {source!r}", f"{follow}`derive`.")
    share = min(function.share for function in functions)
    mend = f"{follow}linked={{{links}}}, or with `derive`."
    mend = mend if share == 1 else f"mend the other rows, and {mend}"
    return _contradiction(people, columns, source, f"a function of {source!r} in {_rows_of(share)}", mend)


def _contradiction(people: People, columns: Sequence[str], source: str, what: str, mend: str) -> str:
    listed, alone = " and ".join(map(repr, columns)), len(columns) == 1
    if any(column_key(column) in people.groups.codes for column in columns):
        mend = f"columns that define groups stay as they are, so hold {source!r} fixed too."
    return (
        f"Warning: {listed} {'is' if alone else 'are each'} {what}, and {'was' if alone else 'were'} held fixed while "
        f"{source!r} went wrong. A rater who errs about the one errs about the other, and the sign of a gap can turn "
        f"on it: {mend}"
    )


def _rows_of(share: float) -> str:
    return "every row" if share == 1 else f"{math.floor(1000 * share) / 10:g}% of rows"


def _group_indicators(people: People) -> tuple[list[FloatArray], list[str]]:
    """Return the groups as columns of 0 and 1, and what they are called."""
    indicators, labels = [], []
    for column, codes in people.groups.codes.items():
        known = people.groups.labels[column]
        for code, label in enumerate(known if len(known) <= _MOST_GROUPS else ()):
            if label != MISSING:
                indicators.append((codes == code).astype(np.float64))
                labels.append(label if label.startswith(f"{column} = ") else f"{column} = {label}")
    return indicators, labels


def _group_notes(mistakes: Mistakes, people: People) -> Iterator[str]:
    """Say which features tell the group and were held fixed for it, and warn of those that go wrong all the same."""
    published = mistakes.setting.published
    for name, column in features_of_groups(people).items() if published is not None else ():
        yield (
            f"{name!r} is a function of {column!r}, which defines groups. It was not perturbed by {published!r}, as "
            "that column would not be."
        )
    warned: set[int] = set()
    for function, column in functions_of_groups(people):
        if function.column in set(mistakes.columns) - warned:
            warned.add(function.column)
            name = people.names[function.column]
            yield (
                f"Warning: {name!r} is a function of {column!r} in {_rows_of(function.share)}, and went wrong while "
                f"people stayed in the groups that {column!r} defines. A gap may then be the work of mistakes about "
                f"the group itself: hold it fixed with fixed={[name]!r}, or leave it out of `noise`."
            )


def _limit_notes(mistakes: Mistakes, people: People, spec: ReliabilitySpec) -> Iterator[str]:
    """Warn of limits that the data itself does not keep: any mistake takes such an entry to the limit."""
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
        yield (
            f"Warning: {people.names[column]!r} is {'below' if side == 'minimum' else 'above'} its {side} {limit:g} "
            f"for {count(n, 'person', 'people')} of {len(people.matrix):,}. However small the error, a mistake takes "
            f"such an entry to {limit:g}; give a {side} that the data keeps."
        )


def _copy_notes(people: People) -> Iterator[str]:
    """Warn where rows are repeated: people who were entered twice make intervals too narrow."""
    if people.copies > MOST_COPIES * len(people.matrix):
        yield (
            f"{count(people.copies, 'row')} of {len(people.matrix):,} "
            f"{'is an exact copy' if people.copies == 1 else 'are exact copies'} of another one in all columns used. "
            "Different people may well be alike in a few columns. But where people were entered more than once, "
            "intervals are too narrow and tests too sure: leave the copies out, or name the column that tells people "
            "apart as `id`."
        )


# What was asked -------------------------------------------------------------------------------------------------------


def setup_notes(
    table: Table, people: People, groups: Sequence[ComparedGroups], untouched: dict[str, str], spec: ReliabilitySpec
) -> Iterator[str]:
    """Yield the remarks on what was asked."""
    yield "Gaps hold for these models and these mistakes; other models or mistakes may give other gaps."
    yield from _whose_noise(spec)
    still = [name for name, why in untouched.items() if why.startswith("defines groups")]
    if still:
        yield f"Columns that define groups were not perturbed: {', '.join(still)}."
    if table.roles.weight is not None:
        yield "Survey weights are not used: every person counts once."
    if people.dropped:
        yield f"{count(people.dropped, 'person', 'people')} with a missing feature were left out."
    for grouping in groups:
        if len(grouping.groups) < 2:
            yield (
                f"{grouping.name}: fewer than two groups have min_count {spec.min_count} people, so there is nothing "
                "to compare."
            )
    if spec.replicates < FEW_REPLICATES:
        yield (
            f"{count(spec.replicates, 'replicate')} of the mistakes say little of what other mistakes would give; take "
            "100 or more."
        )
    if spec.noise.noisy_raters == 2 and spec.attribution is not False:
        yield "Two raters go wrong in the curves; the gap is shared out among features for one."


def _whose_noise(spec: ReliabilitySpec) -> Iterator[str]:
    """Say whether entries about all groups go wrong alike, which gaps rest on; a pilot by group has its own notes."""
    alike = spec.noise.pilot is None or not spec.noise.pilot.by
    for grouping, groups in spec.noise.group_noise.items():
        differences = []
        for group, how in groups.items():
            ways = ["never" if how.times == 0 else f"{how.times:g} times as often"] if how.times != 1 else []
            ways += [f"in another way in {_quoted(list(how.noise))}"] if how.noise else []
            differences += [f"about {group} {' and '.join(ways)}"] if ways else []
        if differences:
            alike = False
            yield (
                f"Entries do not go wrong alike for all: by {grouping}, {'; '.join(differences)}. Gaps rest on these "
                "settings as well as on the model."
            )
    if alike:
        yield (
            "Everybody's entries are taken to go wrong alike: equally often, and in the same ways in all groups. Where "
            "raters err more about one group, its results suffer more than is shown here; `group_noise` can say so."
        )


# Models and simulations -----------------------------------------------------------------------------------------------


def model_notes(model: Model, people: People) -> Iterator[str]:
    """Yield the remarks on a model."""
    yield from model.notes
    base = base_predictions(model, people)
    if base.score.min() == base.score.max():
        yield (
            f"{model.name}: all scores are {base.score[0]:g}. Kappa and ICC are undefined: they ask how far scores "
            "tell people apart."
        )
    elif base.label.all() or not base.label.any():
        who = "everybody" if base.label.all() else "nobody"
        yield (
            f"{model.name}: {who} is selected at the threshold {model.threshold:g}. Kappa is undefined where decisions "
            "do not differ; PABAK is not."
        )


def simulation_notes(simulated: Simulated) -> Iterator[str]:
    """Yield the remarks on one simulation: mistakes that changed nothing, and mistakes that changed no score."""
    place = f"{simulated.model.name}, noise {simulated.mistakes.setting.name}"
    without_effect = list(unused_items(simulated))
    unchanged = [name for name in simulated.mistakes.names if not simulated.changed[name]]
    if unchanged:
        yield (
            f"{place}: the mistakes in {_quoted(unchanged)} never changed an entry, so nothing is known of how the "
            "model would react to other ones."
        )
    ignored = [name for name in without_effect if name not in unchanged]
    if ignored:
        yield (
            f"{place}: the mistakes in {_quoted(ignored)} changed entries and no score; the model does not react to "
            "them."
        )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


# What came out --------------------------------------------------------------------------------------------------------


def outcome_notes(
    values: Sequence[ReliabilityValue], gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec
) -> Iterator[str]:
    """Yield the remarks on the numbers: undefined values, groups that are too small, metrics that disagree."""
    yield from _undefined(values)
    to_reference = [gap for gap in gaps if gap.against == "reference"]
    yield from _too_small(to_reference)
    yield from _too_concentrated(to_reference)
    yield from _disagreements(to_reference, spec)


def _undefined(values: Sequence[ReliabilityValue]) -> Iterator[str]:
    undefined = [record for record in values if record.value is None]
    always = [record for record in undefined if record.status.endswith(EVERY_RUN)]
    sometimes = [record for record in undefined if not record.status.endswith(EVERY_RUN)]
    for records, why in (
        (
            always,
            "in no fold or replicate does the metric have a value, since the results do not differ there. That lies "
            "in the model and its threshold: PABAK and the mean squared error are defined all the same.",
        ),
        (
            sometimes,
            "in some fold or replicate the metric has no value, and a mean over the others would be another one. "
            "Fewer folds, or a larger group, help.",
        ),
    ):
        if records:
            groups = sorted({f"{record.group} ({record.grouping})" for record in records})
            yield (
                f"{count(len(records), 'value')} of the curves {'is' if len(records) == 1 else 'are'} undefined, of "
                f"{_first(groups)}: {why}"
            )


def _first(groups: Sequence[str]) -> str:
    return f"{', '.join(groups[:_MOST_NAMED])}{' and others' if len(groups) > _MOST_NAMED else ''}"


_FOR_FEW = "PABAK, averaged over noise levels, is tested there by limits that hold for any number of people."


def _too_small(gaps: Sequence[ReliabilityGap]) -> Iterator[str]:
    """Say which gaps have no test, and for whom bands are too narrow."""
    statuses = {gap.status for gap in gaps if TOO_FEW in gap.status}
    few = sorted({status.removeprefix("no interval: ").partition(TOO_FEW)[0] for status in statuses})
    if few:
        more = f" and {len(few) - _MOST_NAMED} more" if len(few) > _MOST_NAMED else ""
        yield (
            f"The bootstrap gives no interval, test or verdict for gaps of groups with fewer than {LEAST_PEOPLE} "
            f"people, or with fewer than {LEAST_IN_A_FOLD} in a fold ({LEAST_FOR_RATIOS} for kappa, ICC and their "
            f"like): they would be wrong more often than they say. {'; '.join(few[:_MOST_NAMED])}{more}. {_FOR_FEW} "
            "The bands of their curves are rough. A larger `min_count` leaves such groups out."
        )


def _too_concentrated(gaps: Sequence[ReliabilityGap]) -> Iterator[str]:
    """Say for whom the damage rests on too few people."""
    groups = sorted(
        {
            f"{gap.status.partition(': for ')[2].partition(f', {RESTS_ON}')[0]} ({gap.grouping})"
            for gap in gaps
            if RESTS_ON in gap.status
        }
    )
    if groups:
        yield (
            f"The bootstrap gives no interval, test or verdict where what mistakes change in a group rests on fewer "
            f"than {LEAST_DAMAGED} people ({LEAST_MOVED} for scores), of {_first(groups)}: with other people it could "
            f"be nothing, or twice as much. {_FOR_FEW}"
        )


def _disagreements(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> Iterator[str]:
    """Say where one metric is clearly lower for a group and another one clearly higher."""
    by_pair: dict[tuple[str | None, ...], list[ReliabilityGap]] = {}
    for gap in gaps:
        if gap.noise_level is None and gap.value:
            pair = (gap.model, gap.setting, gap.grouping, gap.group, gap.reference)
            by_pair.setdefault(pair, []).append(gap)
    notes = [note for pair_gaps in by_pair.values() if (note := _disagreement(pair_gaps, spec)) is not None]
    yield from notes
    if notes:
        yield (
            "Metrics that disagree measure different things: PABAK and the spread-adjusted ICC what mistakes do, "
            "kappa also how rare selection is, ICC also how far a group's scores lie apart."
        )


def _disagreement(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> str | None:
    """Return what is to be said of the gaps of two groups, None where they do not clearly disagree."""
    first = gaps[0]
    lower = [gap for gap in gaps if (gap.value or 0.0) < 0]
    higher = [gap for gap in gaps if (gap.value or 0.0) > 0]
    if not all(any(is_clear(gap, spec) for gap in side) for side in (lower, higher)):
        return None
    return (
        f"{first.model}, by {first.grouping}, noise {first.setting}: the metrics disagree. For {first.group}, compared "
        f"with {first.reference}, {_listed(lower, spec)} lower and {_listed(higher, spec)} higher."
    )


def _listed(gaps: Sequence[ReliabilityGap], spec: ReliabilitySpec) -> str:
    """Return metrics in words, those that differ clearly marked."""
    names = [f"{METRICS[gap.metric].title_in_sentence}{' (clearly)' if is_clear(gap, spec) else ''}" for gap in gaps]
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} {'is' if len(names) == 1 else 'are'}"
