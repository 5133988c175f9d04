"""The sentences of the effort audit."""

from __future__ import annotations

from evenhand.audits.effort import AUDIT
from evenhand.audits.effort.choices import CHOICE_TITLES, ChoiceName
from evenhand.audits.effort.metrics import METRICS
from evenhand.messages.catalogue import Catalogue, Sentence

_PARITY = "{where}, at similar effort: the {what:noun} of {reference:group} is {times:.3g} times that of {group:group}"

HEADLINES: dict[str, Sentence] = {
    "individual": "{where:name}: individual fairness at effort weight {weight:set} is {value:number}.",
    "direction": (
        "{where:name}: in {value:percent} of comparable pairs the person who came further is scored worse; a random "
        "score would give {random:percent}."
    ),
    "direction_punishes": (
        "{where:name}: the person who came further is scored worse in {value:percent} of comparable pairs and better "
        "in only {concordant:percent}."
    ),
    "direction_none": "{where:name}: reversed pairs cannot be counted.",
    "direction_groups": (
        "{where}: {group:group} who came further than {reference:group} are scored worse {value:points} points more "
        "often than {reference:group} who came further than {group:group}."
    ),
    "fairer_model": (
        "At equal spread of scores, {model:name} is fairer to individuals than {other:name} at effort weight "
        "{weight:set}, by {value:number}."
    ),
    "close_models": (
        "At equal spread of scores, {model:name} and {other:name} cannot be distinguished in individual fairness at "
        "effort weight {weight:set}."
    ),
    "untested_models": (
        "{model:name} and {other:name} were not tested for a difference at effort weight {weight:set}."
    ),
    "least_equal": f"{_PARITY}.",
    "least_equal_untested": f"{_PARITY}; not tested.",
    "least_equal_unclear": f"{_PARITY}; no clear difference.",
    "bin_parity": (
        "{where}, in one bin of effort: the {what:noun} of {reference:group} is {times:.3g} times that of "
        "{group:group}."
    ),
    "no_bin": "{where}: no bin of effort has two groups of {min_count:set} people or more, so none can be compared.",
    "fairest": (
        "{models:name and} is the fairest {scope} in {share:percent safe} of {ranked:count safe} specifications."
    ),
    "fairest_always": "{models:name and} is the fairest {scope} in all {ranked:count safe} ranked specifications.",
    "fairest_once": "{models:name and} is the fairest {scope} in the only specification that can be ranked.",
    "fairest_tied": (
        "{models:name and} are the fairest {scope} in {share:percent safe} of {ranked:count safe} specifications each."
    ),
    "fairest_unknown": "Which model is the fairest {scope} cannot be said under any specification.",
    "range": "{where:name}: {title:metric} runs from {low:number} to {high:number} over all specifications.",
    "range_undefined": "{where:name}: {title:metric} is undefined in all specifications.",
    "to_individuals": "to individuals at equal spread of scores",
    "at_similar_effort": "by {grouping:name} among people of similar effort",
    "lowest_parity": "the lowest parity by {grouping:name}",
}

