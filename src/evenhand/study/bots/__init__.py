"""Virtual respondents: they take part in a running study over HTTP, as people with a browser without scripts would.

They read the forms of the pages and nothing else, answer with known weights, so that the analysis must find them, and
stray from the straight way as people do: they reload, go back, send twice, leave, come back, withdraw. They remember
what the server acknowledged, so that it can be compared with what is stored.
"""

from evenhand.study.bots.crowd import Crowd, count_events, lost_answers, right_answers, visit_study
from evenhand.study.bots.minds import Answers
from evenhand.study.bots.walk import STRAIGHT, Manners, Walk

__all__ = [
    "STRAIGHT",
    "Answers",
    "Crowd",
    "Manners",
    "Walk",
    "count_events",
    "lost_answers",
    "right_answers",
    "visit_study",
]
