"""A crowd of virtual respondents at a running server, and whether everything it acknowledged is stored."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import ConfigError, require_extra
from evenhand.study.bots.browser import Visit
from evenhand.study.bots.minds import Answers, Mind
from evenhand.study.bots.page import Fields
from evenhand.study.bots.walk import Manners, Walk, Walker

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.spec import StudySpec
    from evenhand.study.store import Study

Tick = Callable[[Walk], None]


@dataclass(frozen=True)
class Crowd:
    """Who comes, and how.

    Parameters
    ----------
    people : how many.
    rate : how many arrive a second; 0 for all at once.
    think : seconds that a page takes on average.
    seed : the same seed gives the same characters; who gets which condition, the server decides.
    answers, manners : how they answer, and how they stray.
    parameter : the parameter of the link that says who comes.
    patience : seconds to wait for a server that is away.
    """

    people: int = 20
    rate: float = 0.0
    think: float = 0.0
    seed: int = 0
    answers: Answers = field(default_factory=Answers)
    manners: Manners = field(default_factory=Manners)
    parameter: str = "PROLIFIC_PID"
    patience: float = 10.0


def visit_study(address: str, crowd: Crowd, tick: Tick | None = None) -> list[Walk]:
    """Send a crowd to a running server; return what everybody went through.

    Parameters
    ----------
    address : where the server is, such as http://127.0.0.1:8000.
    crowd : who comes.
    tick : called with each walk when it has ended.
    """
    require_extra("httpx", "study", "a virtual respondent")

    def visit() -> list[Walk]:
        return asyncio.run(_visit(Visit(address, crowd.patience), crowd, tick))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return visit()
    with ThreadPoolExecutor(1) as thread:  # a notebook has an event loop running in this one
        return thread.submit(visit).result()


async def _visit(visit: Visit, crowd: Crowd, tick: Tick | None) -> list[Walk]:
    await visit.require_study()
    run = secrets.token_hex(4)

    async def one(number: int) -> Walk:
        if crowd.rate:
            await asyncio.sleep(number / crowd.rate)
        rng = np.random.default_rng([crowd.seed, number])
        mind = Mind(crowd.answers, np.random.default_rng([crowd.seed, number, 1]), seed=crowd.seed)
        walker = Walker(
            visit,
            Walk(f"bot-{run}-{number:05d}"),
            mind,
            crowd.manners,
            rng,
            think=crowd.think,
            parameter=crowd.parameter,
        )
        walk = await walker.run()
        if tick is not None:
            tick(walk)
        return walk

    return list(await asyncio.gather(*(one(number) for number in range(crowd.people))))


def right_answers(spec: StudySpec) -> dict[frozenset[str], str]:
    """Return the right answers of a study's attention checks by their choices."""
    first = spec.languages[0]
    return {frozenset(check.offered(first)): check.right_choice(first) or "" for check in spec.attention}


def count_events(walks: Sequence[Walk]) -> Counter[str]:
    """Return how often the crowd did what."""
    total: Counter[str] = Counter()
    for walk in walks:
        total.update(walk.events)
    return Counter({name: times for name, times in total.items() if times})


def lost_answers(walks: Sequence[Walk], design: Design, study: Study) -> list[str]:
    """Return a sentence for each answer that the server acknowledged but that is not stored as it was sent.

    An answer that was sent without an acknowledgement may be stored or not, but nothing else may.
    """
    lost = []
    for walk in walks:
        if walk.ended == "withdrew" or not (walk.acknowledged or walk.unsure):
            continue
        person = study.person_by_recruitment(walk.recruitment_id)
        if person is None:
            lost.append(f"{walk.recruitment_id} is not known.")
            continue
        for index, fields in walk.acknowledged.items():
            allowed = [fields, *walk.unsure.get(index, [])]
            stored = _stored(design, study, person, index)
            if stored not in [_payload(design, person, index, one) for one in allowed]:
                lost.append(f"{walk.recruitment_id}, step {index}: sent {fields}, stored {stored}.")
    return lost


def _payload(design: Design, person: Any, index: int, fields: Fields) -> Any:
    from evenhand.study.flow.forms import read_form

    plan = design.plan(person.condition, person.place)
    payload, errors = read_form(design, plan, plan.steps[index], fields, person.language)
    if errors:
        raise ConfigError(f"a virtual respondent sent a form with {errors}.")
    return payload


def _stored(design: Design, study: Study, person: Any, index: int) -> Any:
    answer = study.answer(person, design.plan(person.condition, person.place).steps[index].key)
    if answer is None:
        return None
    # What begins with a line is a note of the server's own.
    return {name: value for name, value in answer.payload.items() if not name.startswith("_")}
