"""The sentences of comparisons and of `verify`."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

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
}

VERIFY: dict[str, Sentence] = {
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

POWER: dict[str, Sentence] = {
    "simulated": "simulated: {tables:count safe} tables of {rows:count safe} rows drawn from the pilot",
    "simulated_few": "{how}; {number:count safe} of them have an interval with both ends",
    "scaled": (
        "the pilot's interval, narrower with the square root of the rows: critics and cases are crossed, and how many "
        "of each so many rows would hold is not known"
    ),
    "no_difference": "the pilot has no interval of a difference to use",
}

say = Catalogue(
    "evidence",
    "evenhand.evidence",
    {**COMPARISON, **VERIFY, **POWER},
)
