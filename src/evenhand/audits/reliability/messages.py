"""The sentences of the reliability audit."""

from __future__ import annotations

from evenhand.audits.reliability import AUDIT
from evenhand.audits.reliability.metrics import COMPARED, METRICS
from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

HEADLINES: dict[str, Sentence] = {
    "hurt_more": (
        "{where}: mistakes hurt {lower:group} more; {title:metric} is {size:unit} lower than for {higher:group}."
    ),
    "hurt_slightly_more": (
        "{where}: mistakes hurt {lower:group} more; {title:metric} is less than {least:unit safe} lower than for "
        "{higher:group}."
    ),
    "lower": "{where}: {title:metric} is {size:unit} lower for {lower:group} than for {higher:group}.",
    "slightly_lower": (
        "{where}: {title:metric} is less than {least:unit safe} lower for {lower:group} than for {higher:group}."
    ),
    "no_clear_difference": (
        "{where}: no clear difference in {title:metric} between {group:group} and {reference:group}."
    ),
    "not_tested": "{where}: whether {title:metric} differs between {group:group} and {reference:group} was not tested.",
    "same": "{where}: {title:metric} is the same for {group:group} and {reference:group}.",
    "worst_pair": (
        "{where}: of all pairs of groups, {title:metric} differs most between {lower:group} and {higher:group}, by "
        "{size:unit}."
    ),
    "no_pair_apart": "{where}: no pair of groups differs by {least:unit safe} or more in {title:metric}.",
    "gap_undefined": "{where}: the gap in {title:metric} between {group:group} and {reference:group} is undefined.",
    "noise_place": "{place}, noise {setting:name}",
}

ASIDES: dict[str, Sentence] = {
    "mean_of_pair": "{group:group} minus {reference:group}, on average over {levels}.",
    "mean": "On average over {levels}.",
    "one_level": "the noise level {level:set}",
    "several_levels": "{number:set} noise levels from {low:set} to {high:set}",
    "unequal_mistakes": (
        "{how}: a gap can come from that alone, and need not be what the model makes of equal mistakes."
    ),
    "given_apart": "By {grouping:name}, people were given different mistakes",
    "learned_apart": "Mistakes were learned apart by {grouping:name}",
    "few_people_show": (
        "So few people cannot show a small gap: with nobody of the smaller group hurt, it takes one above {least:.3f}."
    ),
    "few_people_show_none": "No test could show a gap with so few people, even if nobody were hurt.",
    "few_people_show_none_below": (
        "No test could show a gap below {least:.3f} with so few people, even if nobody were hurt."
    ),
    **{
        f"moves_{name}": f"{moves[:1].upper()}{moves[1:]}, so it does not say whom mistakes hurt more."
        for name in COMPARED
        if (moves := METRICS[name].moves_with)
    },
}

STATUSES: dict[str, Sentence] = {
    "few_people": "{who}, and a test needs {least:set}",
    "has_people": ("{group:group} has {n:count} person", "{group:group} has {n:count} people"),
    "has_people_in_a_fold": (
        "{group:group} has {n:count} person in a fold",
        "{group:group} has {n:count} people in a fold",
    ),
    "rests_on": (
        "for {group:group}, what mistakes change rests on {people:.1f} of its people, and it takes {least:set}"
    ),
    "rests_on_nobody": "for {group:group}, what mistakes change rests on nobody, and it takes {least:set}",
    "pilot_takes_replicates": (
        "mistakes were learned by group, and what another pilot would give takes more replicates"
    ),
    "pilot_takes_resample": "mistakes were learned by group, and what another pilot would give takes `resample`",
    "undefined_in_resamples": ("it is undefined in {lost:count safe} of {resamples:count safe} resamples of people"),
    "no_resample_differs": "no resample of people differs",
    "no_value": "no value",
    "in_every_run": "{why} in every run",
    "in_some_runs": "{why} in {lost:count safe} of {runs:count safe} runs",
    "at_levels": "at {lost:set} of {levels:set} noise levels, since {why}",
    "replicate_without_value": "a replicate has no value",
    "pairs_without_interval": (
        "{n:set} of {pairs:count safe} pairs has no interval; {why}",
        "{n:set} of {pairs:count safe} pairs have no interval; {why}",
    ),
    "needs_all_mistakes": "the metric is undefined without some mistakes",
    "fewer_people": "fewer than {least:set} people",
    "no_two_alike": "no two people are no different",
    "nobody_in_level": "nobody is in it in some run",
    "changes_rest_on_few": "the changes rest on too few people",
    "missing_feature": "missing feature",
}

_SIGN = "A rater who errs about the one errs about the other, and the sign of a gap can turn on it: {mend}"
_LIMIT = "However small the error, a mistake takes such an entry to {limit:set}; give a "
_COPIES = (
    "Different people may well be alike in a few columns. But where people were entered more than once, intervals are "
    "too narrow and tests too sure: leave the copies out, or name the column that tells people apart as `id`."
)

