"""Sentences shared by several parts of the package: statuses, headlines, reasons, families."""

from __future__ import annotations

from evenhand.messages.catalogue import Catalogue, Sentence

OWN_LABELS = ("(missing)", "(small groups)", "(overall)")
"""Labels that evenhand gives to groups."""

_TITLED = "{where}: {title:metric}"

STATUSES: dict[str, Sentence] = {
    "ok": "ok",
    "undefined": "undefined: {why}",
    "no_interval": "no interval: {why}",
    "no_bounds": "no interval",
    "unbounded_above": "unbounded above: {why}",
    "unbounded_below": "unbounded below: {why}",
    "withheld": "undefined: withheld, since it would reveal information about fewer than {least:set} people",
    "hidden": "hidden: fewer than {least:set} people",
    "why_withheld": "withheld, since it would reveal information about fewer than {least:set} people",
    "missing_group": "missing group: left out of gaps",
    "small_groups": "small groups together: left out of gaps",
    "small_groups_apart": "small groups together: not compared",
    "small": "small: {n:count}, fewer than min_count {least:set}; left out of gaps",
    "small_bin": "small: {n:count}, fewer than min_count {least:set}",
    "nobody": "nobody is in this group",
    "one_group": "only one group can be compared (min_count {least:set})",
    "no_group": "no group can be compared (min_count {least:set})",
    "two_groups_needed": "fewer than two groups have min_count {least:set} people",
}

LEFT_OUT: dict[str, Sentence] = {
    "rows_dropped": "missing outcome or prediction: rows dropped",
    "group_missing": "missing group: not compared",
    "group_missing_in_gaps": "missing group: left out of gaps",
    "few_people": "fewer than min_count {least:set} people",
}

HEADLINES: dict[str, Sentence] = {
    "two_values": "{clause}.",
    "two_values_worse_off": "{clause} ({worse_off:group} worse off).",
    "two_values_differ": "{clause}; they differ beyond chance.",
    "some_groups_differ": "{clause}; some groups differ (joint test).",
    "no_clear_difference": "{clause}; no clear difference.",
    "not_tested": "{clause}; not tested.",
    "value": _TITLED + " is {value:unit}.",
    "undefined_value": _TITLED + " cannot be computed.",
    "not_comparable": _TITLED + " cannot be compared between groups.",
    "headline_withheld": (
        "{title:metric}: the sentence on this is withheld, since it would reveal information about fewer than "
        "{least:set} people."
    ),
    "headline_withheld_by": (
        "{title:metric}, by {grouping:name}: the sentence on this is withheld, since it would reveal information about "
        "fewer than {least:set} people."
    ),
    "not_in_the_data": (
        "No {name:name} {wanted!r:name} in these data: the threshold for {title:metric} cannot be judged."
    ),
    "clause": _TITLED + " is {group_value:unit} for {group:group} and {reference_value:unit} for {reference:group}",
}

PLACES: dict[str, Sentence] = {
    "by": "by {grouping:name}",
    "within": "by {grouping:name}, within {stratum:name}",
    "standardised": "by {grouping:name}, standardised over {factor:name}",
    "called": " {people:name}",
    "model_place": "{model:name}, {place}",
    "everywhere": "All groups",
    "named_place": "{coordinates:commas}",
    "coordinate": "{name:name} {value:name}",
}

DETAILS: dict[str, Sentence] = {
    "gap_size": "a gap of {size:unit}",
    "gap_size_points": "a gap of {size:points} percentage points",
    "ratio_size": "a ratio of {size:unit}",
    "gap_open": "a gap of {low:unit} to {high:unit}",
    "gap_open_points": "a gap of {low:points} to {high:points} percentage points",
    "ratio_open": "a ratio of {low:unit} to {high:unit}",
    "interval": "{confidence:confidence} interval {range}",
    "joint_interval": "{confidence:confidence} interval for {family} together {range}",
    "between": "{low:unit} to {high:unit}",
    "at_least_value": "at least {low:unit}",
    "at_most_value": "at most {high:unit}",
    "p_value": "{p:figure}",
    "p_adjusted": "{adjusted:figure} adjusted for {family} ({alone:figure} by itself)",
    "people_behind": "n = {n:count}",
    "detail": "{parts:sentence semicolons}",
    "all_pairs": "all pairs of groups",
    "all_of": ("all {n:count safe} {things:noun}", "all {n:count safe} {things:noun}"),
    "both_of": "both {things:noun}",
    "tested_findings": ("{n:count safe} tested finding", "{n:count safe} tested findings"),
    "verdicts": ("{n:count safe} verdict", "{n:count safe} verdicts"),
    "sentences": "{parts:sentences}",
}

_ALONE = "by itself the interval lies beyond the limit, but not when it is widened for the {family}"
_COVERS = "the interval covers the limit of {limit}"

REASONS: dict[str, Sentence] = {
    "not_reweighted": "the audit does not say how its numbers change with other shares",
    "no_number_yet": "there is no number to begin with",
    "widened_more": _ALONE + "; more {counted:noun} would decide it",
    "widened_might": _ALONE + "; more {counted:noun} might decide it",
    "widened_needed": _ALONE
    + "; it rests on {n:count} {counted:noun}, and about {needed:count} of the same kind in all would decide it",
    "widened_too_near": _ALONE
    + ", and the value lies too near to it for any realistic number of {counted:noun} to decide",
    "covers_might": _COVERS + "; more {counted:noun} might decide it",
    "covers_needed": _COVERS
    + "; it rests on {n:count} {counted:noun}, and about {needed:count} of the same kind in all would decide it",
    "covers_too_near": _COVERS
    + ", and the value lies too near to it for any realistic number of {counted:noun} to decide",
    "covers_open": _COVERS
    + ", and so does what is left open, {range}: more {counted:noun} of this kind would not decide it",
    "there_is_none": "there is {status}",
    "there_is_no_interval": "there is no interval",
    "too_few": "too few {counted:noun} to compare any two groups: each needs at least {least:set}",
    "limit_value": "{limit:unit}",
    "limit_points": "{limit:points} points",
    "open_range": "{low:unit} to {high:unit}",
    "open_range_points": "{low:points} to {high:points} points",
    "did_you_mean": "did you mean {names:name or}?",
    "known_names": "known names: {names:name commas}",
    "known_names_and_more": "known names: {names:name commas} and {n:set} more",
    "no_names": "there are none",
    "sentence": "{text:sentence}",
}

