"""Virtual respondents: they take part in a running study over HTTP, as people with a browser without scripts would.

They read the forms of the pages and nothing else, answer with known weights, so that the analysis must find them, and
do what people do: they reload, go back, send twice, leave, come back, withdraw. They remember what the server
acknowledged, so that it can be compared with what is stored.
"""

from evenhand.study.bots.simulation import AnswerModel, Visitors, count_events, lost_answers, right_answers, visit_study
from evenhand.study.bots.visitor import NO_DETOURS, Behaviour, Visit

__all__ = [
    "NO_DETOURS",
    "AnswerModel",
    "Behaviour",
    "Visit",
    "Visitors",
    "count_events",
    "lost_answers",
    "right_answers",
    "visit_study",
]
