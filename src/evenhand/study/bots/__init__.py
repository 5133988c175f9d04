"""Virtual respondents that take part in a running study over HTTP, like a browser without JavaScript.

They only read the forms of the pages, and answer with known weights, which the analysis should recover.
"""

from evenhand.study.bots.simulation import AnswerModel, Visitors, count_events, right_answers, visit_study
from evenhand.study.bots.visitor import Visit

__all__ = ["AnswerModel", "Visit", "Visitors", "count_events", "right_answers", "visit_study"]
