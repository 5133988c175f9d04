"""The sentences on a study's people, cases and answers: what was left out, and how answers were read."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

_READ: dict[str, Sentence] = {
    "header_lines": (
        "{n:count safe} line of question texts and import ids below the header was left out.",
        "{n:count safe} lines of question texts and import ids below the header were left out.",
    ),
    "gave_no_answers": (
        "{n:count} person of the second table gave no answers here.",
        "{n:count} people of the second table gave no answers here.",
    ),
    "not_in_second_table": (
        "{n:count} person who answered is not in the second table.",
        "{n:count} people who answered are not in the second table.",
    ),
}

_RULES: dict[str, Sentence] = {
    "unfinished": "did not reach the end",
    "failed_checks": "failed {checks:set} or more attention checks",
    "incomplete": "answered less than {percent:set}% of their questions",
    "too_fast": "took less than {seconds:set} seconds",
    "same_answer": "gave one and the same answer throughout",
    "people_who": "{rule:name}: people who {limit} ({answers})",
    "answers": ("{n:count} answer", "{n:count} answers"),
}

_DESIGN: dict[str, Sentence] = {
    "incomplete_trajectory": (
        "{n:count} person with a gap in the trajectory was left out.",
        "{n:count} people with a gap in the trajectory were left out.",
    ),
    "unknown_group": (
        "{n:count} person with an unknown group was left out.",
        "{n:count} people with an unknown group were left out.",
    ),
    "cases_left_out": (
        "{n:count} case of {all:count} was left out, evenly over groups and labels.",
        "{n:count} cases of {all:count} were left out, evenly over groups and labels.",
    ),
}

say = Catalogue("responses", __package__ or "evenhand.study", {**_READ, **_RULES, **_DESIGN})
"""Makes a message of the sentences on people, cases and answers."""
