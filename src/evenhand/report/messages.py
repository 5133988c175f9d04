"""The words of the page, and the sentences of what is computed after an audit: over time, elsewhere."""

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

OVER_TIME: dict[str, Sentence] = {
    "gap_drifted": (
        "{where}: the gap in {title:metric} between {group:group} and {reference:group} was {before:signed_points} "
        "points before {period:name} and {since:signed_points} from then to {until:name}; it has drifted beyond chance."
    ),
    "no_drift_shown": (
        "{where}: no drift of the gap in {title:metric} between {group:group} and {reference:group} could be shown; a "
        "lasting change had to be about {least:points} points or more."
    ),
    "one_period": (
        "{where}: the gap in {title:metric} between {group:group} and {reference:group} has fewer than two periods to "
        "compare."
    ),
    "none_drifted": (
        "No drift could be shown in any of {n:set} gaps by {period:name}. To be shown, a lasting change had to be "
        "about {least:figure safe} points or more in the gap that is known best, and {most:figure safe} in the one "
        "that is known least."
    ),
    "not_drifted": (
        "No drift of the gap by {period:name} could be shown. To be shown, a lasting change had to be about "
        "{least:figure safe} points or more."
    ),
    "not_compared": "No gap has two periods to compare by {period:name}.",
    "alphabetical": (
        "Periods are taken in alphabetical order, from {first:name} to {last:name}; if that is not their order in "
        "time, what is said of drift does not hold: write them such as 2026-03."
    ),
    "over_time_question": "Has a gap drifted, by {period:name}, beyond chance?",
    "no_periods_shown": (
        "Nothing is reported by {period:name}: too few people share a period, a group and a decision."
    ),
    "figure_no_drift": (
        "No drift could be shown in the gap by {grouping:name}.",
        "No drift could be shown in any of {n:set} gaps by {grouping:name}.",
    ),
    "figure_gap_drifted": "The gap by {grouping:name} has drifted beyond chance.",
    "figure_gaps_drifted": (
        "{n:set} of {total:set} gaps by {grouping:name} has drifted beyond chance.",
        "{n:set} of {total:set} gaps by {grouping:name} have drifted beyond chance.",
    ),
    "hidden_periods": "{n:count} people are in no period, since too few are of theirs: {periods:name commas}.",
    "undated": "{n:count} people have no {period:name}, and are in no period.",
}

ELSEWHERE: dict[str, Sentence] = {
    "holds_elsewhere": "It would hold with other shares of {columns:name and} among the people ({tried:set} tried).",
    "open_elsewhere": (
        "The evidence would stay insufficient with other shares of {columns:name and} among the people "
        "({tried:set} tried)."
    ),
    "changes_elsewhere": "With {what} among the people it would be: {verdict} ({value}).",
    "breaks_elsewhere": "With {what} among the people it would by itself be: {verdict} ({value}).",
    "covers_elsewhere": "With {what} among the people the interval would cover the limit even by itself ({value}).",
    "cannot_matter": "Other shares of the groups cannot change it: both rates are those of one group each.",
    "cannot_tell": "Whether it would hold with other shares of the groups cannot be said: {why}.",
    "crossed_counts_hidden": (
        "small counts are hidden, and those by {grouping:name} and another column at once can be small"
    ),
    "other_share": "{share:figure safe} {group:group} ({here:figure safe} here)",
    "population_shares": "the shares of {column:name} in the population",
    "sampled_population": (
        "The shares of the population are those of people in a table ({sizes:commas}), treated as a sample of it: "
        "the limits account for their sampling error."
    ),
    "people_by": "{n:count} by {column:name}",
    "verdicts_change": (
        "In {changed:set} of {tried:set} cases tried, a verdict judged by itself would change with other shares."
    ),
    "no_verdict_changes": "No verdict would change with the shares that were tried.",
    "nothing_tried": ("Nothing could be tried: no verdict on a rate or mean has another group column to reweight by."),
}

IN_A_SENTENCE: dict[str, Sentence] = {
    "it_meets": "meets",
    "it_does_not_meet": "does not meet",
    "it_insufficient_evidence": "insufficient evidence",
    "it_no_threshold": "none",
    "amount": "{value:unit}",
    "amount_points": "{value:points} points",
}

