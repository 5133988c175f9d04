"""How virtual respondents answer what they see: as simulated people with known weights would.

They know nothing but the page. Of two trajectories they take in how far apart the two slopes are, and how far apart
the totals, each relative to the two together: |k - s| / (|k| + |s|), 0 for the same and 1 for opposite slopes or
nothing against something. From there on they answer as `Respondents` describes; of cases, as `Critics` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenhand.study.bots.page import Fields, Form, Page
from evenhand.study.critics import Critics
from evenhand.study.simulate import Respondents

_FAR_TOTALS = 0.5
"""Totals of which one is three times the other are as different as they get."""


@dataclass(frozen=True)
class Answers:
    """What everybody of a crowd is like, and the right answers of attention checks by their choices."""

    respondents: Respondents = field(default_factory=Respondents)
    critics: Critics = field(default_factory=Critics)
    right: Mapping[frozenset[str], str] = field(default_factory=dict)


class Mind:
    """One person's way of answering; the same seed gives the same answers to the same pages."""

    def __init__(self, answers: Answers, rng: np.random.Generator, *, seed: int = 0) -> None:
        self.answers, self.rng, self.seed = answers, rng, seed
        r, c = answers.respondents, answers.critics
        self.habits = r.habit * rng.standard_normal(2)
        self.lean, self.level = r.heterogeneity * rng.standard_normal(), r.level * rng.standard_normal()
        self.leaning = c.leaning * rng.standard_normal()
        self.chance = float(rng.random())

    def fill(self, page: Page, form: Form) -> Fields:
        """Return the form of a page, filled in."""
        sent = {name: values for name, values in form.values().items() if name in _kept(form)}
        if "trajectory" in form:
            return sent | self._pair(page, form)
        if "answer" in form:
            return sent | self._case(page, form)
        if "choice" in form:
            return sent | {"choice": [self._check(page, form.choices("choice"))]}
        return sent | {one.name: [one.value] for one in form.of_type("checkbox")}

    def _pair(self, page: Page, form: Form) -> Fields:
        r, points = self.answers.respondents, len(form.choices("trajectory"))
        careless = self.chance < r.careless
        far = distances(page)
        seen = []
        for own, other, habit in ((far[0], far[1], self.habits[0]), (far[1], far[0], self.habits[1])):
            centre = r.similar + (r.different - r.similar) * (own + r.spill * other)
            seen.append(self._point(centre + habit + r.seen * self.rng.standard_normal(), points, careless))
        a_t, a_a = r.strength * r.weight + self.lean, r.strength * (1 - r.weight) - self.lean
        latent = r.intercept + a_t * seen[0] + a_a * seen[1] + self.level + r.noise * self.rng.standard_normal()
        overall = self._point(latent, points, careless)
        b_t, b_a = r.output_strength * r.output_weight, r.output_strength * (1 - r.output_weight)
        moved = abs(b_t * seen[0] + b_a * seen[1] + r.output_noise * self.rng.standard_normal())
        risk = min(1.0, _risk_shown(page) + moved)
        predicted = 0.56 if overall <= points / 2 else 0.44
        predicted = float(np.clip(predicted + 0.12 * self.rng.standard_normal(), 0, 1))
        ticked = [
            name
            for name, chance in (("trajectory", r.weight), ("aggregate", 1 - r.weight))
            if self.rng.random() < 0.45 + 0.5 * chance
        ]
        return {
            "trajectory": [str(seen[0])],
            "aggregate": [str(seen[1])],
            "overall": [str(overall)],
            "factors": ticked or ["other"],
            "factor_text": [] if ticked else ["Something I cannot name"],
            "predicted": [f"{100 * predicted:.0f}"],
            "risk": [f"{100 * risk:.0f}"],
            "reason": [_wordy(self.rng, "I looked at where it is going.", r.reasons)],
        }

    def _point(self, latent: float, points: int, careless: bool) -> int:
        return int(self.rng.integers(1, points + 1)) if careless else int(np.clip(np.round(latent), 1, points))

    def _case(self, page: Page, form: Form) -> Fields:
        c, words = self.answers.critics, {cell for table in page.tables for row in table for cell in row}
        words |= set(page.terms)
        rate = next((rate for name, rate in c.groups.items() if name in words), c.disagree)
        # What everybody finds of a case follows from its words, so that all who see it find the same.
        digest = hashlib.sha256(f"{self.seed}:{sorted(words)}".encode()).digest()
        shared = np.random.default_rng(list(digest[:16])).standard_normal()
        odds = np.log(rate / (1 - rate)) + self.leaning + c.case * shared
        chance = 0.5 if self.chance < c.careless else 1 / (1 + np.exp(-odds))
        against = [value for value in form.choices("answer") if value != "agree"]
        answer = "agree"
        if against and self.rng.random() < chance:
            directed = [value for value in ("too_high", "too_low") if value in against]
            high = self.rng.random() < c.too_high
            answer = directed[0 if high else -1] if directed else against[0]
        return {"answer": [answer], "reason": [_wordy(self.rng, "I see it so.", c.reasons)]}

    def _check(self, page: Page, choices: list[str]) -> str:
        careless = self.chance < max(self.answers.respondents.careless, self.answers.critics.careless)
        if self.rng.random() > (0.3 if careless else 0.97):
            return str(self.rng.choice(choices))
        known = self.answers.right.get(frozenset(choices))
        named = [one for one in choices if page.text.casefold().count(one.casefold()) > 1]
        return known or (named[0] if len(named) == 1 else str(self.rng.choice(choices)))


def distances(page: Page) -> tuple[float, float]:
    """Return how far apart the two trajectories of a page are, in slope and in total, from 0 to 1 each.

    Examples
    --------
    >>> from evenhand.study.bots.page import read_page
    >>> rows = "<tr><th>2019<td>10<td>40<tr><th>2020<td>20<td>30<tr><th>2021<td>30<td>20"
    >>> distances(read_page("/step/1", 200, f"<table><tr><th>Year<th>K<th>L{rows}</table>"))
    (1.0, 0.4)
    """
    series = [np.array(row) for row in page.series()[-2:]]
    if len(series) < 2:
        return 0.5, 0.5
    times = np.arange(len(series[0])) - (len(series[0]) - 1) / 2
    slopes = [float(times @ row) for row in series]
    totals = [float(row.sum()) for row in series]
    return _apart(*slopes), min(1.0, _apart(*totals) / _FAR_TOTALS)


def _apart(one: float, other: float) -> float:
    together = abs(one) + abs(other)
    return abs(one - other) / together if together else 0.0


def _risk_shown(page: Page) -> float:
    """Return the score of K that the question names: the percentage that the text of the page mentions first."""
    return page.percent / 100 if page.percent is not None else 0.3


def _kept(form: Form) -> set[str]:
    return {one.name for one in form.of_type("hidden")}


def _wordy(rng: np.random.Generator, words: str, share: float) -> str:
    return words if rng.random() < share else ""
