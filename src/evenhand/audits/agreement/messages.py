"""The sentences of the agreement audit: findings, statuses, what was left out, and notes."""

from __future__ import annotations

from evenhand.audits.agreement import AUDIT
from evenhand.audits.agreement.metrics import METRICS, SCALES
from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

_BOTH = (
    "{where}: {title:metric} is {group_value:unit} for {group:group} and {reference_value:unit} for {reference:group}"
)

_FINDINGS: dict[str, Sentence] = {
    "raters": "{title:metric} of the {raters:set} raters is {value:unit}.",
    "raters_undefined": "{title:metric} of the {raters:set} raters cannot be computed.",
    "same": "{where}: {title:metric} is the same for {group:group} and {reference:group}, {group_value:unit}.",
    "less_agreement": f"{_BOTH}; raters agree less about {{lower:group}}.",
    "lower": f"{_BOTH}; it is lower for {{lower:group}}.",
    "by_grouping": "By {grouping:name}",
    "largest_tested": "It is the largest gap of the groups that can be tested.",
    "moves_with": "{title:metric}: {moves_with:noun}, so a lower value need not mean less agreement.",
}

_STATUSES: dict[str, Sentence] = {
    "missing_rating": "missing rating",
    "some_missing": "some ratings are missing",
    "in_group": " in {group:group}",
    "of_group": " of {group:group}",
    "disagree_about_nobody": "the raters disagree about nobody{where}",
    "few_disagreeing": "the disagreement{where} rests on too few people: {people:g}, where {least:set} are needed",
    "few_uncommon": (
        "too few people{where} have another than the commonest rating: {people:g}, where {least:set} are needed"
    ),
    "few_shared": (
        "the raters agree about too few people{where} on another than the commonest rating: {people:g}, where "
        "{least:set} are needed"
    ),
    "one_sided": "all resamples lie on one side of the value",
    "no_limits": "the formula has no limits",
    "no_variance": "the mean of these raters may have next to no variance",
    "resamples_undefined": "too many resamples{where} have no value",
    "resamples_alike": "the resamples{where} do not differ",
}

_NOTES: dict[str, Sentence] = {
    "not_reweighted": (
        "how far raters agree beyond chance rests on all their ratings together, and is no mean over people"
    ),
    "nothing_to_compare": (
        "{grouping:name}: fewer than two groups have min_count {least:set} people, so there is nothing to compare."
    ),
    "depends": (
        "Only agreement itself (PABAK, Bennett's S, the spread-adjusted ICC) says how often or how far raters differ; "
        "the others also depend on how common the ratings are, or how alike the people."
    ),
    "undefined": "Undefined: {records:commas}{others}; the table says why.",
    "metric_of_group": "{metric:name} of {group:group}",
    "and_others": " and others",
    "positive_rating": "The positive rating is {rating!r:name}.",
    "taken_for": "The ratings were taken to be {scale:noun}; say so with `scale` if they are not.",
    "lack_ratings": (
        "{n:count} person lacks some rating: each has {fewest:count safe} to {most:count safe} of {raters:set}. Kappas "
        "and the like count the pairs given.",
        "{n:count} people lack some rating: each has {fewest:count safe} to {most:count safe} of {raters:set}. Kappas "
        "and the like count the pairs given.",
    ),
    "nothing_in_common": (
        "The raters {first!r:name} and {second!r:name} have no rating in common; check that they use the same words."
    ),
    "not_tested_as": "{grouping:name}: {titles:metric and}: not tested, as {why:semicolons}.",
    "many_not_tested_as": "{grouping:name}: {titles:metric commas}{more}: not tested, as {why:semicolons}.",
    "more_metrics": (" and {n:count safe} more metric", " and {n:count safe} more metrics"),
    "remarks": "{grouping:name}: {remarks:semicolons}{more}.",
    "more_groups": ("; and {n:count safe} more group", "; and {n:count safe} more groups"),
    "different_ways": (
        "the metrics point different ways: for {group:group} {lower} than for {reference:group}, but {higher}, both "
        "beyond chance"
    ),
    "not_shown_more": (
        "{clear} for {group:group} than for {reference:group} beyond chance, {plain}: it is not shown that raters "
        "agree more about {group:group}"
    ),
    "not_shown_less": (
        "{clear} for {group:group} than for {reference:group} beyond chance, {plain}: it is not shown that raters "
        "agree less about {group:group}"
    ),
    "is_higher": "{titles:metric and} is higher",
    "are_higher": "{titles:metric and} are higher",
    "is_lower": "{titles:metric and} is lower",
    "are_lower": "{titles:metric and} are lower",
    "is_not": "{titles:metric and} is not",
    "are_not": "{titles:metric and} are not",
}

say = Catalogue(
    "agreement",
    __package__ or "evenhand.audits.agreement",
    {**_FINDINGS, **_STATUSES, **_NOTES},
    words={
        "metric": tuple(dict.fromkeys(title for m in METRICS.values() for title in (m.title, m.title_in_sentence))),
        "noun": (
            AUDIT.name,
            "ratings",
            *SCALES,
            *dict.fromkeys(metric.moves_with for metric in METRICS.values() if metric.moves_with),
        ),
        "section": (AUDIT.title, AUDIT.question),
    },
)
"""The catalogue of the agreement audit."""