PROFILES: dict[str, Sentence] = {
    "weighted_counts": (
        "These data have survey weights; a weighted table has no counts of people, so there is no table here."
    ),
    "favourable_unsaid": (
        "Being selected is taken as the favourable decision of {models:name and}, since `favourable` is not set."
    ),
    "not_selected_is_favourable": (
        "Not being selected is the favourable decision of {models:name and}: the people who are not selected are "
        "counted, and a rate is their share. In the methods, read “not selected” for “selected” there."
    ),
    "labels_merge": (
        "Several values of {column!r:name} are one group by `labels`; racial groups are not to be merged."
    ),
    "every_grouping_here": (
        "No grouping is called after race, sex or ethnic group, so that every grouping is here; say which are meant "
        "with `profile_groupings` in [report]."
    ),
    "groupings_not_meant": (
        "Not here: {groupings:name commas}, which the rule does not name: it is about race, sex and ethnic group (say "
        "which are meant with `profile_groupings` in [report])."
    ),
    "groupings_not_named": "Not here: {groupings:name commas}, which `profile_groupings` does not name.",
    "unknown_in_no_table": "People whose group is not known are in no table: {sizes:commas}.",
    "hidden_in_no_table": (
        "People whose group is not known, or hidden because it is small, are in no table: {sizes:commas}."
    ),
    "people_of_grouping": "{grouping:name} {n:count}",
    "high_scores_are_bad": (
        "The rule counts scores above the median. High scores of {models:name and} are bad for the person, so the "
        "highest rate is the worst here and a ratio below 1 the better."
    ),
    "scores_in_bins": (
        "Scores of so long a table were counted in {bins:count safe} bins; those in the median's bin are not above it."
    ),
    "never_the_highest": "small: fewer than {least:set} people, so never the comparison group",
    "nobody_above": "nobody is above",
    "category_unknown": "category not known: not in the calculation",
    "category_hidden": "category hidden because it is small: not in the calculation",
}

PLAN: dict[str, Sentence] = {
    "section_gone": "[{section:name}] was planned and is not there.",
    "section_unplanned": "[{section:name}] was not planned.",
    "setting_changed": "`{name:name}` in [{section:name}] was planned as {planned:name} and is {done:name}.",
    "not_there": "not there",
    "threshold_unplanned": "The threshold '{metric:name}, {side:name} = {limit:set}' of {audit:name} was not planned.",
    "threshold_gone": (
        "The threshold '{metric:name}, {side:name} = {limit:set}' of {audit:name} was planned and is not there."
    ),
}

COMPARISON: dict[str, Sentence] = {
    "change": "{where}: {title:metric}{pair} was {old} before, {new} now; a change of {change} ({interval}): {sure}.",
    "change_tested": (
        "{where}: {title:metric}{pair} was {old} before, {new} now; a change of {change} ({interval}), {p:figure} "
        "adjusted: {sure}."
    ),
    "change_undefined": "{where}: {title:metric}{pair} was {old} before, {new} now.",
    "sure_worse": "worse beyond chance",
    "sure_better": "better beyond chance",
    "sure_changed": "changed beyond chance",
    "sure_unclear": "no clear change",
    "pair_of_kind": " ({kind})",
    "pair": " ({kind}, {group:group} against {reference:group})",
    "kind_difference": "gap",
    "kind_ratio": "ratio",
    "undefined_size": "undefined",
    "size_of_pair": "{size} ({group:group} against {reference:group})",
    "signed_points": "{value:signed_points} points",
    "no_limits": "–",
    "models_compared": "{model:name} against {reference:name}",
    "given_name": "{name:name}",
    "places": "{parts:commas}",
    "places_first": "{place:upper}",
    "of_everybody": "Everybody",
    "compared": "Of {what} compared: {directions}.",
    "others_compared": "Of {what}: {directions}.",
    "findings": ("{n:count} finding", "{n:count} findings"),
    "other_gaps": ("{n:count} other gap", "{n:count} other gaps"),
    "directions": "{worse:count} worse, {better:count} better, {unclear:count} unclear",
    "directions_changed": (
        "{worse:count} worse, {better:count} better, {changed:count} changed, {unclear:count} unclear"
    ),
    "flip": "Verdict from “{before}” to “{now}”. {change}",
    "flip_within_chance": ("Verdict from “{before}” to “{now}”, but the change itself is within chance. {change}"),
    "among_others": "Among the other gaps: {change}",
    "more_unclear": (
        "{n:count} more finding without a clear change is in {table:name}.",
        "{n:count} more findings without a clear change are in {table:name}.",
    ),
    "false_claims": "{people}; the chance that any {words} is false is at most {share:confidence} (Holm){rest}.",
    "independent_samples": "The two audits are treated as independent samples",
    "people_in_both": "{n:count} people are in both audits, and the intervals that are given account for it",
    "not_paired": (
        "The changes in {audits:name and} have no intervals: this audit does not say how much each person adds to "
        "the error of its numbers, and people are in both.",
        "The changes in {audits:name and} have no intervals: these audits do not say how much each person adds to "
        "the error of their numbers, and people are in both.",
    ),
    "worse_or_better": "“worse” or “better”",
    "worse_better_changed": "“worse”, “better” or “changed”",
    "as_much_for_others": ", and as much for the other gaps",
    "rows_then_now": "Rows: {before:count} before, {now:count} now.",
    "without_counterpart": (
        "Not compared: {old} of the old audit and {new} of the new one, which the other does not have (as where the "
        "reference group or the worst bin is another one)."
    ),
    "setting_differs": "{place:name}: {old} {then}, {new} {now}.",
    "none": "none",
    "before": "before",
    "now": "now",
    "in_results": "in results.json",
    "in_file": "in '{path:name}'",
}