MISTAKES: dict[str, Sentence] = {
    "held_fixed": (
        "Warning: {columns:name and} is {what}, and was held fixed while {source!r:name} went wrong. " + _SIGN
    ),
    "held_fixed_each": (
        "Warning: {columns:name and} are each {what}, and were held fixed while {source!r:name} went wrong. " + _SIGN
    ),
    "nearly_function": "all but a function of {source!r:name}",
    "function": "a function of {source!r:name} in {rows}",
    "product": "{source!r:name} times {factor!r:name} in {rows}",
    "every_row": "every row",
    "share_of_rows": "{share:figure}% of rows",
    "let_derive": "let it follow with `derive`.",
    "let_derive_each": "let them follow with `derive`.",
    "let_link": "let it follow with `linked={links:name}`, or with `derive`.",
    "let_link_each": "let them follow with `linked={links:name}`, or with `derive`.",
    "let_link_product": "let it follow with `linked={links:name}`.",
    "let_link_group": "put that column among `features` as 0 and 1, and let the product follow with `linked`.",
    "mend_rows": "mend the other rows, and {mend}",
    "hold_fixed_too": "columns that define groups stay as they are, so hold {source!r:name} fixed too.",
    "held_for_group": (
        "{name!r:name} is a function of {column!r:name}, which defines groups. It was not perturbed by "
        "{published!r:name}, as that column would not be."
    ),
    "wrong_for_group": (
        "Warning: {name!r:name} is a function of {column!r:name} in {rows}, and went wrong while people stayed in the "
        "groups that {column!r:name} defines. A gap may then be the work of mistakes about the group itself: hold it "
        "fixed with `fixed={fixed:name}`, or leave it out of `noise`."
    ),
    "below_minimum": (
        "Warning: {name!r:name} is below its minimum {limit:set} for {n:count} person of {people:count}. "
        + _LIMIT
        + "minimum that the data keeps.",
        "Warning: {name!r:name} is below its minimum {limit:set} for {n:count} people of {people:count}. "
        + _LIMIT
        + "minimum that the data keeps.",
    ),
    "above_maximum": (
        "Warning: {name!r:name} is above its maximum {limit:set} for {n:count} person of {people:count}. "
        + _LIMIT
        + "maximum that the data keeps.",
        "Warning: {name!r:name} is above its maximum {limit:set} for {n:count} people of {people:count}. "
        + _LIMIT
        + "maximum that the data keeps.",
    ),
    "copies": (
        "{n:count} row of {rows:count} is an exact copy of another one in all columns used. " + _COPIES,
        "{n:count} rows of {rows:count} are exact copies of another one in all columns used. " + _COPIES,
    ),
    "wider": (
        "The published study had no feature with more than two categories; {name!r:name} has {number:set}, and a "
        "mistake makes it one of the others, each with equal chance."
    ),
}

_LEARNED = "noise level 1 is as often as there."
_SHARED = " All groups share one profile of errors."
_FEW = (
    "few to learn mistakes from: rare mistakes may be missing, and another pilot may give other gaps. Rate {least:set} "
    "people or more twice."
)

PILOT: dict[str, Sentence] = {
    "learned": (
        "The mistakes were learned from {n:count} person whom two raters rated; " + _LEARNED,
        "The mistakes were learned from {n:count} people whom two raters rated; " + _LEARNED,
    ),
    "learned_shared": (
        "The mistakes were learned from {n:count} person whom two raters rated; " + _LEARNED + _SHARED,
        "The mistakes were learned from {n:count} people whom two raters rated; " + _LEARNED + _SHARED,
    ),
    "rated_twice": (
        "{n:count} person rated twice is too " + _FEW,
        "{n:count} people rated twice are " + _FEW,
    ),
    "lack_rating": (
        "{n:count} person of the pilot lacks a rating and was not used.",
        "{n:count} people of the pilot lack a rating and were not used.",
    ),
    "not_in_pilot": "The pilot does not have {features:name commas}; they were not perturbed.",
    "own_mistakes": (
        "By {grouping:name}, mistakes were learned apart for {groups:and}; everybody else goes wrong as the whole "
        "pilot does. That they were learned apart does not show that they differ."
    ),
    "own_mistakes_of": "{group:group} ({size:count} people of the pilot)",
    "no_group": "no group",
    "few_in_pilot": "Fewer than {enough:set} people of the pilot are {groups:commas}.",
    "group_size": "{group:group} ({size:count})",
}

