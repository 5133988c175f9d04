"""The sentences of the effort audit."""

from __future__ import annotations

from evenhand.audits.effort import AUDIT
from evenhand.audits.effort.choices import CHOICE_TITLES, ChoiceName
from evenhand.audits.effort.metrics import METRICS
from evenhand.messages import Catalogue


def named_choice(name: ChoiceName) -> str:
    """Return the name of an analyst's choice within a sentence.

    Examples
    --------
    >>> named_choice("measure")
    'the trajectory measure'
    """
    title = CHOICE_TITLES[name]
    return f"the {title[0].lower()}{title[1:]}"


say = Catalogue(
    "effort",
    "evenhand.audits.effort",
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
