"""The sentences of the improvability audit."""

from __future__ import annotations

from evenhand.audits.improvability import AUDIT
from evenhand.audits.improvability.metrics import METRICS
from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence
from evenhand.stats.improvability import UTILITIES

HEADLINES: dict[str, Sentence] = {
    "fairer": "{model:name} is fairer than the status quo without being less accurate {whom}.",
    "fairer_by": (
        "{model:name} is fairer than the status quo without being less accurate {whom}: the gap shrinks by at least "
        "{value:percent}."
    ),
    "not_fairer": (
        "It is not shown that {model:name} is fairer than the status quo without being less accurate {whom}."
    ),
    "not_fairer_by": (
        "It is not shown that {model:name} is fairer than the status quo by at least {margin:percent safe} without "
        "being less accurate {whom}."
    ),
    "more_accurate": "{model:name} is more accurate for {whom} by at least {value:percent} and no less fair.",
    "not_more_accurate": "It is not shown that {model:name} is more accurate for {whom}.",
    "for_everyone_together": "for everyone together",
    "for_any_group": "for any group",
    "everyone": "everyone",
    "every_group": "every group",
}

ASIDES: dict[str, Sentence] = {
    "gaps_and_p": "{gaps:semicolons} ({p})",
    "gaps_size_and_p": "{gaps:semicolons}, and {size} ({p})",
    "gap_against_status_quo": "the gap in {utility:noun} is {new}, against {old} under the status quo",
    "gap_against": "the gap in {utility:noun} is {new}, against {old}",
    "gap_points": "{size:points} points",
    "gap_amount": "{size:unit}",
    "selects_other_share": "it selects {new:percent} of the rows instead of {old:percent}",
    "selects_nobody": "It selects nobody from {group:group}.",
    "selects_nobody_in_a_split": "It selects nobody from {group:group} in at least one split.",
    "tried": (
        "Its own test rejects, but {n:set} candidate was tried.",
        "Its own test rejects, but {n:set} candidates were tried.",
    ),
    "smaller_gap": "A gap smaller by {margin:percent safe} is shown ({p}).",
    "no_smaller_gap": "A gap smaller by {margin:percent safe} is not shown ({p}).",
    "accuracy_improves": "Accuracy improves for {whom} by at least {value:percent}.",
    "known_outcomes": (
        "It holds for people whose outcome is known: {n:count} row without was left out.",
        "It holds for people whose outcome is known: {n:count} rows without were left out.",
    ),
    "unclear_in_the_run": "With all findings of the run it is not clear.",
    "p_one_pass": "{p:figure}, one pass through {rows:count} rows{fitted}{adjusted}; level {level:set}",
    "p_one_split": "{p:figure}, one split{adjusted}; level {level:set}",
    "p_splits_shown": (
        "median {median:figure} over {splits:set} splits; combined {p:figure}{adjusted}; level {level:set}; by the "
        "paper's rule shown"
    ),
    "p_splits_not_shown": (
        "median {median:figure} over {splits:set} splits; combined {p:figure}{adjusted}; level {level:set}; by the "
        "paper's rule not shown"
    ),
    "p_fitted": (", fitted in {n:set} step", ", fitted in {n:set} steps"),
    "p_adjusted": "; adjusted for {number:set} candidates {p:figure}",
}

STATUSES: dict[str, Sentence] = {
    "no_candidate": "no candidate: {why}",
    "of_candidate": "candidate {candidate!r:name}: {problem}",
    "no_candidate_in_steps": "no candidate in {missing:set} of {number:set} steps",
    "no_candidate_in_splits": "no candidate in {missing:set} of {number:set} splits",
    "negative_accuracy": ("the status quo's accuracy is negative, so an improvement by a share of it means nothing"),
    "no_split_has_candidate": "no split has a candidate",
    "only_p": "the joint test of all components gives only a p-value",
    "no_number_of_rows": "no number of rows gives this power",
    "nothing_to_compare": "nothing to compare: the candidate decides every row as the status quo does",
    "none_established": "no improvement is established at a margin of 0",
    "ok_but": "ok: {why}",
    "end_of_margins": "at least this, the end of the margins tried",
    "alike": "its values go with the status quo's (eigenvalue below {least:set}): p-values are rough",
    "missing_score": "missing feature, decision or score: rows dropped",
    "missing_outcome": "missing outcome: rows dropped",
    "missing_group": "missing group: rows left out of the test",
    "few_rows": "fewer than {least:set} rows: left out of the test",
}

