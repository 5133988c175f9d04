"""The sentences of a study's analysis: findings, statuses, what was left out, and notes."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence
from evenhand.study.analysis.descriptor import ANALYSIS
from evenhand.study.analysis.metrics import DISTANCES, METRICS, TARGETS

_BOTH = (
    "{where}: the {target:noun} distance has rank correlations {group_value:unit} with trajectory and "
    "{reference_value:unit} with aggregate"
)

_FINDINGS: dict[str, Sentence] = {
    "goes_with_one": (
        "{where}: the {target:noun} distance goes with {stronger:noun} more than with {weaker:noun} distance; rank "
        "correlations are {stronger_value:unit} and {weaker_value:unit}."
    ),
    "two_correlations": f"{_BOTH}.",
    "no_clear_difference": f"{_BOTH}; no clear difference.",
    "not_tested": f"{_BOTH}; not tested.",
    "correlations_undefined": (
        "{where}: the {target:noun} distance's rank correlations with trajectory and aggregate cannot be compared."
    ),
    "weight": "{where}: the weight of trajectory against aggregate in the {target:noun} distance is {value:unit}.",
    "weight_undefined": (
        "{where}: the weight of trajectory against aggregate in the {target:noun} distance cannot be computed."
    ),
    "condition": "{condition:name}",
    "all_people": "All people",
    "the_study": "the study",
    "answers": ("{n:count} answer", "{n:count} answers"),
    "gave": ("{n:count} person gave {answers}.", "{n:count} people gave {answers}."),
    "gave_resampled": (
        "{n:count} person gave {answers} and was resampled.",
        "{n:count} people gave {answers} and were resampled.",
    ),
    "no_verdict": (
        "there is no verdict about {n:count} person, fewer than min_count {least:set}",
        "there is no verdict about {n:count} people, fewer than min_count {least:set}",
    ),
}

_STATUSES: dict[str, Sentence] = {
    "no_test": "no test: {why}",
    "few_answers": "too few answers",
    "few_differing": "too few answers that differ",
    "few_people": "too few people",
    "fewer_people": "fewer than {least:set} people",
    "no_variation": "the {distance:noun} distance does not vary",
    "together": "the aggregate and the trajectory distance are perfectly rank-correlated",
    "nothing_to_chance": "nothing is left to chance",
    "one_answer_each": "everybody gave one answer",
    "other_signs": "the two coefficients do not have the same sign",
    "all_alike": "too few people, or all answered alike",
    "not_eligible": "not eligible: unfinished, or too few answers with a prediction",
    "coded_alike": "too few people, or all coded alike",
    "same_codes": "both coders gave every rationale the same codes",
}

_LEFT_OUT: dict[str, Sentence] = {
    "incomplete_answers": "answers without both distances and the {target:noun} distance",
    "alone": "one person alone: not in the moderation model of the {target:noun} distance",
    "not_coded_by_both": "not coded by both coders",
    "coded_as": "coded {codes:name commas}",
}

_TESTS_FIND = (
    " the difference between trajectory and aggregate significant at {alpha:set}; by people it is not significant "
    "({p:figure})."
)
_PEOPLE_FIND = (
    " the difference between trajectory and aggregate not significant at {alpha:set}; by people it is significant "
    "({p:figure})."
)
_LOST = (
    " is significant at {alpha:set} with classical standard errors ({before:figure}) and not significant with "
    "clustered ones ({after:figure})."
)
_GAINED = (
    " is not significant at {alpha:set} with classical standard errors ({before:figure}) and significant with "
    "clustered ones ({after:figure})."
)

_NOTES: dict[str, Sentence] = {
    "not_tested_by_people": "Nothing could be tested by people; the published tests take answers for people.",
    "same_conclusions": "At {alpha:set} the published tests and those by people come to the same conclusions.",
    "test_finds": "{where}: {tests:name commas} calls" + _TESTS_FIND,
    "tests_find": "{where}: {tests:name commas} call" + _TESTS_FIND,
    "test_misses": "{where}: {tests:name commas} calls" + _PEOPLE_FIND,
    "tests_miss": "{where}: {tests:name commas} call" + _PEOPLE_FIND,
    "null_lost": "{where}: the null {term:name}" + _LOST,
    "null_gained": "{where}: the null {term:name}" + _GAINED,
    "coefficient_lost": "{where}: the coefficient of {term:name}" + _LOST,
    "coefficient_gained": "{where}: the coefficient of {term:name}" + _GAINED,
    "distance_in": "{condition:name}, {target:noun} distance",
    "overall_distance": "Overall distance",
    "output_distance": "Output distance",
    "rough": "Fewer than {least:set} people in {places:commas}: intervals by people are rough.",
    "unpredicted": (
        "{n:count} answer without a prediction took no part in the truth serum.",
        "{n:count} answers without a prediction took no part in the truth serum.",
    ),
    "tied": (
        "{n:count} person beyond the {places:count} places ties at the last one and is paid.",
        "{n:count} people beyond the {places:count} places tie at the last one and are paid.",
    ),
    "unfilled": "Of {places:count} places {unfilled:count} go to nobody, because people tie there.",
}

say = Catalogue(
    "study",
    __package__ or "evenhand.study.analysis",
    {**_FINDINGS, **_STATUSES, **_LEFT_OUT, **_NOTES},
    words={
        "metric": tuple(dict.fromkeys(title for m in METRICS.values() for title in (m.title, m.title_in_sentence))),
        "noun": (*TARGETS, *DISTANCES),
        "section": (ANALYSIS.title, ANALYSIS.question),
    },
)
"""Makes a message of the sentences of a study's analysis."""
