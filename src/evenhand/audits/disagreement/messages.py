"""The sentences of the disagreement audit."""

from __future__ import annotations

from evenhand.audits.disagreement import AUDIT
from evenhand.audits.disagreement.metrics import METRICS
from evenhand.messages.catalogue import Catalogue, Sentence

_GIVEN = (
    "“{label:name}” to {group_value:unit} of {group:group} and {reference_value:unit} of {reference:group} for whom "
    "{who} would"
)
_GAPS = {
    "statistical_parity": "{where:upper}, the system gives “{label:name}” in {group_value:unit} of answers on "
    "{group:group} and {reference_value:unit} on {reference:group}",
    "calibration": "{where:upper}, {who} agree with {group_value:unit} of the “{label:name}” given to {group:group} "
    "and {reference_value:unit} of those to {reference:group}",
    "accuracy_equality": "{where:upper}, {who} agree with {group_value:unit} of the decisions on {group:group} and "
    "{reference_value:unit} of those on {reference:group}",
    "equal_opportunity": f"{{where:upper}}, the system gives {_GIVEN} choose it",
    "predictive_equality": f"{{where:upper}}, the system gives {_GIVEN} not choose it",
    "overall_misclassification": f"{{where:upper}}, the system does not give {_GIVEN} choose it",
    "tolerant_calibration": "{where:upper}, {who} find {group_value:unit} of the “{label:name}” given to "
    "{group:group} near enough and {reference_value:unit} of those to {reference:group}",
    "tolerant_accuracy": "{where:upper}, {who} find {group_value:unit} of the decisions on {group:group} near enough "
    "and {reference_value:unit} of those on {reference:group}",
    "bounded": "{where:upper}, {title:metric} as {who} see it differs by {lower:points} to {upper:points} percentage "
    "points",
}
_ENDINGS = {"": ".", "_unclear": "; no clear difference.", "_untested": "; not tested."}

HEADLINES: dict[str, Sentence] = {
    **{f"{name}{clarity}": f"{words}{end}" for name, words in _GAPS.items() for clarity, end in _ENDINGS.items()},
    "undefined_gap": "{where:upper}, {title:metric} as {who} see it cannot be compared between groups.",
    "kinds_differ": "{where:upper}, “{stakeholder:name}” critics disagree {value:points} points more often than "
    "“{other:name}” critics about “{label:name}” given to {group:group}, on the same cases.",
    "kinds_alike": "{where:upper}, no two kinds of critics differ beyond chance in how often they disagree.",
    "kinds_partly_alike": "{where:upper}, of what could be compared, nothing differs beyond chance between kinds of "
    "critics in how often they disagree.",
    "kinds_untested": "{where:upper}, no difference between kinds of critics could be tested.",
    "critics": "critics",
    "critics_of": "“{stakeholder:name}” critics",
}

ASIDES: dict[str, Sentence] = {
    "upper_end": "The upper end is that between {group:group} and {reference:group}.",
    "upper_end_at": "The upper end is that for “{label:name}” between {group:group} and {reference:group}.",
    "shared_cases": "Here n counts the cases that both have seen.",
    "more_differ": (
        "{n:count safe} more of these differences is beyond chance.",
        "{n:count safe} more of these differences are beyond chance.",
    ),
    "not_tested": "Not tested: {parts:commas}.",
    "not_tested_and_more": "Not tested: {parts:commas}, and {number:count safe} more.",
    "cannot_compare": "“{stakeholder:name}” and “{other:name}” cannot be compared",
    "cannot_compare_at": (
        "“{stakeholder:name}” and “{other:name}” cannot be compared about “{label:name}” given to {group:group}"
    ),
    "differ": "“{stakeholder:name}” and “{other:name}” differ by {value:points} points",
    "differ_at": (
        "“{stakeholder:name}” and “{other:name}” differ by {value:points} points about “{label:name}” given to "
        "{group:group}"
    ),
    "few_critics": (
        "{n:count} critic is too few for a verdict, which needs {least:set}",
        "{n:count} critics are too few for a verdict, which needs {least:set}",
    ),
}