LIMITS: dict[str, Sentence] = {
    "at_least": "at least {limit:set}",
    "at_most": "at most {limit:set}",
    "at_least_points": "at least {limit:set} points",
    "at_most_points": "at most {limit:set} points",
}

FAMILIES: dict[str, Sentence] = {
    "family_of": "{number} of {audits:noun and}",
    "family_of_alone": "{number} of {audits:noun and} alone",
    "one_verdict": (
        "There is {family}, and nothing to adjust it for: the chance that it is a false “does not meet” is at most "
        "{share:confidence}."
    ),
    "several_verdicts": (
        "The {family} are one family: the chance that any “does not meet” is false is at most {share:confidence} "
        "(Holm); “meets” holds for each alone."
    ),
    "one_finding": (
        "There is {family}, and nothing to adjust it for: the chance that it claims a difference that is not there is "
        "at most {share:confidence}."
    ),
    "several_findings": (
        "The {family} are one family: the chance that any of them claims a difference that is not there is at most "
        "{share:confidence} (Holm)."
    ),
    "worse_off_rows": (
        "“Worse off” in tables keeps the false discovery rate over all tables of the run to {share:confidence} "
        "(Benjamini and Bogomolov)."
    ),
}

POWER: dict[str, Sentence] = {
    "needs_pilot": "needs a pilot: give a file of like data as `pilot`",
    "no_power": "the {audit:name} audit does not say what a plan could show",
    "studies_simulated": "simulated, {studies:count safe} studies a step",
}

FIGURES: dict[str, Sentence] = {
    "described": "Described, not tested: no finding rests on this figure.",
    "figure_worse_off": "By {grouping:name}, {group:group} is worse off in {title:metric}{under}.",
    "figure_people_worse_off": "By {grouping:name}, {group:group}{people} are worse off in {title:metric}{under}.",
    "figure_groups_differ": "By {grouping:name}, groups differ in {title:metric} beyond chance{under}.",
    "figure_beyond_the_limit": "By {grouping:name}, the gap in {title:metric} is beyond the limit of {limit}{under}.",
    "figure_all_meet": "Every gap here that has a limit meets it.",
    "figure_nothing_clear": "No difference here is beyond chance, with all findings of the run considered.",
    "under_every": " under every model",
    "under_some": " under {models:name and}",
}

NOTES: dict[str, Sentence] = {
    "other_name": "{name:name} ({package:name}) is {metrics:name and} here.",
    "other_difference_worst_pair": (
        "{name:name} ({package:name}) is the difference in {metrics:name and} of the worst pair of groups here."
    ),
    "other_difference_worst_pair_each": (
        "{name:name} ({package:name}) is the difference in {metrics:name and} of the worst pair of groups here, "
        "each judged by itself."
    ),
    "other_difference_reference": (
        "{name:name} ({package:name}) is the difference in {metrics:name and} to the reference group here."
    ),
    "other_difference_reference_each": (
        "{name:name} ({package:name}) is the difference in {metrics:name and} to the reference group here, "
        "each judged by itself."
    ),
    "other_ratio_worst_pair": (
        "{name:name} ({package:name}) is the ratio of {metrics:name and} of the worst pair of groups here."
    ),
    "other_ratio_worst_pair_each": (
        "{name:name} ({package:name}) is the ratio of {metrics:name and} of the worst pair of groups here, "
        "each judged by itself."
    ),
    "other_ratio_reference": (
        "{name:name} ({package:name}) is the ratio of {metrics:name and} to the reference group here."
    ),
    "other_ratio_reference_each": (
        "{name:name} ({package:name}) is the ratio of {metrics:name and} to the reference group here, "
        "each judged by itself."
    ),
    "date": "{day:set} {month:name} {year:name}",
}

VERDICTS_AND_AMOUNTS: dict[str, Sentence] = {
    "it_meets": "meets",
    "it_does_not_meet": "does not meet",
    "it_insufficient_evidence": "insufficient evidence",
    "it_no_threshold": "none",
    "amount": "{value:unit}",
    "amount_points": "{value:points} points",
}

say = Catalogue(
    "core",
    __package__ or "evenhand.messages",
    {
        **STATUSES,
        **LEFT_OUT,
        **HEADLINES,
        **PLACES,
        **DETAILS,
        **REASONS,
        **LIMITS,
        **FAMILIES,
        **POWER,
        **FIGURES,
        **NOTES,
        **VERDICTS_AND_AMOUNTS,
    },
    words={
        "group": OWN_LABELS,
        "noun": ("people", "answers", "rows", "groups", "pairs", "candidates", "everybody", "what is not declared"),
        "sign": (",", ".", "%"),
        "joint": ("and", "or"),
        "month": (
            *("January", "February", "March", "April", "May", "June", "July"),
            *("August", "September", "October", "November", "December"),
        ),
        "verb": ("selects", "selects (end of the clause)", "selects (last)", "particles"),
    },
)
"""Makes a message from a shared sentence."""
