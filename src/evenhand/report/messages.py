"""The sentences of the page."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

PAGE: dict[str, Sentence] = {
    "page_skip": "Skip to the findings",
    "page_system": "System",
    "page_auditor": "Auditor",
    "page_model": "Model",
    "page_models": "Models",
    "page_thresholds_by": "Thresholds set by",
    "page_not_said": "not stated",
    "page_plan": "Plan",
    "page_plan_told": "sealed {date}, {followed}",
    "page_followed": "followed",
    "page_not_followed": "not followed",
    "page_date": "Date",
    "page_contents": "Contents",
    "page_findings": "Findings",
    "page_left_out": "Left out",
    "page_provenance": "Provenance",
    "page_limit": "Limit: {limit}.",
    "page_exploratory": "Exploratory: the plan did not foresee it.",
    "page_details": "Details",
    "page_one_more": "Details, and one more like it",
    "page_more": "Details, and {number} more like it",
    "page_glance": "At a glance",
    "page_of_grouping": "{title}, by {grouping}",
    "page_in_short": "In short",
    "page_verdicts": "Verdicts",
    "page_who": "Who was compared",
    "page_more_groups": "{number} more groups",
    "page_too_few": "too few to compare",
    "page_not_known": "not known",
    "page_rows_used": "{used} of {rows}",
    "page_rows_left_out": "{dropped} of {rows} rows were left out.",
    "page_why_left_out": "What was left out of which comparison, and why",
    "page_nobody": "Every row of the data was used.",
    "page_all_known": "No one's group is missing.",
    "page_judged_note": (
        "The clearest first. The bar is the interval, the dot the value, the upright line the limit; the "
        "shaded side does not meet it; bars of the same kind share an axis. A threshold is met, or not met, "
        "when the whole interval lies on one side of it; otherwise the data do not decide. The thresholds "
        "are the user's, not evenhand's and not the law's."
    ),
    "page_measured_note": (
        "The clearest first. No thresholds were set, so nothing here is a verdict: these are measurements. "
        "The bar is the interval, the dot the value, the upright line no difference."
    ),
    "page_judged_list": "Findings against thresholds",
    "page_other_list": "Findings without a threshold",
    "page_one_without": "One more finding without a threshold",
    "page_others_without": "{number} more findings without a threshold",
    "page_others": "{number} more findings",
    "page_on_paper": "{others}: see report.html or the sheet “findings” of tables.xlsx.",
    "page_english": "The statistical detail below is in English.",
    "page_ratio": "ratio {amount}",
    "page_points": "{amount} points",
    "page_range": "{low} to {high}",
    "page_at_least": "at least {number}",
    "page_at_most": "at most {number}",
    "page_picture": "{amount}, interval {interval}",
    "page_picture_limit": "{amount}, interval {interval}; the limit is {limit}",
    "page_score": "score above {limit}",
    "page_decision": "decision is {value}",
    "page_good": "{rule}, good for the person",
    "page_bad": "{rule}, bad for the person",
    "page_yes": "1, true or yes",
    "page_outcome": "{outcome} is {value}",
    "page_footer": "Made by evenhand {version}. This report describes measurements; it is not legal advice.",
}

VERDICTS: dict[str, Sentence] = {
    "verdicts_meets": "Meets",
    "verdicts_does_not_meet": "Does not meet",
    "verdicts_insufficient_evidence": "Insufficient evidence",
}

TILES: dict[str, Sentence] = {
    "tiles_does_not_meet": "do not meet the threshold",
    "tiles_does_not_meet_one": "does not meet the threshold",
    "tiles_insufficient_evidence": "not enough evidence",
    "tiles_insufficient_evidence_one": "not enough evidence",
    "tiles_meets": "meet the threshold",
    "tiles_meets_one": "meets the threshold",
}

SHORT: dict[str, Sentence] = {
    "short_no_thresholds": "No thresholds were set, so nothing here is a verdict.",
    "short_broken": "{headline}: {size} ({interval}), where {limit} is allowed.",
    "short_broken_points": "{headline}: {size} ({interval}), where {limit} are allowed.",
    "short_broken_least": "{headline}: {size} ({interval}), where {limit} is required.",
    "short_broken_least_points": "{headline}: {size} ({interval}), where {limit} are required.",
    "short_no_interval": "no interval",
    "short_size_ratio": "a ratio of {amount}",
    "short_size_difference": "{amount} apart",
    "short_size_value": "{amount}",
    "short_same_limit": "The same limit for other models: {parts}.",
    "short_one_breaks": "{models} does not meet it either",
    "short_several_break": "{models} do not meet it either",
    "short_one_meets": "{models} meets it",
    "short_several_meet": "{models} meet it",
    "short_one_open": "for {models} the data cannot tell",
    "short_several_open": "for {models} the data cannot tell",
    "short_limited": "{title}",
    "short_limited_by": "{title} by {grouping}",
    "short_more_limits": "{number} others",
    "short_one_also_broken": "The limit on {what} is not met either.",
    "short_several_also_broken": "The limits on {what} are not met either.",
    "short_one_met": "The limit on {what} is met.",
    "short_several_met": "The limits on {what} are met.",
    "short_one_open_limit": "The data cannot tell whether the limit on {what} is met.",
    "short_several_open_limit": "The data cannot tell whether the limits on {what} are met.",
    "short_only_met": "The only threshold is met.",
    "short_only_broken": "It is the only threshold.",
    "short_only_open": "The data cannot tell whether this, the only threshold, is met.",
    "short_all_meet": "All {number} comparisons with thresholds meet them.",
    "short_all_open": "The data decide none of the {number} comparisons with thresholds.",
    "short_none_meets": "None of the {number} comparisons with thresholds meets its limit.",
    "short_only_drifted": (
        "The gap in {title} between {group} and {reference}, by {grouping} ({model}), has drifted over time "
        "beyond chance, first seen in {period}."
    ),
    "short_one_drifted": (
        "1 of {total} gaps has drifted over time beyond chance: {title}, {group} beside {reference}, by "
        "{grouping} ({model}), first seen in {period}."
    ),
    "short_several_drifted": (
        "{number} of {total} gaps have drifted over time beyond chance, most clearly {title}, {group} beside "
        "{reference}, by {grouping} ({model}), first seen in {period}."
    ),
}

say = Catalogue(
    "report",
    "evenhand.report",
    {**PAGE, **VERDICTS, **TILES, **SHORT},
    words={
        "title": ("Fairness audit", "Human study"),
        "fact": ("Selected", "Positive outcome", "People", "Rows", "Answers"),
    },
)