STATUSES: dict[str, Sentence] = {
    "no_spread": "the answers do not vary",
    "seldom": "too few answers, undefined in more than 5% of the resamples",
    "weighted": "there is none for the weighted answers of one critic",
    "no_test": "no test: the answers do not vary",
    "no_answers": "nobody answered on the group",
    "never_given": "the label was never given to the group",
    "no_critic_label": "no critic can have the label in mind",
    "no_other_label": "no critic can have another label in mind",
    "unstated": "the published bound is 0 / 0",
    "no_common_label": "no label has a rate in two groups",
    "no_case_answered": "this critic answered no case of {group:group}",
    "few_groups": "fewer than two groups of {grouping:name} have enough cases to be compared",
    "few_cases": (
        "only {n:count} case of {group:group} was answered, fewer than {least:set}",
        "only {n:count} cases of {group:group} were answered, fewer than {least:set}",
    ),
    "unanswered_group": "no case of {group:group} was answered",
    "undefined_difference": "undefined",
    "one_silent": "one of the two has no answers on this label and group",
    "few_shared": (
        "a comparison needs two cases that both kinds of critics have seen, and two critics of each kind who saw one; "
        "got {cases:count} cases, and {first:count} and {second:count} critics"
    ),
    "not_reachable": "not reachable: {why}",
    "left_open": "the answers leave more than that open, whoever is asked",
    "same_cases_not_enough": "more critics on the same cases are not enough; ask about new ones",
    "nothing_to_narrow": "there is nothing to narrow",
    "no_critic_gap": "no critic has a gap",
    "no_like_pair": "no critic judged two cases that are like one another",
    "one_critic": "one critic, and the cases are all there are",
}

LEFT_OUT: dict[str, Sentence] = {
    "no_answer": "no answer: rows dropped",
    "no_truth": "an answer without the critic's own label: rows dropped",
    "no_time": "an answer without its time: rows dropped",
    "unanswered": "cases that nobody answered",
    "repeated": "answers that repeat another of the same critic on the same case",
    "superseded": "answers replaced by a later answer from the same critic",
    "small_group": (
        "small group, {n:count} case: not compared (fewer than {least:set})",
        "small group, {n:count} cases: not compared (fewer than {least:set})",
    ),
}

NOTES: dict[str, Sentence] = {
    "not_reweighted": (
        "critics answered about the cases that they were shown, whose shares are not those of the people"
    ),
    "counts_once": (
        "{answers} of {critics} on {cases}. Each answer counts once, so a case that more critics saw counts more."
    ),
    "counts_by_weight": (
        "{answers} of {critics} on {cases}. Each answer counts by its weight, so a case that more critics saw counts "
        "more."
    ),
    "of_answers": ("{n:count} answer", "{n:count} answers"),
    "of_critics": ("{n:count} critic", "{n:count} critics"),
    "of_cases": ("{n:count} case", "{n:count} cases"),
    "rough": "With so few critics or cases the intervals are a rough guide at best.",
    "rough_kinds": "Few critics are of the kind {kinds:commas}: intervals of that kind are a rough guide at best.",
    "kind_of": "“{stakeholder:name}” ({critics:count})",
    "inconsistent": (
        "{n:count} answer contradicts the critic's own label: the truth then need not lie within the bounds.",
        "{n:count} answers contradict the critic's own label: the truth then need not lie within the bounds.",
    ),
    "many_critics": "With more than {most:count safe} critics, the critics one by one are left out.",
    "fewer_resamples": (
        "Intervals by {grouping:name} rest on {draws:count safe} resamples instead of {resamples:count safe}, because "
        "of the size."
    ),
    "unknown_kind": (
        "{n:count} critic is of no known kind; they count in what all critics say.",
        "{n:count} critics are of no known kind; they count in what all critics say.",
    ),
    "two_labels": (
        "There are two labels, so disagreeing with one means choosing the other: all six metrics are exact, and the "
        "gap in predictive equality is that in equal opportunity."
    ),
    "seen_labels": (
        "The labels are those seen in the data ({labels:name commas}). If the system can give others, declare them all "
        "with `labels`: someone who disagrees may have had one of those in mind."
    ),
    "no_case_column": (
        "No case column was named, so each answer counts as a case of its own. If critics shared cases, the intervals "
        "are too short."
    ),
    "labels_never_given": (
        "By {grouping:name}, some labels were never given to a group: {parts:commas}. Calibration does not compare "
        "them there; statistical parity does."
    ),
    "labels_never_given_and_more": (
        "By {grouping:name}, some labels were never given to a group: {parts:commas}, and {number:count safe} more. "
        "Calibration does not compare them there; statistical parity does."
    ),
    "label_to": "“{label:name}” to {group:group}",
    "published_bounds": (
        "The bounds are the published ones, kept for comparison. They are looser than need be, and the one for overall "
        "misclassification points the wrong way, so that the truth can lie outside."
    ),
    "low_bounds": (
        "Some lower bounds of gaps hold but may be too low: with more than two groups, a tolerance, more than ten "
        "labels, or a direction and four labels or more. Upper bounds are as low as the answers allow."
    ),
    "largest_of_several": (
        "A gap is the largest of several differences, each with its own noise; so it tends to come out too large, most "
        "of all with few answers. The interval takes that into account."
    ),
}

say = Catalogue(
    "disagreement",
    __package__ or "evenhand.audits.disagreement",
    {**HEADLINES, **ASIDES, **STATUSES, **LEFT_OUT, **NOTES},
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "noun": (AUDIT.name, "what critics really think", "pairs of like cases", "kinds of critics"),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the disagreement audit."""
