"""Remarks that a reader of a reliability audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.reliability.curves import base_predictions
from evenhand.audits.reliability.derived import contradiction_notes
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
    """Yield the remarks on one trial."""
    unused = list(unused_items(trial))
    if unused:
        named = ", ".join(repr(name) for name in unused)
        them = "it" if len(unused) == 1 else "them"
        yield f"{trial.model.name}: mistakes in {named} change no score; the model does not use {them}."


def outcome_notes(curves: Sequence[CurveRecord], gaps: Sequence[GapRecord]) -> Iterator[str]:
    """Yield the remarks on what was found: undefined values, and statistics that disagree."""
    lost = [record for record in curves if record.value is None]
    if lost:
        groups = sorted({f"{record.group} ({record.grouping})" for record in lost})
        yield (
            f"{count(len(lost), 'value')} of the curves {'is' if len(lost) == 1 else 'are'} undefined, of "
            f"{', '.join(groups[:4])}{' and others' if len(groups) > 4 else ''}: in some fold or replicate the "
            "statistic has no value, and a mean over the others would be another one. Fewer folds, or a larger group, "
            "help."
        )
    yield from _disagreements(gaps)


def _disagreements(gaps: Sequence[GapRecord]) -> Iterator[str]:
    sure: dict[tuple[str, ...], dict[str, float]] = {}
    for gap in gaps:
        if gap.noise_level is not None or gap.value is None or gap.low is None or gap.high is None:
            continue
        if gap.low > 0 or gap.high < 0:
            place = (gap.model, gap.setting, gap.grouping, gap.group, gap.reference)
            sure.setdefault(place, {})[gap.statistic] = gap.value
    for (model, setting, grouping, group, reference), found in sure.items():
        higher = [in_sentence(name) for name, value in found.items() if value > 0]
        lower = [in_sentence(name) for name, value in found.items() if value < 0]
        if higher and lower:
            yield (
                f"{model}, by {grouping}, noise {setting}: the statistics disagree. {group} is less reliable than "
                f"{reference} by {' and '.join(lower)}, and more by {' and '.join(higher)}. They measure different "
                "things: kappa falls with prevalence, ICC with a group's own spread of scores; see the parts below."
            )