ASIDES: dict[str, Sentence] = {
    "violated": "{share:percent} of pairs of people have scores further apart than their effort and aggregate.",
    "at_least_spread": "At the smallest spread of all models it is {value:number}.",
    "equal_spread": (
        "Both are compared at a mean difference of {spread:number} between two people's scores, the smaller of the two."
    ),
    "from_rates": "{share:percent safe} of the interval's variance comes from the rates of inertia.",
    "comparable": (
        "{pairs:count} pairs are comparable: one has more effort, from no better a start to no worse an end. "
        "{concordant:percent} are concordant, {tied:percent} tied."
    ),
    "shortfall": "In a reversed pair the score is {shortfall:number} worse on average.",
    "lowest_bin": "Effort bin {low:set} to {high:set}, where parity is lowest.",
    "clearest_bin": "Effort bin {low:set} to {high:set}, the bin that lies most clearly beyond the limit.",
    "pairs_of_models": "all pairs of models at this weight",
    "one_bin": "1 bin compared",
    "both_bins": "both bins compared",
    "all_bins": "all {number:count safe} bins compared",
    "none_ranked": (
        "None of {n:count safe} specification gives every model a value.",
        "None of {n:count safe} specifications gives every model a value.",
    ),
    "wins": "That is {wins:,.6g safe} of {ranked:count safe}{tied}{own}.",
    "wins_tied": ", counted in parts where models are tied",
    "own_among_them": ", the audit's own among them",
    "own_unranked": "; the audit's own specification cannot be ranked",
    "own_other": "; in the audit's own specification it is {models:name and}",
    "more_unranked": "{number:count safe} more cannot be ranked.",
    "not_varied": "No choice was varied.",
    "not_changed": "No choice alone changes it.",
    "changes_most": (
        "Which model is the fairest changes most with {choices:noun and} (in {share:percent safe} of comparisons)."
    ),
    "not_distinguished": "The data do not distinguish it from {models:name and}.",
    "no_value": (
        "It has no value in any of {n:count safe} specification.",
        "It has no value in any of {n:count safe} specifications.",
    ),
    "with_value": (
        "There is {n:count safe} specification with a value{undefined}.",
        "There are {n:count safe} specifications with a value{undefined}.",
    ),
    "more_undefined": " ({number:count safe} more are undefined)",
    "own_value": "The audit's own value is {value:number}.",
    "alike": "Of all {size:count safe} specifications only {different:count safe} give different numbers.",
}

STATUSES: dict[str, Sentence] = {
    "all_fair": "no pair is treated unfairly",
    "few_people": "too few people",
    "equally_fair": "everybody is treated equally fairly on average",
    "sampled": "sampled pairs give no row means",
    "few_groups": "fewer than two groups have {least:set} people here",
    "means_of_zero": "the mean score of every group is 0",
    "constant_scores": "the scores of a group do not vary",
    "constant_group": "the people of this group do not differ",
    "missing_group": "missing group: left out of parity",
    "small_group": "only {n:count} (minimum {least:set}); shown, not compared",
    "no_side": "the table does not say which side is `favourable`",
    "no_pair": "nobody came further than another from no better a start to no worse an end",
    "none_reversed": "no pair is reversed",
    "one_in_all_pairs": "one person is in all comparable pairs, or the pairs do not differ",
    "no_two_groups": "no two groups of {least:set} people have comparable pairs both ways",
    "equal_pairs": (
        "{n:count safe} pair of groups do not differ",
        "{n:count safe} pairs of groups do not differ",
    ),
    "few_rates": "only {known:count safe} of {imputations:set} sets of rates that may be true give one",
    "not_samples": "specifications are choices, not samples",
    "unranked": "no specification can be ranked",
    "no_parity": "no effort bin has two groups of at least {least:set} people and a mean score above 0",
    "one_model": "one model: no ranking",
    "one_option": "one option: not varied",
    "value_missing": "missing value in the trajectory or the inertia",
}

_SHORT = (
    " the intervals of individual fairness can be too short. In simulations they hold the true value as often as they "
    "should when unfairness is spread over many people; where one person in twenty causes nearly all of it, they hold "
    "it 70% of the time at 20 people and 86% at 50 instead of 95%, and the difference of two models 61% and 77%."
)
_UNEVEN = " (as good as {effective:count}, for their uneven weights)"