EVIDENCE: dict[str, Sentence] = {
    "file_missing": "{file:name} is missing.",
    "file_changed": "{file:name} is not the file that the run wrote: its SHA-256 differs from run.json's.",
    "file_unchanged": "{file:name} is the file that the run wrote.",
    "page_of_other_version": "report.html was made by evenhand {then:name}; this is {now:name}.",
    "page_unchanged": "report.html says what results.json holds.",
    "page_changed": (
        "report.html is not the page that this evenhand makes of results.json: the page was changed, or evenhand was "
        "since the run, with the same version {version:name}."
    ),
    "no_plan": "No plan was sealed for this audit.",
    "plan_not_at_hand": "The plan {digest:name} is not at hand; give it with --plan.",
    "plan_of_the_results": "'{path:name}' is the plan that the results name.",
    "plan_of_others": "'{path:name}' is not the plan that the results name.",
    "plan_followed": "The plan was followed.",
    "differences_told": "The results say how they differ from the plan: {changes:sentences}",
    "differences_untold": "The results do not say how they differ from the plan: {changes:sentences}",
    "not_computed_again": "Nothing was computed again: give the audit.toml for that, with its data.",
    "same_numbers": "Computed again from the data, every number is the same.",
    "other_settings": "These are not the settings of the audit: {others:sentences}",
    "other_settings_same_file": (
        "These are not the settings of the audit: {others:sentences} The data file is the same."
    ),
    "read_otherwise": (
        "The data file is that of the audit, but what was read of it has the SHA-256 {now:name}..., not {then:name}...."
    ),
    "other_data": "These are not the data of the audit: their SHA-256 is {now:name}..., not {then:name}....",
    "other_numbers": "Computed again, results.json differs in: {names:name commas}.",
}

SMALL_COUNTS: dict[str, Sentence] = {
    "small_rule": (
        "Small counts are hidden (`suppress_below` {least:set}): where fewer than {least:set} people share a group, or "
        "a group, an outcome and a decision, no number here reveals how many, not even by adding and subtracting "
        "others; nothing is reported of single people."
    ),
    "small_groups_together": (
        "By {grouping:name}, these are shown together as “{small:group}” and not compared: {groups:name commas}."
    ),
    "small_grouping_withheld": (
        "Nothing is published by {grouping:name}: with what else is published, its small counts could be worked out."
    ),
    "small_tables_add_up": (
        "Tables by {groupings:name and} add up to each other, and some of their groups are hidden: so everything finer "
        "than a group, such as bins, strata and pairs of ratings, is withheld for all of them; without the crossed "
        "grouping it could be shown."
    ),
    "small_records_withheld": (
        "Of the {audit:name} audit {n:count safe} record is withheld ({parts:noun commas}): they would reveal "
        "something of fewer than {least:set} people.",
        "Of the {audit:name} audit {n:count safe} records are withheld ({parts:noun commas}): they would reveal "
        "something of fewer than {least:set} people.",
    ),
    "small_notes_withheld": (
        "{n:count safe} note is withheld: it would reveal something of fewer than {least:set} people.",
        "{n:count safe} notes are withheld: they would reveal something of fewer than {least:set} people.",
    ),
    "small_columns_withheld": (
        "Of the {audit:name} audit these columns are withheld, since it does not declare what they reveal: "
        "{columns:name commas}."
    ),
    "small_scoring_rates": (
        "Scoring rates are withheld: they would reveal how many people of small groups score above the median."
    ),
    "small_scoring_rates_clause": "scoring rates are withheld, because small counts are hidden.",
}

say = Catalogue(
    "report",
    "evenhand.report",
    {
        **PAGE,
        **VERDICTS,
        **TILES,
        **SHORT,
        **OVER_TIME,
        **ELSEWHERE,
        **IN_A_SENTENCE,
        **PROFILES,
        **PLAN,
        **COMPARISON,
        **EVIDENCE,
        **SMALL_COUNTS,
    },
    words={
        "fact": ("Selected", "Positive outcome", "People", "Rows", "Answers"),
        "section": (
            "Over time",
            "Elsewhere",
            "Would the verdicts hold among people with other shares of groups?",
        ),
    },
)
"""Makes a message of the report's own sentences."""
