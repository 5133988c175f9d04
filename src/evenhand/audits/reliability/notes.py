"""Remarks that a reader of a reliability audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.reliability.curves import EVERY_RUN, base_predictions
from evenhand.audits.reliability.derived import contradiction_notes
from evenhand.audits.reliability.findings import told_apart
from evenhand.audits.reliability.gaps import (
    LEAST_DAMAGED,
    LEAST_FOR_RATIOS,
    LEAST_IN_A_FOLD,
    LEAST_MOVED,
    LEAST_PEOPLE,
    RESTS_ON,
    TOO_FEW,
)
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.noise import Mistakes
from evenhand.audits.reliability.people import People
from evenhand.audits.reliability.records import CurveRecord, GapRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.trials import Trial, unused_items
from evenhand.audits.reliability.words import in_sentence
from evenhand.core.compared import Compared
from evenhand.errors import count
from evenhand.table.table import Table

FEW_REPLICATES = 20


def mistake_notes(people: People, mistakes: Mistakes, following: Sequence[str]) -> Iterator[str]:
    """Yield the remarks on a way of going wrong, contradictions first."""
    yield from contradiction_notes(people, mistakes.columns, following)
    yield from mistakes.notes


def setup_notes(
    table: Table, people: People, groups: Sequence[Compared], untouched: dict[str, str], spec: ReliabilitySpec
) -> Iterator[str]:
    """Yield the remarks on what was asked."""
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
    if spec.noisy_raters == 2 and spec.attribution is not False:
        yield "Two raters go wrong in the curves; the gap is shared out among features for one."


def _whose_noise(spec: ReliabilitySpec) -> Iterator[str]:
    """Say whether entries about all groups go wrong alike, which gaps rest on; a pilot by group has its own notes."""
    alike = not any(setting.pilot is not None and setting.pilot.by for setting in spec.noise)
    for grouping, groups in spec.group_noise.items():
        told = []
        for group, own in groups.items():
            ways = ["never" if own.times == 0 else f"{own.times:g} times as often"] if own.times != 1 else []
            ways += [f"in another way in {_named(list(own.noise))}"] if own.noise else []
            told += [f"about {group} {' and '.join(ways)}"] if ways else []
        if told:
            alike = False
            yield (
                f"Entries do not go wrong alike for all: by {grouping}, {'; '.join(told)}. Gaps rest on these settings "
                "as well as on the model."
            )
    if alike:
        yield (
            "Everybody's entries are taken to go wrong alike: equally often, and in the same ways in all groups. Where "
            "raters err more about one group, its results suffer more than is shown here; `group_noise` can say so."
        )


def model_notes(model: Model, people: People) -> Iterator[str]:
    """Yield the remarks on a model."""
    yield from model.notes
    found = base_predictions(model, people)
    if found.score.min() == found.score.max():
        yield (
            f"{model.name}: all scores are {found.score[0]:g}. Kappa and ICC are undefined: they ask how far scores "
            "tell people apart."
        )
    elif found.label.all() or not found.label.any():
        who = "everybody" if found.label.all() else "nobody"
        yield (
            f"{model.name}: {who} is selected at the threshold {model.threshold:g}. Kappa is undefined where decisions "
            "do not differ; PABAK is not."
        )


def trial_notes(trial: Trial) -> Iterator[str]:
    """Yield the remarks on one trial: mistakes that change no score, and whether they changed anything at all."""
    unused = list(unused_items(trial))
    idle = [name for name in trial.mistakes.names if not trial.changed[name]]
    if idle:
        yield (
            f"{trial.model.name}, noise {trial.mistakes.setting}: the mistakes in {_named(idle)} never changed an "
            "entry, so nothing is known of how the model would react to other ones."
        )
    deaf = [name for name in unused if name not in idle]
    if deaf:
        yield (
            f"{trial.model.name}, noise {trial.mistakes.setting}: the mistakes in {_named(deaf)} changed entries and "
            "no score; the model does not react to them."
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def outcome_notes(curves: Sequence[CurveRecord], gaps: Sequence[GapRecord], spec: ReliabilitySpec) -> Iterator[str]:
    """Yield the remarks on what was found: undefined values, groups that are too small, statistics that disagree."""
    yield from _undefined(curves)
    yield from _too_small(gaps)
    yield from _too_concentrated(gaps)
    yield from _disagreements(gaps, spec)


def _undefined(curves: Sequence[CurveRecord]) -> Iterator[str]:
    lost = [record for record in curves if record.value is None]
    sometimes = [record for record in lost if not record.status.endswith(EVERY_RUN)]
    for own, why in (
        (
            [record for record in lost if record.status.endswith(EVERY_RUN)],
            "in no fold or replicate does the statistic have a value, since the results do not differ there. That lies "
            "in the model and its threshold: PABAK and the mean squared error are defined all the same.",
        ),
        (
            sometimes,
            "in some fold or replicate the statistic has no value, and a mean over the others would be another one. "
            "Fewer folds, or a larger group, help.",
        ),
    ):
        if own:
            groups = sorted({f"{record.group} ({record.grouping})" for record in own})
            yield (
                f"{count(len(own), 'value')} of the curves {'is' if len(own) == 1 else 'are'} undefined, of "
                f"{', '.join(groups[:4])}{' and others' if len(groups) > 4 else ''}: {why}"
            )


def _too_small(gaps: Sequence[GapRecord]) -> Iterator[str]:
    """Say which gaps have no test, and for whom bands are too narrow."""
    statuses = {gap.status for gap in gaps if gap.against == "reference" and TOO_FEW in gap.status}
    few = sorted({status.removeprefix("no interval: ").partition(TOO_FEW)[0] for status in statuses})
    if few:
        more = f" and {len(few) - 4} more" if len(few) > 4 else ""
        yield (
            f"No interval, test or verdict is given for gaps of groups with fewer than {LEAST_PEOPLE} people, or with "
            f"fewer than {LEAST_IN_A_FOLD} in a fold ({LEAST_FOR_RATIOS} for kappa, ICC and their like): they would be "
            "wrong more often than they say. "
            f"{'; '.join(few[:4])}{more}. The bands of their curves are rough. A larger `min_count` leaves such groups "
            "out."
        )


def _too_concentrated(gaps: Sequence[GapRecord]) -> Iterator[str]:
    """Say for whom the damage rests on too few people."""
    found = [gap for gap in gaps if gap.against == "reference" and RESTS_ON in gap.status]
    groups = sorted({f"{g.status.partition(': for ')[2].partition(f', {RESTS_ON}')[0]} ({g.grouping})" for g in found})
    if groups:
        yield (
            f"No interval, test or verdict is given where what mistakes change in a group rests on fewer than "
            f"{LEAST_DAMAGED} people ({LEAST_MOVED} for scores), of {', '.join(groups[:4])}"
            f"{' and others' if len(groups) > 4 else ''}: with other people it could be nothing, or twice as much."
        )


def _disagreements(gaps: Sequence[GapRecord], spec: ReliabilitySpec) -> Iterator[str]:
    """Say where one statistic is clearly lower for a group and another one clearly higher."""
    found: dict[tuple[str, ...], list[GapRecord]] = {}
    differ = False
    for gap in gaps:
        if gap.noise_level is None and gap.against == "reference" and gap.value:
            found.setdefault((gap.model, gap.setting, gap.grouping, gap.group, gap.reference), []).append(gap)
    for (model, setting, grouping, group, reference), own in found.items():
        lower = [gap for gap in own if (gap.value or 0.0) < 0]
        higher = [gap for gap in own if (gap.value or 0.0) > 0]
        if all(any(told_apart(gap, spec) for gap in side) for side in (lower, higher)):
            differ = True
            yield (
                f"{model}, by {grouping}, noise {setting}: the statistics disagree. For {group}, held against "
                f"{reference}, {_listed(lower, spec)} lower and {_listed(higher, spec)} higher."
            )
    if differ:
        yield (
            "Statistics that disagree measure different things: PABAK and the spread-adjusted ICC what mistakes do, "
            "kappa also how rare selection is, ICC also how far a group's scores lie apart."
        )


def _listed(gaps: Sequence[GapRecord], spec: ReliabilitySpec) -> str:
    """Return statistics in words, those that are clear marked."""
    names = [f"{in_sentence(gap.statistic)}{' (clearly)' if told_apart(gap, spec) else ''}" for gap in gaps]
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} {'is' if len(names) == 1 else 'are'}"
