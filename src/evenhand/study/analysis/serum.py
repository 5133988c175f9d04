"""The truth serum of a study: everybody's score, and who gets the bonus."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.core.numbers import finite
from evenhand.errors import count
from evenhand.stats.truth_serum import bonus, person_scores, scores
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.analysis.records import BonusRecord
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.responses import Responses


def bonus_table(responses: Responses, spec: AnalysisSpec) -> tuple[tuple[BonusRecord, ...], list[str]]:
    """Return everybody's truth-serum score with rank and bonus, the highest first, and notes.

    The overall answer counts as 'similar' in the nearer half of the scale. Each pair is scored among the people who
    gave an answer and a prediction; a person's score is the mean over their pairs. Only who reached the end, as far as
    that is known, and took part in `bonus_answered` of the pairs that people of their condition are asked can be paid:
    the mean of one lucky pair is no score.
    """
    answers, predictions = _matrices(responses)
    if not (~np.isnan(predictions)).any():
        return (), []
    value, counted = person_scores(scores(answers, predictions, weight=spec.serum_weight))
    eligible = counted >= np.maximum(1, spec.bonus_answered * _asked(responses, answers))
    eligible &= np.asarray(responses.people.get("finished", np.ones(len(counted)))) != 0
    found = bonus(value, share=spec.bonus_share, eligible=eligible, include_ties=spec.bonus_ties)
    records = list(_records(responses, value, counted, found.chosen, found.rank, eligible))
    records.sort(key=lambda one: (one.rank is None, one.rank or 0, one.participant))
    return tuple(records), _notes(answers, predictions, found.places, found.tied, found.chosen, spec)


def _asked(responses: Responses, answers: FloatArray) -> FloatArray:
    """Return how many pairs people of each person's condition are asked: the most that anybody of it answered."""
    conditions = np.array([str(name or "") for name in responses.people["condition"]])
    _, condition = np.unique(conditions, return_inverse=True)
    most = np.zeros(condition.max(initial=0) + 1)
    np.maximum.at(most, condition, (~np.isnan(answers)).sum(axis=1))
    return most[condition]


def _matrices(responses: Responses) -> tuple[FloatArray, FloatArray]:
    """Return (people, pairs) whether a pair was called similar, and the predicted share that calls it so."""
    pairs, at = np.unique(responses.pairs().astype(str), return_inverse=True)
    overall, shape = responses.numbers("overall"), (len(responses.people["participant"]), len(pairs))
    answers, predictions = np.full(shape, np.nan), np.full(shape, np.nan)
    similar = np.where(np.isnan(overall), np.nan, overall <= responses.points / 2)
    answers[responses.person, at] = similar
    predictions[responses.person, at] = responses.numbers("predicted")
    return answers, predictions


def _records(
    responses: Responses, value: FloatArray, counted: IntArray, chosen: BoolArray, rank: IntArray, eligible: BoolArray
) -> Iterator[BonusRecord]:
    for at, participant in enumerate(responses.people["participant"]):
        status = "ok" if eligible[at] else "not eligible: unfinished, or too few answers with a prediction"
        yield BonusRecord(
            str(participant),
            str(responses.people["condition"][at] or ""),
            "overall",
            "truth_serum",
            "prelec_2004",
            int(counted[at]),
            int(rank[at]) or None,
            bool(chosen[at]),
            None,
            None,
            None,
            finite(value[at]),
            None,
            None,
            status,
        )


def _notes(
    answers: FloatArray, predictions: FloatArray, places: int, tied: int, chosen: BoolArray, spec: AnalysisSpec
) -> list[str]:
    notes = []
    missing = int((~np.isnan(answers) & np.isnan(predictions)).sum())
    if missing:
        notes.append(f"{count(missing, 'answer')} without a prediction took no part in the truth serum.")
    if tied:
        notes.append(f"{count(tied, 'person', 'people')} beyond the {places} places tie at the last one and are paid.")
    elif chosen.sum() < places and not spec.bonus_ties:
        notes.append(f"Of {places} places {places - int(chosen.sum())} go to nobody, because people tie there.")
    return notes
