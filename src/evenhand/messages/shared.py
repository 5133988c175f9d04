"""Messages shared by several parts of the package: statuses, headlines, reasons and families."""

from __future__ import annotations

from itertools import takewhile

from evenhand.messages.catalogue import Catalogue
from evenhand.messages.message import Argument

OWN_LABELS = ("(missing)", "(small groups)", "(overall)")
"""Group labels that evenhand creates."""

say = Catalogue(
    "core",
    "evenhand.messages",
    words={
        "group": OWN_LABELS,
        "noun": ("people", "answers", "rows", "groups", "pairs", "candidates", "everybody", "what is not declared"),
        "sign": (",", ".", "%"),
        "joint": ("and", "or"),
        "month": (
            *("January", "February", "March", "April", "May", "June", "July"),
            *("August", "September", "October", "November", "December"),
        ),
        "verb": ("selects", "selects (end of the clause)", "selects (last)", "particles"),
    },
)
"""Builds a message from a shared sentence."""

_ECHO = 4
"""The minimum number of shared initial letters for a model's name to sound like the verb."""


def speaker(model: str, verb: str, *, alone: bool) -> Argument:
    """Return a model's name for a sentence: "the system" if a single model is named like its verb.

    Examples
    --------
    >>> str(speaker("approve", "approves", alone=True)), speaker("screen", "hires", alone=True)
    ('the system', 'screen')
    """
    letters = zip(model.lower(), verb.lower(), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
    return say("the_system") if alone and (shared >= _ECHO or shared == len(model)) else model
