"""The list of bonuses owed: by truth serum as in the analysis, or by rated reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.errors import count
from evenhand.study.analysis.estimate import bonus_table
from evenhand.study.ratings import RatedReasons, Rating, reason_scores
from evenhand.study.responses import Responses, apply_exclusions
from evenhand.study.settings import Bonus
from evenhand.study.store import BonusRow

if TYPE_CHECKING:
    from evenhand.study.spec import StudySpec

GUARD = "weighted_kappa_quadratic"
"""The agreement metric that a bonus compares with its `least_agreement`."""


def bonus_list(
    responses: Responses, rows: Sequence[BonusRow], spec: StudySpec, ratings: Sequence[Rating] = ()
) -> dict[str, list[Any]]:
    """Return the bonuses owed to participants who finished, one row per participant and bonus.

    Parameters
    ----------
    responses, rows, spec : the answers, the participants who finished, and the study's settings.
    ratings : the raters' ratings of the reasons.
    """
    finished = {row.participant: row for row in rows}
    rated = RatedReasons.of(responses, ratings, spec.rationales)
    due = [
        (finished[who].recruitment_id, who, bonus.amount, spec.payment.currency, bonus.by)
        for bonus in spec.payment.bonuses
        for who in _earned(bonus, responses, list(finished), spec, rated)
        if who in finished
    ]
    names = ("recruitment_id", "participant", "amount", "currency", "reason")
    return {name: [row[position] for row in due] for position, name in enumerate(names)}


def _earned(
    bonus: Bonus, responses: Responses, finished: list[str], spec: StudySpec, rated: RatedReasons
) -> Iterator[str]:
    """Yield the participants who earned a bonus, the highest score first."""
    if bonus.by == "truth_serum":
        if responses.kind == "effort" and len(responses.person):
            scores, _ = bonus_table(apply_exclusions(responses, spec.analysis.exclusions), spec.analysis)
            yield from (score.participant for score in scores if score.bonus)
    elif bonus_problem(bonus, rated) is None:
        raters = spec.rationales.raters
        scored = reason_scores(rated.reasons, rated.ratings, raters, finished, of=bonus.of, share=bonus.share)
        yield from (one.participant for one in scored if one.bonus)


def bonus_problem(bonus: Bonus, rated: RatedReasons) -> str | None:
    """Return why a bonus for reasons cannot be paid yet, without a full stop; None if it can."""
    if not rated.settings.raters:
        return "`raters` of [rationales] names nobody who rates the reasons"
    if not rated.reasons:
        return "nobody who finished wrote a reason"
    open_reasons = len(rated.reasons) - rated.by_both
    if open_reasons:
        listed = count(open_reasons, "reason is", "reasons are")
        return f"{listed} not rated by both raters yet, of {len(rated.reasons):,}"
    if bonus.least_agreement is not None:
        kappa = next((one.value for one in rated.agreement if one.metric == GUARD), None)
        if kappa is None or kappa < bonus.least_agreement:
            found = "undefined" if kappa is None else f"{kappa:.3f}"
            least = f"`least_agreement` is {bonus.least_agreement:g}"
            return f"the raters' quadratically weighted kappa is {found}, and {least}"
    return None
