"""Simulated visits of virtual respondents to a running server, and the model of their answers.

They answer like simulated people with known weights, from the page alone. Two trajectories k and s are compared by
their slopes and by their totals, each at a distance of |k - s| / (|k| + |s|): 0 if equal, 1 if the signs are opposite
or one of them is 0. `Respondents` turns these distances into answers, and `Critics` answers about cases.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import require_extra
from evenhand.study.bots.browser import Fields, Form, Page, Site
from evenhand.study.bots.visitor import Visit, Visitor
from evenhand.study.cases import Critics
from evenhand.study.simulate import Respondents

if TYPE_CHECKING:
    from evenhand.study.spec import StudySpec

Tick = Callable[[Visit], None]
_FAR_TOTALS = 0.5
"""The distance of totals, reached at a ratio of three, that counts as the maximum."""


@dataclass(frozen=True)
class AnswerModel:
    """The model of the virtual respondents' answers, and the right answers of attention checks."""

    respondents: Respondents = field(default_factory=Respondents)
    critics: Critics = field(default_factory=Critics)
    right: Mapping[frozenset[str], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Visitors:
    """The virtual respondents of a run.

    Parameters
    ----------
    people : number of respondents.
    rate : arrivals per second; 0 for all at once.
    think : mean seconds spent on a page.
    seed : determines the respondents; the server assigns the conditions.
    answers : the model of their answers.
    drop : the share of respondents who leave before the end.
    parameter : the parameter of the link that identifies the respondent.
    patience : seconds to wait for an unreachable server.
    visitor : the class of visitors, whose subclasses may behave differently.
    """

    people: int = 20
    rate: float = 0.0
    think: float = 0.0
    seed: int = 0
    answers: AnswerModel = field(default_factory=AnswerModel)
    drop: float = 0.1
    parameter: str = "PROLIFIC_PID"
    patience: float = 10.0
    visitor: type[Visitor] = Visitor


def visit_study(address: str, visitors: Visitors, tick: Tick | None = None) -> list[Visit]:
    """Send virtual respondents to a running server; return their visits.

    Parameters
    ----------
    address : the address of the server, such as http://127.0.0.1:8000.
    visitors : the virtual respondents.
    tick : called with each finished visit.
    """
    require_extra("httpx", "study", "a virtual respondent")

    def visit() -> list[Visit]:
        return asyncio.run(_visit_all(Site(address, visitors.patience), visitors, tick))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return visit()
    with ThreadPoolExecutor(1) as thread:  # a notebook has an event loop running in this one
        return thread.submit(visit).result()


async def _visit_all(site: Site, visitors: Visitors, tick: Tick | None) -> list[Visit]:
    await site.require_study()
    run = secrets.token_hex(4)

    async def visit_once(number: int) -> Visit:
        if visitors.rate:
            await asyncio.sleep(number / visitors.rate)
        rng, answer_rng = (np.random.default_rng([visitors.seed, number, *more]) for more in ((), (1,)))
        answerer = Answerer(visitors.answers, answer_rng, seed=visitors.seed)
        visit = await visitors.visitor(
            site, Visit(recruitment_id=f"bot-{run}-{number:05d}"), answerer, visitors, rng
        ).run()
        if tick is not None:
            tick(visit)
        return visit

    return list(await asyncio.gather(*(visit_once(number) for number in range(visitors.people))))


def right_answers(spec: StudySpec) -> dict[frozenset[str], str]:
    """Return the right answers of a study's attention checks, by the set of choices."""
    first = spec.languages[0]
    return {frozenset(check.offered(first)): check.right_choice(first) or "" for check in spec.attention}


def count_events(visits: Sequence[Visit]) -> Counter[str]:
    """Return how often each event occurred in all visits."""
    total: Counter[str] = Counter()
    for visit in visits:
        total.update(visit.events)
    return Counter({name: times for name, times in total.items() if times})


class Answerer:
    """One respondent's answers; the same seed gives the same answers to the same pages."""

    def __init__(self, answers: AnswerModel, rng: np.random.Generator, *, seed: int = 0) -> None:
        self.answers, self.rng, self.seed = answers, rng, seed
        r, c = answers.respondents, answers.critics
        self.habits = r.habit * rng.standard_normal(2)
        self.lean, self.level = r.heterogeneity * rng.standard_normal(), r.level * rng.standard_normal()
        self.leaning = c.leaning * rng.standard_normal()
        self.chance = float(rng.random())

    def fill(self, page: Page, form: Form) -> Fields:
        """Return the filled-in form of a page."""
        sent = {control.name: form.values()[control.name] for control in form.of_type("hidden")}
        if "trajectory" in form:
            return sent | self._pair(page, form)
        if "answer" in form:
            return sent | self._case(page, form)
        if "choice" in form:
            return sent | {"choice": [self._check(page, form.choices("choice"))]}
        return sent | self._about(form)

    def _about(self, form: Form) -> Fields:
        """Tick all check boxes, and answer questions about oneself at random."""
        said: Fields = {box.name: [box.value] for box in form.of_type("checkbox")}
        for name in dict.fromkeys(control.name for control in form.of_type("radio")):
            said[name] = [str(self.rng.choice(form.choices(name)))]
        for control in form.of_type("number"):
            said[control.name] = [str(self.rng.integers(int(control.ends[0]), int(control.ends[1]) + 1))]
        return said

    def _pair(self, page: Page, form: Form) -> Fields:
        r, points = self.answers.respondents, len(form.choices("trajectory"))
        careless = self.chance < r.careless
        slopes, totals = distances(page)
        seen = []
        for distance, other, habit in ((slopes, totals, self.habits[0]), (totals, slopes, self.habits[1])):
            centre = r.similar + (r.different - r.similar) * (distance + r.spill * other)
            seen.append(self._point(centre + habit + r.seen * self.rng.standard_normal(), points, careless))
        a_t, a_a = r.strength * r.weight + self.lean, r.strength * (1 - r.weight) - self.lean
        latent = r.intercept + a_t * seen[0] + a_a * seen[1] + self.level + r.noise * self.rng.standard_normal()
        overall = self._point(latent, points, careless)
        b_t, b_a = r.output_strength * r.output_weight, r.output_strength * (1 - r.output_weight)
        moved = abs(b_t * seen[0] + b_a * seen[1] + r.output_noise * self.rng.standard_normal())
        # The score of K is the percentage that the text of the page mentions first.
        risk = min(1.0, (0.3 if page.percent is None else page.percent / 100) + moved)
        predicted = 0.56 if overall <= points / 2 else 0.44
        predicted = float(np.clip(predicted + 0.12 * self.rng.standard_normal(), 0, 1))
        chances = {"trajectory": r.weight, "aggregate": 1 - r.weight}
        ticked = [name for name, chance in chances.items() if self.rng.random() < 0.45 + 0.5 * chance]
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
        against = [value for value in form.choices("answer") if value != "agree"]
        answer = "agree"
        if against and self.rng.random() < self._chance_to_disagree(page):
            directed = [value for value in ("too_high", "too_low") if value in against]
            high = self.rng.random() < self.answers.critics.too_high
            answer = directed[0 if high else -1] if directed else against[0]
        return {"answer": [answer], "reason": [_wordy(self.rng, "I see it so.", self.answers.critics.reasons)]}

    def _chance_to_disagree(self, page: Page) -> float:
        critics, words = self.answers.critics, {cell for table in page.tables for row in table for cell in row}
        words |= set(page.terms)
        rate = next((rate for name, rate in critics.groups.items() if name in words), critics.disagree)
        # The common opinion of a case is derived from its text, so that it is the same for all respondents.
        digest = hashlib.sha256(f"{self.seed}:{sorted(words)}".encode()).digest()
        shared = np.random.default_rng(list(digest[:16])).standard_normal()
        odds = np.log(rate / (1 - rate)) + self.leaning + critics.case * shared
        return 0.5 if self.chance < critics.careless else float(1 / (1 + np.exp(-odds)))

    def _check(self, page: Page, choices: list[str]) -> str:
        careless = self.chance < max(self.answers.respondents.careless, self.answers.critics.careless)
        if self.rng.random() > (0.3 if careless else 0.97):
            return str(self.rng.choice(choices))
        known = self.answers.right.get(frozenset(choices))
        named = [choice for choice in choices if page.text.casefold().count(choice.casefold()) > 1]
        return known or (named[0] if len(named) == 1 else str(self.rng.choice(choices)))


def distances(page: Page) -> tuple[float, float]:
    """Return the distances of a page's two trajectories, in slope and in total, each from 0 to 1.

    Examples
    --------
    >>> from evenhand.study.bots.browser import read_page
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


def _apart(first: float, second: float) -> float:
    together = abs(first) + abs(second)
    return abs(first - second) / together if together else 0.0


def _wordy(rng: np.random.Generator, words: str, share: float) -> str:
    return words if rng.random() < share else ""
