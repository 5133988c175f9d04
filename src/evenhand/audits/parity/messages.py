"""The sentences of the parity audit: findings, statuses, what was left out, and notes."""

from __future__ import annotations

from evenhand.audits.parity import AUDIT
from evenhand.audits.parity.metrics import BUILT_IN
from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

_TWO = "{group_value:unit} of {group:group} and {reference_value:unit} of {reference:group}{people}"

_CLAUSES: dict[str, Sentence] = {
    "clause_selection_rate": "{place:upper}, {model:name} {selects:verb} " + _TWO,
    "clause_tpr": "{place:upper}, of those with the positive outcome, {model:name} {selects:verb} " + _TWO,
    "clause_fpr": "{place:upper}, of those with the negative outcome, {model:name} {selects:verb} " + _TWO,
    "clause_ppv": "{place:upper}, of those that {model:name} {selects:verb}, the outcome is positive for " + _TWO,
    "clause_accuracy": "{place:upper}, {model:name} is right about " + _TWO,
    "clause_base_rate": "{place:upper}, the outcome is positive for " + _TWO,
    "clause_mean_score": (
        "{place:upper}, {model:name}'s mean score is {group_value:unit} for {group:group} and {reference_value:unit} "
        "for {reference:group}{people}"
    ),
}
"""A judge reads "xgboost flags 27.9% of Black and 4.3% of Asian households"; other metrics keep their titles."""

_FINDINGS: dict[str, Sentence] = {
    "against_everybody": ("{where}: {title:metric} is {group_value:unit} for {group:group}, compared with everybody."),
    "other_groups": "Other groups: {groups:commas}{more}.",
    "group_value": "{group:group} {value:unit}",
    "not_compared": "Not compared: {groups:commas}{more}.",
    "group_size": "{group:group} (n = {n:count})",
    "more_groups": (" and {n:set} more group", " and {n:set} more groups"),
}

_STATUSES: dict[str, Sentence] = {
    "no_people": "the group has no people",
    "no_positives": "nobody in the group has the positive outcome",
    "no_negatives": "nobody in the group has the negative outcome",
    "nobody_selected": "nobody in the group is selected",
    "everybody_selected": "everybody in the group is selected",
    "nobody_counts": "nobody in the group counts below the line",
    "one_outcome": "the group has only one of the two outcomes",
    "neither": "nobody in the group is selected or has the positive outcome",
    "no_number": "your function returned no number",
    "too_few_shared": "too few people in the strata shared by all groups",
    "small_rarer": "small: {n:count} of the rarer outcome, fewer than min_count {least:set}; left out of gaps",
    "small_in_metric": "{metric:name}: {status}",
    "negative_values": "a ratio needs values that cannot be negative",
    "all_alike": "nobody in this group differs from the others in it",
    "told_apart": "too few people of one outcome, or the scores tell the outcomes apart without fail",
    "still_resamples": "the resamples do not vary, or too many of them are undefined",
    "zero_below": "the denominator is 0",
    "zero_below_possible": "the denominator may be 0",
    "one_group_has_none": "one of the groups has none of its own",
    "some_still_resamples": "some resamples do not vary or are undefined",
}

_NOTES: dict[str, Sentence] = {
    "limits_a_value": "limits a value, not a gap",
    "no_rate_simulated": "no rate: not simulated",
    "power_nothing_compared": "nothing to compare",
    "rate_simulated": "simulated, {samples:count safe} samples, rate {rate:.3g}",
    "power_left_out": "{how}; left out, since the audit asks for {least:set} of a group: {groups:group commas}",
    "no_mean_to_weight": "{metric:name} is no mean over people that could be weighted here",
    "strata_shares_change": (
        "a mean over strata has shares of its own, which other shares of the people would change as well"
    ),
    "standardised_over": (
        "{where}: {metrics:name commas} is standardised over {used:set} of {strata:set} strata of {factor:name}, those "
        "in which every group has {least:set} people; they hold {share:.0%} of all people."
    ),
    "not_standardised": (
        "{where}: {metrics:name commas} cannot be standardised, since no stratum of {factor:name} has min_count "
        "{least:set} people of every group."
    ),
    "own_function": "{metric:name} is your own function, not the built-in metric of that name.",
    "not_computed": "{model:name}: not computed {lacking:semicolons}.",
    "without": "without {needs:noun and}: {metrics:name commas}",
    "auc_from_bins": (
        "{model:name}: the AUC of {rows:count} rows was computed from {bins:count} score bins; the overall value is "
        "within {error:.1e safe} of the exact one."
    ),
    "strata_withheld": "Gaps within strata of {factors:name commas} are withheld.",
    "small_strata_withheld": "Gaps within strata of {factors:name commas} are withheld: some strata are too small.",
    "fewer_bins": "Calibration is shown in {bins:set} score bins in place of {asked:set}.",
    "calibration_withheld": "Calibration is withheld.",
    "small_bins_withheld": "Calibration is withheld: some score bins hold too few people.",
    "auc_not_within": "AUC is compared over all strata together, not within them.",
    "other_way_round": (
        "{model:name}: the score seems to point the other way, since people with the positive outcome score lower than "
        "those without (AUC {auc:.3f}); check the score and the table's `positive`."
    ),
}

say = Catalogue(
    "parity",
    __package__ or "evenhand.audits.parity",
    {**_CLAUSES, **_FINDINGS, **_STATUSES, **_NOTES},
    words={
        "metric": tuple(metric.title_in_sentence for metric in BUILT_IN.values()),
        "noun": (AUDIT.name, "outcome", "scores", "scores between 0 and 1"),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""Makes a message of the parity audit's sentences."""

SMALL = frozenset({"core.small", "parity.small_rarer"})
"""The statuses of a group that is too small to be compared."""

NOT_COMPARED = SMALL | {"core.missing_group", "core.undefined"}
"""The statuses of a group that enters no gap."""
