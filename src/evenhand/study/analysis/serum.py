"""The truth serum of a study: everybody's score, and who gets the bonus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.core.formats import finite
from evenhand.errors import count
from evenhand.stats.truth_serum import Bonus, bonus, person_scores, scores
from evenhand.stats.types import FloatArray
from evenhand.study.analysis.result import BonusRecord, SerumRecord
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
    paid = bonus(value, share=spec.bonus_share, eligible=eligible, include_ties=spec.bonus_ties)
    records = [
        BonusRecord(
            participant=str(participant),
            condition=str(responses.people["condition"][person] or ""),
            pairs=int(counted[person]),
            value=finite(value[person]),
            rank=int(paid.rank[person]) or None,
            bonus=bool(paid.chosen[person]),
            status="ok" if eligible[person] else "not eligible: unfinished, or too few answers with a prediction",
        )
        for person, participant in enumerate(responses.people["participant"])
    ]
    records.sort(key=lambda record: (record.rank is None, record.rank or 0, record.participant))
    unpredicted = int((~np.isnan(answers) & np.isnan(predictions)).sum())
    return tuple(records), list(_notes(unpredicted, paid, spec))


def serum_records(records: Sequence[BonusRecord]) -> Iterator[SerumRecord]:
    """Yield how the truth serum came out in each condition: a report travels further than a payment list."""
    for condition in dict.fromkeys(record.condition for record in records):
        people = [record for record in records if record.condition == condition]
        values = [record.value for record in people if record.value is not None]
        paid = [record.value for record in people if record.bonus and record.value is not None]
        counts = {"n": len(people), "scored": len(values), "paid": len(paid)}
        highest, lowest_paid = max(values, default=None), min(paid, default=None)
        yield SerumRecord(condition=condition, **counts, highest=highest, lowest_paid=lowest_paid)


def _asked(responses: Responses, answers: FloatArray) -> FloatArray:
    """Return how many pairs people of each person's condition are asked: the most that anybody of it answered."""
    conditions = np.array([str(name or "") for name in responses.people["condition"]])
    _, condition = np.unique(conditions, return_inverse=True)
    most = np.zeros(condition.max(initial=0) + 1)
    np.maximum.at(most, condition, (~np.isnan(answers)).sum(axis=1))
    return most[condition]


def _matrices(responses: Responses) -> tuple[FloatArray, FloatArray]:
    """Return (people, pairs) whether a pair was called similar, and the predicted share that calls it so."""
    pairs, pair_of_row = np.unique(responses.pairs().astype(str), return_inverse=True)
    overall, shape = responses.numbers("overall"), (len(responses.people["participant"]), len(pairs))
    answers, predictions = np.full(shape, np.nan), np.full(shape, np.nan)
    similar = np.where(np.isnan(overall), np.nan, overall <= responses.points / 2)
    answers[responses.person, pair_of_row] = similar
    predictions[responses.person, pair_of_row] = responses.numbers("predicted")
    return answers, predictions


def _notes(unpredicted: int, paid: Bonus, spec: AnalysisSpec) -> Iterator[str]:
    if unpredicted:
        yield f"{count(unpredicted, 'answer')} without a prediction took no part in the truth serum."
    unfilled = paid.places - int(paid.chosen.sum())
    if paid.tied:
        tied = count(paid.tied, "person", "people")
        yield f"{tied} beyond the {paid.places} places tie at the last one and are paid."
    elif unfilled > 0 and not spec.bonus_ties:
        yield f"Of {paid.places} places {unfilled} go to nobody, because people tie there."
