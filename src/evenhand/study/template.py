"""A `study.toml` to start from, for each kind of study."""

from __future__ import annotations

from evenhand.errors import require_choice
from evenhand.study.schema import KINDS, Kind

_COMMON = '''# A study for evenhand. Texts may be in several languages: title = {{ en = "...", de = "..." }}.
kind = "{kind}"
name = "{name}"
title = "{title}"
languages = ["en"]
consent = """
You are invited to take part in a study on fairness. It takes about {minutes} minutes. You may stop at any time.
Your answers are stored without your name. Tick the box below if you are at least 18 and want to take part."""
debrief = "Thank you. Your answers were saved."
seed = 0
'''

_EFFORT = """sets_per_person = 3

# One section a condition; the sets come from design_sets(...).save("income.json").
[conditions.income]
instrument = "income.json"
feature = "annual income"
subject = "household"
subjects = "households"
outcome = "missing a credit card payment"
unit = "$"
desirable = true

[conditions.arrests]
instrument = "arrests.json"
feature = "number of arrests a year"
subject = "defendant"
subjects = "defendants"
outcome = "committing a violent crime if released"
desirable = false
"""

_FEEDBACK = """
[feedback]
cases = "cases.csv"
id = "case"
decision = "label"
labels = ["low", "high"]          # all labels the system can give, lowest first
groups = ["race"]                 # every critic sees every group
shown = ["age", "charge", "priors"]
answers = ["agree", "disagree"]   # add "too_high" and "too_low" where labels have an order

[feedback.assignment]
per_critic = 50
per_case = 20
"""

_TAIL = """
[[attention]]
question = "To show that you read this, choose Blue."
choices = ["Red", "Blue", "Green"]
right = "Blue"
after = 1

[[attention]]
question = "Which of these is not an animal?"
choices = ["Dog", "Chair", "Horse"]
right = "Chair"
after = 2

[[attention]]
question = "Please choose the number seven."
choices = ["Five", "Six", "Seven"]
right = "Seven"
after = 3

[payment]
amount = 8.45
currency = "USD"
minutes = 42
{bonuses}
[analysis.exclusions]
failed_checks = 2                 # leave out who failed this many attention checks; false keeps them
"""

_BONUSES = """
[[payment.bonuses]]
by = "truth_serum"
amount = 5
share = 0.1

[[payment.bonuses]]
by = "reasons"
amount = 5
share = 0.1
"""


def study_template(kind: Kind) -> str:
    """Return a commented `study.toml` that only lacks its sets or cases.

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.study.study_template("feedback").splitlines()[1]
    'kind = "feedback"'
    """
    require_choice("kind", kind, KINDS)
    title = "Who is alike?" if kind == "effort" else "Do you agree with these decisions?"
    name = "who-is-alike" if kind == "effort" else "do-you-agree"
    head = _COMMON.format(kind=kind, name=name, title=title, minutes=42)
    body = _EFFORT if kind == "effort" else _FEEDBACK
    return head + body + _TAIL.format(bonuses=_BONUSES if kind == "effort" else "")
