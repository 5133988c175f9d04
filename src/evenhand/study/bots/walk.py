"""The way of one virtual respondent through a study, with all that people do on the way."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal
from urllib.parse import quote

import httpx
import numpy as np
from pydantic import Field

from evenhand.settings import Settings
from evenhand.study.bots.browser import Browser, ServerAwayError, Visit
from evenhand.study.bots.minds import Mind
from evenhand.study.bots.page import Fields, Form, Page

Ending = Literal["finished", "dropped", "withdrew", "full", "closed", "failed"]
_STEP = re.compile(r"/step/(\d+)")
_MOST_PAGES = 2_000
_SENDS_AGAIN = 0.5
"""How often somebody whose form got no answer sends it again; the others start from the link."""


class Manners(Settings):
    """How often virtual respondents stray from the straight way: chances by page or, where it says so, by person.

    Examples
    --------
    >>> Manners(drop=0.5).reload
    0.05
    """

    reload: float = Field(0.05, ge=0, le=1, description="Reload a page before answering it.")
    mistake: float = Field(0.05, ge=0, le=1, description="Send a form with nothing filled in first.")
    draft: float = Field(0.05, ge=0, le=1, description="Leave a half-filled page, which the script saves.")
    double: float = Field(0.05, ge=0, le=1, description="Send a form twice at once.")
    back: float = Field(0.05, ge=0, le=1, description="Go back and change an answer.")
    stale: float = Field(0.5, ge=0, le=1, description="When changing an answer: send an old tab of it afterwards.")
    pause: float = Field(0.03, ge=0, le=1, description="Close the browser and come back.")
    elsewhere: float = Field(0.02, ge=0, le=1, description="Go on in another browser, by the recruitment id.")
    drop: float = Field(0.1, ge=0, le=1, description="By person: leave for good in the middle.")
    withdraw: float = Field(0.03, ge=0, le=1, description="By person: withdraw in the middle.")


STRAIGHT = Manners(reload=0, mistake=0, draft=0, double=0, back=0, stale=0, pause=0, elsewhere=0, drop=0, withdraw=0)
"""Nobody strays."""


@dataclass
class Walk:
    """What one virtual respondent went through.

    Parameters
    ----------
    recruitment_id : what they called themselves.
    ended : how it ended.
    acknowledged : for each step the fields that the server last acknowledged.
    unsure : fields that were sent without an acknowledgement; they may or may not be stored.
    events : how often they did what.
    faults : sentences about what the server should not have done.
    seconds : how long each answer took from its being sent to the next page.
    """

    recruitment_id: str
    ended: Ending = "failed"
    acknowledged: dict[int, Fields] = field(default_factory=dict)
    unsure: dict[int, list[Fields]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Walker:
    """Walk one person through the study."""

    def __init__(
        self,
        visit: Visit,
        walk: Walk,
        mind: Mind,
        manners: Manners,
        rng: np.random.Generator,
        *,
        think: float = 0.0,
        parameter: str = "PROLIFIC_PID",
    ) -> None:
        self.visit, self.walk, self.mind, self.manners, self.rng = visit, walk, mind, manners, rng
        self.think = think
        self.link = f"/?{quote(parameter)}={quote(walk.recruitment_id)}"
        self.browser = Browser(visit)
        self.first, self.elsewhere = (
            0,
            False,
        )  # the first page that this browser may open; whether it is not their first
        leaves = rng.random()
        self.leaves: Ending | None = None
        if leaves < manners.drop + manners.withdraw:
            self.leaves = "dropped" if leaves < manners.drop else "withdrew"
        self.leaves_after = int(rng.integers(1, 12))

    async def run(self) -> Walk:
        """Walk until the end, whatever it is."""
        try:
            await self._run()
        except httpx.TransportError as error:
            self._fault(f"the server was away for more than {self.visit.patience:g} seconds ({type(error).__name__})")
        finally:
            self.walk.events["waited for the rate limit"] += self.browser.waited
            await self.browser.client.aclose()
        return self.walk

    async def _run(self) -> None:
        page = await self.browser.get(self.link)
        for _ in range(_MOST_PAGES):
            ended = _ending(page)
            if ended is not None:
                self.walk.ended = ended
                return
            found = _STEP.fullmatch(page.url)
            if page.form is None or page.status >= 400 or not (found or page.url == "/consent"):
                self._fault(f"{page.url} answered {page.status} without a form that leads on")
                return
            if found and self.leaves and len(self.walk.acknowledged) >= self.leaves_after:
                await self._leave()
                return
            page = await (self._step(page, int(found[1])) if found else self._consent(page))
        self._fault(f"no end was reached in {_MOST_PAGES:,} pages")

    async def _consent(self, page: Page) -> Page:
        assert page.form is not None  # noqa: S101
        if self._happens(self.manners.mistake):
            await self._send_nothing(page, page.form)
        fields = self.mind.fill(page, page.form)
        times = 2 if self._happens(self.manners.double) else 1
        return await self._send(page.url, fields, times)

    async def _step(self, page: Page, index: int) -> Page:
        if self._happens(self.manners.reload):
            page = await self._reload(page)
        if self._happens(self.manners.pause) or self._happens(self.manners.elsewhere):
            return await self._come_back()
        form = page.form
        assert form is not None  # noqa: S101
        if index in self.walk.acknowledged:
            return await self._go_over(page, form, index)
        if self._happens(self.manners.mistake) and asks(form):
            await self._send_nothing(page, form)
        if self._happens(self.manners.draft) and asks(form):
            await self._save_draft(page, form, index)
        if self.think:
            await asyncio.sleep(self.rng.exponential(self.think))
        fields = self.mind.fill(page, form)
        page = await self._send(page.url, fields, 2 if self._happens(self.manners.double) else 1, index)
        if self._happens(self.manners.back) and _ending(page) is None:
            await self._change_one()
            page = await self.browser.get("/")
        return page

    async def _go_over(self, page: Page, form: Form, index: int) -> Page:
        """Pass a page that was answered before: it must show the answer, and sending it again changes nothing."""
        shown, known = _answers(form, form.values()), _answers(form, self.walk.acknowledged[index])
        # An attention check cannot be changed, and so has nothing that a browser would send.
        if shown not in (known, *self._possible(form, index)) and "choice" not in known:
            self._fault(f"step {index} shows {shown} where {known} was acknowledged")
        self.walk.events["went over an answer"] += 1
        return await self._send(page.url, form.values(), 1)

    def _possible(self, form: Form, index: int) -> list[Fields]:
        return [_answers(form, fields) for fields in self.walk.unsure.get(index, [])]

    async def _send(self, path: str, fields: Fields, times: int, index: int | None = None) -> Page:
        """Send a form, once or at the same time twice; return the page that follows."""
        started = perf_counter()
        done = await asyncio.gather(*(self.browser.post(path, fields) for _ in range(times)), return_exceptions=True)
        self.walk.events["sent a form twice"] += times - 1
        taken = [one for one in done if isinstance(one, httpx.Response)]
        if index is not None and len(taken) < times:
            self.walk.unsure.setdefault(index, []).append(fields)
        for one in done:
            if isinstance(one, BaseException) and not isinstance(one, ServerAwayError):
                raise one
        if not taken:
            self.walk.events["lost a connection"] += 1
            here = await self.browser.get("/")
            if not self._happens(_SENDS_AGAIN):
                return here
            self.walk.events["sent a form again"] += 1
            return await self._send(path, fields, 1, index)
        for one in taken:
            if not Browser.accepted(one):
                led = Browser.leads_to(one) if one.is_redirect else "no other page"
                self._fault(f"a complete form to {path} was answered with {one.status_code}, leading to {led}")
                return await self.browser.get("/")
        if index is not None:
            self.walk.acknowledged[index] = fields
            self.walk.unsure.pop(index, None)
        page = await self.browser.get(Browser.leads_to(taken[0]))
        if index is not None:
            self.walk.seconds.append(perf_counter() - started)
        return page

    async def _send_nothing(self, page: Page, form: Form) -> None:
        """Send a form with nothing filled in: it must come back."""
        hidden = {one.name: [one.value] for one in form.of_type("hidden")}
        try:
            answer = await self.browser.post(page.url, hidden)
        except ServerAwayError:
            return
        self.walk.events["sent an empty form"] += 1
        if answer.status_code not in (303, 422) or Browser.accepted(answer):
            self._fault(f"an empty form to {page.url} was answered with {answer.status_code}")
        elif answer.is_redirect and (await self.browser.get(Browser.leads_to(answer))).form is None:
            self._fault(f"an empty form to {page.url} did not come back")

    async def _reload(self, page: Page) -> Page:
        self.walk.events["reloaded"] += 1
        again = await self.browser.get(page.url)
        if again.url != page.url or again.form is None:
            self._fault(f"{page.url} was not there again on reload, but {again.url} with status {again.status}")
            return await self.browser.get("/")
        return again

    async def _save_draft(self, page: Page, form: Form, index: int) -> None:
        """Save what is half filled in, and reload: the page must show it."""
        fields = _answers(form, self.mind.fill(page, form))
        part = dict(list(fields.items())[:2])
        token = form.values().get("csrf", [""])[0]
        part_sent = {name: values[0] if len(values) == 1 else values for name, values in part.items()}
        body = json.dumps({"fields": {**part_sent, "revision": form.values().get("revision", ["0"])[0]}})
        try:
            status = await self.browser.put_json(f"/api/draft/{index}", body, token)
        except ServerAwayError:
            return
        self.walk.events["saved a draft"] += 1
        again = await self.browser.get(page.url)
        shown = {} if again.form is None else _answers(again.form, again.form.values())
        if status >= 300 or any(shown.get(name) != values for name, values in part.items()):
            self._fault(f"a draft of step {index} was answered with {status} and then shown as {shown}, not as {part}")

    async def _come_back(self) -> Page:
        """Close the browser; come back in the same one, or in another by the recruitment id."""
        share = self.manners.elsewhere / (self.manners.pause + self.manners.elsewhere)
        elsewhere = self._happens(share)
        cookies = None if elsewhere else self.browser.client.cookies
        await self.browser.client.aclose()
        self.browser = Browser(self.visit, cookies)
        self.walk.events["went on in another browser" if elsewhere else "came back"] += 1
        again = await self.browser.get(self.link if elsewhere else "/")
        if not elsewhere:
            return again
        reached = max(self.walk.acknowledged, default=-1) + 1
        if again.url != f"/step/{reached}" and not self.walk.unsure:
            self._fault(f"another browser went on at {again.url}, not at step {reached}")
        self.first, self.elsewhere = reached, True
        if self.walk.acknowledged:
            hidden = await self.browser.get(f"/step/{min(self.walk.acknowledged)}")
            if hidden.url == f"/step/{min(self.walk.acknowledged)}" and hidden.form is not None:
                self._fault(f"another browser was shown the earlier {hidden.url}")
        return again

    async def _change_one(self) -> None:
        """Go back to an answered pair or case and change it; then perhaps send an old tab of it."""
        open_to = [
            at
            for at, fields in self.walk.acknowledged.items()
            if at >= self.first and ("overall" in fields or "answer" in fields)
        ]
        if not open_to:
            return
        index = int(self.rng.choice(open_to))
        page = await self.browser.get(f"/step/{index}")
        if page.url != f"/step/{index}" or page.form is None:
            self._fault(f"step {index} could not be opened again: {page.url} came with status {page.status}")
            return
        self.walk.events["changed an answer"] += 1
        # A text of its own: the same answer again would be no change.
        number = self.walk.events["changed an answer"]
        fields = self.mind.fill(page, page.form) | {"reason": [f"On second thoughts, {number}."]}
        unsure = len(self.walk.unsure.get(index, []))
        await self._send(page.url, fields, 1, index)
        # Where the change got no answer it may not be stored, and then an old tab is as good as any.
        if len(self.walk.unsure.get(index, [])) == unsure and self._happens(self.manners.stale):
            old = self.mind.fill(page, page.form) | {"reason": [f"From an old tab, {number}."]}
            try:
                answer = await self.browser.post(page.url, old)
            except ServerAwayError:
                self.walk.unsure.setdefault(index, []).append(old)
                return
            self.walk.events["sent an old tab"] += 1
            if Browser.accepted(answer) or answer.status_code >= 500:
                self._fault(f"an old tab of step {index} was taken for an answer")

    async def _leave(self) -> None:
        if self.leaves == "dropped":
            self.walk.ended = "dropped"
            return
        page = await self.browser.get("/withdraw")
        if self.elsewhere:
            # Knowing somebody's id must not be enough to delete their answers.
            self.walk.events["could not withdraw in another browser"] += 1
            self.walk.ended = "dropped"
            if page.form is not None:
                self._fault("another browser was offered to withdraw")
            return
        if page.form is None:
            self._fault(f"/withdraw answered {page.status} without a form")
            return
        answer = await self.browser.post(page.url, self.mind.fill(page, page.form))
        if not answer.is_redirect or (await self.browser.get("/")).url != "/study/deleted":
            self._fault(f"a withdrawal was answered with {answer.status_code}")
            return
        self.walk.ended = "withdrew"

    def _happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def _fault(self, sentence: str) -> None:
        self.walk.faults.append(f"{self.walk.recruitment_id}: {sentence}.")


def asks(form: Form) -> bool:
    """Tell whether a form asks anything."""
    return any(True for _ in form.of_type("radio", "number", "range", "checkbox", "textarea", "select", "text"))


def _answers(form: Form, fields: Fields) -> Fields:
    """Return the fields that were filled in, without what the form carries hidden and what was left empty."""
    hidden = {one.name for one in form.of_type("hidden")}
    kept = {name: [value for value in values if value.strip()] for name, values in fields.items() if name not in hidden}
    return {name: values for name, values in kept.items() if values}


def _ending(page: Page) -> Ending | None:
    if page.url == "/done":
        return "finished"
    name = page.url.rpartition("/")[2]
    return name if page.url.startswith("/study/") and name in ("full", "closed") else None  # type: ignore[return-value]