SETUP: dict[str, Sentence] = {
    "not_reweighted": ("models and mistakes were made from these people, and others would have other ones"),
    "only_these": "Gaps hold for these models and these mistakes; other models or mistakes may give other gaps.",
    "groups_stay": "Columns that define groups were not perturbed: {columns:name commas}.",
    "no_weights": "Survey weights are not used: every person counts once.",
    "dropped": (
        "{n:count} person with a missing feature was left out.",
        "{n:count} people with a missing feature were left out.",
    ),
    "nothing_to_compare": (
        "{grouping:name}: fewer than two groups have min_count {least:set} people, so there is nothing to compare."
    ),
    "few_replicates": (
        "{n:set} replicate of the mistakes says little of what other mistakes would give; take 100 or more.",
        "{n:set} replicates of the mistakes say little of what other mistakes would give; take 100 or more.",
    ),
    "attributed_for_one": "Two raters go wrong in the curves; the gap is shared out among features for one.",
    "not_alike": (
        "Entries do not go wrong alike for all: by {grouping:name}, {differences:semicolons}. Gaps rest on these "
        "settings as well as on the model."
    ),
    "about_group": "about {group:group} {ways:and}",
    "never": "never",
    "times_as_often": "{times:set} times as often",
    "in_another_way": "in another way in {features:name commas}",
    "alike": (
        "Everybody's entries are taken to go wrong alike: equally often, and in the same ways in all groups. Where "
        "raters err more about one group, its results suffer more than is shown here; `group_noise` can say so."
    ),
}

MODELS: dict[str, Sentence] = {
    "one_score": (
        "{model:name}: all scores are {score:set}. Kappa and ICC are undefined: they ask how far scores tell people "
        "apart."
    ),
    "selects_everybody": (
        "{model:name}: everybody is selected at the threshold {threshold:set}. Kappa is undefined where decisions do "
        "not differ; PABAK is not."
    ),
    "selects_nobody": (
        "{model:name}: nobody is selected at the threshold {threshold:set}. Kappa is undefined where decisions do not "
        "differ; PABAK is not."
    ),
    "never_changed": (
        "{model:name}, noise {setting:name}: the mistakes in {features:name commas} never changed an entry, so nothing "
        "is known of how the model would react to other ones."
    ),
    "no_reaction": (
        "{model:name}, noise {setting:name}: the mistakes in {features:name commas} changed entries and no score; the "
        "model does not react to them."
    ),
    "loose_fit": (
        "{model:name}: a logistic regression with tol={tolerance:set} stops before the optimum. Where columns add up "
        "to a constant its coefficients, and with them these numbers, are then those of the software's version; fit "
        'with solver="newton-cholesky", tol=1e-12.'
    ),
    "rounding": (
        "{model:name}: scores of the same people differ by up to {size:.1g safe} from one call to the next. That is "
        "rounding, and people within it of the threshold may change sides."
    ),
}

_NEVER = (
    "in no fold or replicate does the metric have a value, since the results do not differ there. That lies in the "
    "model and its threshold: PABAK and the mean squared error are defined all the same."
)
_SOMETIMES = (
    "in some fold or replicate the metric has no value, and a mean over the others would be another one. Fewer folds, "
    "or a larger group, help."
)
_FOR_FEW = "PABAK, averaged over noise levels, is tested there by limits that hold for any number of people."
_TOO_SMALL = (
    "The bootstrap gives no interval, test or verdict for gaps of groups with fewer than {least:set} people, or with "
    "fewer than {in_a_fold:set} in a fold ({for_ratios:set} for kappa, ICC and their like): they would be wrong more "
    "often than they say. "
)
_ROUGH = f" {_FOR_FEW} The bands of their curves are rough. A larger `min_count` leaves such groups out."

OUTCOME: dict[str, Sentence] = {
    "undefined_always": (
        "{n:count safe} value of the curves is undefined, of {groups}: " + _NEVER,
        "{n:count safe} values of the curves are undefined, of {groups}: " + _NEVER,
    ),
    "undefined_sometimes": (
        "{n:count safe} value of the curves is undefined, of {groups}: " + _SOMETIMES,
        "{n:count safe} values of the curves are undefined, of {groups}: " + _SOMETIMES,
    ),
    "groups_named": "{groups:commas}",
    "groups_named_and_others": "{groups:commas} and others",
    "group_of": "{group:group} ({grouping:name})",
    "too_small": _TOO_SMALL + "{few:semicolons}." + _ROUGH,
    "too_small_and_more": _TOO_SMALL + "{few:semicolons} and {more:set} more." + _ROUGH,
    "too_concentrated": (
        "The bootstrap gives no interval, test or verdict where what mistakes change in a group rests on fewer than "
        "{damaged:set} people ({moved:set} for scores), of {groups}: with other people it could be nothing, or twice "
        f"as much. {_FOR_FEW}"
    ),
    "metrics_disagree": (
        "{model:name}, by {grouping:name}, noise {setting:name}: the metrics disagree. For {group:group}, compared "
        "with {reference:group}, {lower} lower and {higher} higher."
    ),
    "one_metric": "{metric} is",
    "several_metrics": "{metrics:and} are",
    "metric_alone": "{title:metric}",
    "metric_clearly": "{title:metric} (clearly)",
    "what_metrics_measure": (
        "Metrics that disagree measure different things: PABAK and the spread-adjusted ICC what mistakes do, kappa "
        "also how rare selection is, ICC also how far a group's scores lie apart."
    ),
}

say = Catalogue(
    "reliability",
    __package__ or "evenhand.audits.reliability",
    {**HEADLINES, **ASIDES, **STATUSES, **MISTAKES, **PILOT, **SETUP, **MODELS, **OUTCOME},
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "noun": (AUDIT.name,),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the reliability audit."""
