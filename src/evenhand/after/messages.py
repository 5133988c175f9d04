"""The sentences of periods, population shift, legal profiles and small counts."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

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

POPULATION_SHIFT: dict[str, Sentence] = {
    "holds_with_other_shares": (
        "It would hold with other shares of {columns:name and} among the people ({tried:set} tried)."
    ),
    "open_with_other_shares": (
        "The evidence would stay insufficient with other shares of {columns:name and} among the people "
        "({tried:set} tried)."
    ),
    "changes_with_other_shares": "With {what} among the people it would be: {verdict} ({value}).",
    "breaks_with_other_shares": (
        "With {what} among the people, the verdict without adjustment for other verdicts would be: {verdict} ({value})."
    ),
    "covers_with_other_shares": (
        "With {what} among the people, the interval would cover the limit even without adjustment ({value})."
    ),
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
        "information about fewer than {least:set} people.",
        "Of the {audit:name} audit {n:count safe} records are withheld ({parts:noun commas}): they would reveal "
        "information about fewer than {least:set} people.",
    ),
    "small_notes_withheld": (
        "{n:count safe} note is withheld: it would reveal information about fewer than {least:set} people.",
        "{n:count safe} notes are withheld: they would reveal information about fewer than {least:set} people.",
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
    "after",
    "evenhand.after",
    {**OVER_TIME, **POPULATION_SHIFT, **PROFILES, **SMALL_COUNTS},
    words={
        "section": (
            "Over time",
            "Other populations",
            "Would the verdicts hold among people with other shares of groups?",
        ),
    },
)
