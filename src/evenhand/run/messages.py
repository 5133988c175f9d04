"""The sentences of plans and of differing settings."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

PLAN: dict[str, Sentence] = {
    "section_gone": "[{section:name}] was planned and is not there.",
    "section_unplanned": "[{section:name}] was not planned.",
    "setting_changed": "`{name:name}` in [{section:name}] was planned as {planned:name} and is {done:name}.",
    "not_there": "not there",
    "threshold_unplanned": "The threshold '{metric:name}, {side:name} = {limit:set}' of {audit:name} was not planned.",
    "threshold_gone": (
        "The threshold '{metric:name}, {side:name} = {limit:set}' of {audit:name} was planned and is not there."
    ),
    "in_results": "in results.json",
    "in_file": "in '{path:name}'",
    "before": "before",
    "now": "now",
    "none": "none",
    "given_name": "{name:name}",
    "setting_differs": "{place:name}: {old} {then}, {new} {now}.",
}

say = Catalogue(
    "run",
    "evenhand.run",
    {**PLAN},
)