NOTES: dict[str, Sentence] = {
    "no_reweighted_limits": "for {metric:name} there are no limits with other shares here",
    "pairs_stay_in_engine": (
        "more than {most:count safe} people stay in the data's engine, where pairs are not weighted again"
    ),
    "uncertain_inertia_not_reweighted": (
        "the rates of inertia are uncertain, and limits with other shares would not allow for that"
    ),
    "few": (f"With {{n:count}} person{_SHORT}", f"With {{n:count}} people{_SHORT}"),
    "few_weighted": (f"With {{n:count}} person{_UNEVEN}{_SHORT}", f"With {{n:count}} people{_UNEVEN}{_SHORT}"),
    "two_steps": (
        "Only two of the {steps:count safe} time steps enter effort: {first:name} and {last:name}. Whoever picks the "
        "window picks the effort; the robustness analysis tries other windows and measures."
    ),
    "high_inertia": "The inertia runs up to {highest:g}; it is meant to be at most 1, so that effort is too.",
    "extreme_effort": (
        "{share:.0%} of people have the lowest or the highest possible effort, so that it hardly tells them apart: "
        "take a larger `unit`."
    ),
    "extreme_aggregate": (
        "Most people have the highest possible aggregate, which hardly tells them apart: take a larger `scale`."
    ),
    "equal_efforts": "All efforts are equal; they play no part in the distance between people.",
    "equal_aggregates": "All aggregates are equal; they play no part in the distance between people.",
    "all_equal": "All efforts and all aggregates are equal; they play no part in the distance between people.",
    "negative": (
        "{n:count} person has a negative value in their trajectory; their aggregate may be below 0.",
        "{n:count} people have a negative value in their trajectory; their aggregate may be below 0.",
    ),
    "not_in_table": ("The history has {people:count} people who are not among those of the table; they are not used."),
    "learned": (
        "The distance was learned from {n:count} judged pair: its matrix is {effort:.3f} for effort, {aggregate:.3f} "
        "for the aggregate and {both:.3f} for both. It has its own weight of effort, so that `weights` play no part; "
        "how uncertain it is, is not in the intervals.",
        "The distance was learned from {n:count} judged pairs: its matrix is {effort:.3f} for effort, {aggregate:.3f} "
        "for the aggregate and {both:.3f} for both. It has its own weight of effort, so that `weights` play no part; "
        "how uncertain it is, is not in the intervals.",
    ),
    "not_weighed": "The distance {norm!r:name} does not weigh effort: all `weights` between 0 and 1 are alike.",
    "of_decisions": "Parity by effort is of decisions: a mean score is the share selected ({cuts:commas}).",
    "cut": "{model:name} above {cut:set}",
    "uncertain_rates": (
        "The rates of inertia are known up to their standard errors. The intervals of individual fairness and of "
        "parity by effort hold that too (multiple imputation of the rates, Rubin's rules); all others take the rates "
        "as given."
    ),
    "no_ids": "The least fair pairs and their people are not listed, since the table names no id column.",
    "in_engine": (
        "The {people:count} people stayed in the data's own engine: it counted those who are alike, or filled a grid "
        "that was corrected on a sample of people. Reversed pairs are not counted, and the least fair pairs and their "
        "people are not listed."
    ),
    "not_checked": (
        "Whether effort is punished was not checked for {models:name commas}: say with `favourable` whether a high "
        "score is good for the person."
    ),
    "counted_among": (
        "Reversed pairs were counted among {people:count} people drawn at random; intervals allow for it."
    ),
    "other_choices_withheld": "Effort under other choices is withheld: the effort bins of those could be small.",
}


def named_choice(name: ChoiceName) -> str:
    """Name an analyst's choice within a sentence.

    Examples
    --------
    >>> named_choice("measure")
    'the trajectory measure'
    """
    title = CHOICE_TITLES[name]
    return f"the {title[0].lower()}{title[1:]}"


say = Catalogue(
    "effort",
    __package__ or "evenhand.audits.effort",
    {**HEADLINES, **ASIDES, **STATUSES, **NOTES},
    words={
        "metric": tuple(metric.title_in_sentence for metric in METRICS.values()),
        "noun": (
            AUDIT.name,
            "effort bins",
            "the spread of effort",
            "reversed pairs",
            "mean score",
            "share selected",
            *map(named_choice, CHOICE_TITLES),
        ),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the effort audit."""