PLACES: dict[str, Sentence] = {
    "rows": "the rows",
    "data": "the data",
    "split": "split {split:set}",
    "test_rows_of": "the test rows of {where}",
    "training_rows_of": "the training rows of {where}",
    "candidate_in": "{where}, candidate {candidate!r:name}",
    "splits": ("{n:set} split", "{n:set} splits"),
    "steps": ("{n:set} step", "{n:set} steps"),
}

_HERE = "The candidate {model:name} is better than the status quo on these rows, but not beyond chance"
_IN = (
    "The candidate {model:name} is better than the status quo on the test rows in {improved:set} of {splits}, but not "
    "beyond chance"
)
_TRIED = " with {number:set} candidates tried"
_LITTLE = " by so little that no number of rows would give the test the power wanted."
_NEEDED = (
    "The plausible reason is too few rows: if the improvement is real and of this size, about {needed:count} rows "
    "would give the test {power:percent safe} power"
)

REASONS: dict[str, Sentence] = {
    "unchanged": "The candidate {model:name} decides every row as the status quo does, so there is nothing to compare.",
    "no_candidate_step": (
        "In no step was there a candidate of {model:name} to test, so nothing is known of how it would do."
    ),
    "no_candidate_split": (
        "In no split was there a candidate of {model:name} to test, so nothing is known of how it would do."
    ),
    "not_better": "The candidate {model:name} is not better than the status quo in all measures on these rows.",
    "better_nowhere": "The candidate {model:name} is better than the status quo on the test rows in no split.",
    "better_seldom": (
        "The candidate {model:name} is better than the status quo on the test rows in {improved:set} of {splits} only."
    ),
    "better": _HERE + ".",
    "better_tried": _HERE + _TRIED + ".",
    "better_in": _IN + ".",
    "better_in_tried": _IN + _TRIED + ".",
    "too_little": _HERE + ", and" + _LITTLE,
    "too_little_tried": _HERE + _TRIED + ", and" + _LITTLE,
    "too_little_in": _IN + ", and in most splits" + _LITTLE,
    "too_little_in_tried": _IN + _TRIED + ", and in most splits" + _LITTLE,
    "reason_unclear": "The reason is unclear.",
    "rows_needed": _NEEDED + ", against {rows:count} here.",
    "rows_needed_tried": _NEEDED + ", adjusted for all {number:set} candidates, against {rows:count} here.",
    "planned": (
        "An improvement as planned (accuracy up by {gain:percent safe} and a gap smaller by {reduction:percent safe}) "
        "would be found with a chance of {chance:percent}."
    ),
    "planned_rows": "About {needed:count} rows would raise it to {power:percent safe}.",
    "not_found": (
        "So too few rows are not the likely reason: this rule did not find a better algorithm. There may be none among "
        "those it can reach; another rule or other features may still find one."
    ),
    "both_remain": (
        "So both reasons remain: the rule may not have found a better algorithm that exists, and with so few rows the "
        "test could have missed it."
    ),
}

_SELECTIVE = (
    "If it is missing because of what was decided (selective labels), the result holds for people whose outcome is "
    "known, not for all: a candidate might do better or worse on the others."
)
_ALIKE = (
    ", as it does where outcomes are known only for those it selected. Then the candidates are compared with no "
    "selection at all."
)
_NOT_NEEDED = (
    "and was not needed there, since no algorithm compared here selects them. Candidates were fitted to the others "
    "only. If outcomes are missing because of what was decided (selective labels), candidates have learned from people "
    "whom the status quo chose."
)
_STOPPED = (
    "{model:name}: the solver was stopped by its time limit in {stopped:set} of {where}, so another run may find "
    "another classifier. The test holds for those found here, which can be exported."
)
_ANOTHER_QUESTION = (
    " By the measures chosen that can count as accurate and fair; whether it is an alternative is another question."
)

