"""The visit of one virtual respondent to a study, from the link to the end."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import httpx
import numpy as np

from evenhand.study.bots.browser import Browser, Fields, Page, ServerAwayError, Site

if TYPE_CHECKING:
    from evenhand.study.bots.simulation import Answerer, Visitors

Ending = Literal["finished", "dropped", "withdrew", "full", "closed", "failed"]
_STEP = re.compile(r"/step/(\d+)")
_MOST_PAGES = 2_000


@dataclass(kw_only=True)
class Visit:
    """The record of one virtual respondent's visit.

    Parameters
    ----------
    recruitment_id : the respondent's recruitment id.
    ended : how the visit ended.
    acknowledged : for each step, the last fields acknowledged by the server.
    unsure : fields submitted without acknowledgement; they may or may not be stored.
    events : how often each event occurred.
    faults : descriptions of unexpected server behaviour.
    seconds : time from submitting each answer to the next page.
    """

    recruitment_id: str
    ended: Ending = "failed"
    acknowledged: dict[int, Fields] = field(default_factory=dict)
    unsure: dict[int, list[Fields]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Visitor:
    """A virtual respondent going through the study."""

    def __init__(
        self, site: Site, visit: Visit, answerer: Answerer, visitors: Visitors, rng: np.random.Generator
    ) -> None:
        self.site, self.visit, self.answerer, self.rng = site, visit, answerer, rng
        self.think = visitors.think
        self.link = f"/?{quote(visitors.parameter)}={quote(visit.recruitment_id)}"
        self.browser = Browser(site)
        self.leaves = self.happens(visitors.drop)
        self.leaves_after = int(rng.integers(1, 12))

    async def run(self) -> Visit:
        """Go through the study until it ends in any way."""
        try:
            await self._run()
        except httpx.TransportError as error:
            self.fault(f"the server was away for more than {self.site.patience:g} seconds ({type(error).__name__})")
        finally:
            self.visit.events["waited for the rate limit"] += self.browser.waited
            await self.browser.client.aclose()
        return self.visit

    async def _run(self) -> None:
        page = await self.browser.get(self.link)
        for _ in range(_MOST_PAGES):
            ended = ending_of(page)
            if ended is not None:
                self.visit.ended = ended
                return
            step = _STEP.fullmatch(page.url)
            if page.form is None or page.status >= 400 or not (step or page.url in ("/consent", "/about")):
                self.fault(f"{page.url} answered {page.status} without a form that leads on")
                return
            if step and self.leaves and len(self.visit.acknowledged) >= self.leaves_after:
                await self.leave()
                return
            page = await self.fill_in(page, int(step[1]) if step else None)
        self.fault(f"no end was reached in {_MOST_PAGES:,} pages")

    async def fill_in(self, page: Page, index: int | None) -> Page:
        """Fill in the form of a page and send it; return the page that follows."""
        assert page.form is not None  # noqa: S101
        if self.think and index is not None:
            await asyncio.sleep(self.rng.exponential(self.think))
        return await self.send(page.url, self.answerer.fill(page, page.form), index)

    async def leave(self) -> None:
        """Drop out of the study."""
        self.visit.ended = "dropped"

    async def send(self, path: str, fields: Fields, index: int | None = None) -> Page:
        """Submit a form; return the page that follows."""
        started = perf_counter()
        try:
            answer = await self.browser.post(path, fields)
        except ServerAwayError:
            self.visit.events["lost a connection"] += 1
            if index is not None:
                self.visit.unsure.setdefault(index, []).append(fields)
            return await self.browser.get("/")
        if not Browser.accepted(answer):
            target = Browser.leads_to(answer) if answer.is_redirect else "no other page"
            self.fault(f"a complete form to {path} was answered with {answer.status_code}, leading to {target}")
            return await self.browser.get("/")
        page = await self.browser.get(Browser.leads_to(answer))
        if index is not None:
            self.visit.acknowledged[index] = fields
            self.visit.unsure.pop(index, None)
            self.visit.seconds.append(perf_counter() - started)
        return page

    def happens(self, chance: float) -> bool:
        """Return True with the given probability."""
        return bool(self.rng.random() < chance)

    def fault(self, sentence: str) -> None:
        """Record unexpected server behaviour."""
        self.visit.faults.append(f"{self.visit.recruitment_id}: {sentence}.")


def ending_of(page: Page) -> Ending | None:
    """Return how a visit ends at a page; None if it continues."""
    if page.url == "/done":
        return "finished"
    name = page.url.rpartition("/")[2].replace("quota", "full")
    return name if page.url.startswith("/study/") and name in ("full", "closed") else None  # type: ignore[return-value]
