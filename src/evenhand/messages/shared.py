"""Sentences shared by several parts of the package: statuses, headlines, reasons, families."""

from __future__ import annotations

from itertools import takewhile

from evenhand.messages.catalogue import Catalogue
from evenhand.messages.message import Argument

OWN_LABELS = ("(missing)", "(small groups)", "(overall)")
"""Labels that evenhand gives to groups."""

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
"""Makes a message from a shared sentence."""

_ECHO = 4
"""The letters that a name and a verb share at least where they sound alike."""


def speaker(model: str, verb: str, *, alone: bool) -> Argument:
    """Return what a sentence calls a model: the system, where a single model is called like its verb.

    Examples
    --------
    >>> str(speaker("approve", "approves", alone=True)), speaker("screen", "hires", alone=True)
    ('the system', 'screen')
    """
    letters = zip(model.lower(), verb.lower(), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
    return say("the_system") if alone and (shared >= _ECHO or shared == len(model)) else model
