"""Virtual respondents: they take part in a running study over HTTP, as people with a browser without scripts would.

They read the forms of the pages and nothing else, and answer with known weights, so that the analysis must find them.
"""

from evenhand.study.bots.simulation import AnswerModel, Visitors, count_events, right_answers, visit_study
from evenhand.study.bots.visitor import Visit

__all__ = ["AnswerModel", "Visit", "Visitors", "count_events", "right_answers", "visit_study"]