NOTES: dict[str, Sentence] = {
    "planned_improvement": (
        "the pilot's resamples; planned: accuracy up by {gain:.0%} and a gap down by {reduction:.0%}"
    ),
    "not_reweighted": (
        "candidates were made from and tested on these people, and among others they would be other ones"
    ),
    "better_in_both": "Better in both beyond chance: {models:name commas}.",
    "none_better_in_both": "None is beyond chance better in both.",
    "published": (
        "The published fairness test rejects true nulls too often at margins above 0: in simulations at the boundary "
        "of the null 9 to 34 percent at margins of 0.725 and 0.9, where 5 are allowed. Its tables are shown for "
        "comparison. Findings, largest improvements and verdicts rest on the signed test."
    ),
    "tells_group": (
        "The feature {feature:name} tells every row's group, so a candidate using it can treat the groups differently "
        "on purpose. Leave it out unless that is allowed."
    ),
    "may_use_group": (
        "Candidates may use {grouping:name} itself, so they may treat the groups differently on purpose. In US law "
        "that can be disparate treatment, whatever its effect."
    ),
    "several": (
        "{number:set} candidates were tested. Decisions, largest margins, power and verdicts are adjusted for all of "
        "them: a p-value counts {number:set} times (Bonferroni) before it is compared with {level:set}. So what is "
        "said of the candidates holds for all together."
    ),
    "weights": (
        "Survey weights enter the values and the tests. Candidates are fitted without them, and a capacity is a share "
        "of rows."
    ),
    "more_remarks": ("{n:set} more remark of this kind left out.", "{n:set} more remarks of this kind left out."),
    "different_shares": (
        "{model:name} selects {new:percent} of the rows, the status quo {old:percent}. A difference between them may "
        "come from how many are selected, not from whom. A capacity ranks scores only; it does not apply to decisions. "
        "Compare at the same share where the number of places is fixed."
    ),
    "nobody": "{model:name} selects nobody from {group:group}." + _ANOTHER_QUESTION,
    "nobody_in_a_split": "{model:name} selects nobody from {group:group} in at least one split." + _ANOTHER_QUESTION,
    "unlabelled": (
        "{n:count} row was left out because the outcome (or a prediction) is missing. " + _SELECTIVE,
        "{n:count} rows were left out because the outcome (or a prediction) is missing. " + _SELECTIVE,
    ),
    "all_selected": "That is likely here: among the rows left the status quo selects everybody" + _ALIKE,
    "none_selected": "That is likely here: among the rows left the status quo selects nobody" + _ALIKE,
    "outcome_not_needed": (
        "The outcome is missing in {n:count} row " + _NOT_NEEDED,
        "The outcome is missing in {n:count} rows " + _NOT_NEEDED,
    ),
    "says_nothing": (
        "{model:name} decides every row as the status quo does, so its p-value is 1 and says nothing of the data. "
        "Leave it out: each candidate costs the others power."
    ),
    "ties": (
        "Rows with the same score at the cut of the capacity were drawn at random from the seed, each with the same "
        "chance ({tied:semicolons})."
    ),
    "tied": ("{who:name}: up to {n:count} row", "{who:name}: up to {n:count} rows"),
    "the_status_quo": "the status quo",
    "stopped": _STOPPED,
    "lost_steps": (
        "{model:name}: in {lost:set} of {where} there was no candidate to test, the status quo decided there ({why})"
    ),
    "lost_splits": (
        "{model:name}: in {lost:set} of {where} there was no candidate to test, which counts against rejection ({why})"
    ),
}

say = Catalogue(
    "improvability",
    __package__ or "evenhand.audits.improvability",
    {**HEADLINES, **ASIDES, **STATUSES, **PLACES, **REASONS, **NOTES},
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "section": (AUDIT.title, AUDIT.question),
        "noun": (AUDIT.name, "values of groups", *tuple(name.replace("_", " ") for name in UTILITIES)),
    },
)
"""The catalogue of the improvability audit."""
