"""The visit of one virtual respondent to a study, with all that people do on the way."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import httpx
import numpy as np
from pydantic import Field

from evenhand.settings import Settings
from evenhand.study.bots.browser import Browser, Fields, Form, Page, ServerAwayError, Site

if TYPE_CHECKING:
    from evenhand.study.bots.simulation import Answerer, Visitors

Ending = Literal["finished", "dropped", "withdrew", "full", "closed", "failed"]
_STEP = re.compile(r"/step/(\d+)")
_MOST_PAGES = 2_000
_SENDS_AGAIN = 0.5
"""How often somebody whose form got no answer sends it again; the others start from the link."""


class Behaviour(Settings):
    """How often virtual respondents do what people do: chances by page or, where it says so, by person.

    Examples
    --------
    >>> Behaviour(drop=0.5).reload
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


NO_DETOURS = Behaviour(**dict.fromkeys(Behaviour.model_fields, 0.0))
"""Everybody goes straight through."""


@dataclass(kw_only=True)
class Visit:
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


class Visitor:
    """One person who goes through the study."""

    def __init__(
        self, site: Site, visit: Visit, answerer: Answerer, visitors: Visitors, rng: np.random.Generator
    ) -> None:
        self.site, self.visit, self.answerer, self.rng = site, visit, answerer, rng
        self.behaviour, self.think = visitors.behaviour, visitors.think
        self.link = f"/?{quote(visitors.parameter)}={quote(visit.recruitment_id)}"
        self.browser = Browser(site)
        self.first = 0  # the first page that this browser may open
        self.elsewhere = False  # whether this is not their first browser
        leaves = rng.random()
        self.leaves: Ending | None = None
        if leaves < self.behaviour.drop + self.behaviour.withdraw:
            self.leaves = "dropped" if leaves < self.behaviour.drop else "withdrew"
        self.leaves_after = int(rng.integers(1, 12))

    async def run(self) -> Visit:
        """Go through the study until the end, whatever it is."""
        try:
            await self._run()
        except httpx.TransportError as error:
            self._fault(f"the server was away for more than {self.site.patience:g} seconds ({type(error).__name__})")
        finally:
            self.visit.events["waited for the rate limit"] += self.browser.waited
            await self.browser.client.aclose()
        return self.visit

    async def _run(self) -> None:
        page = await self.browser.get(self.link)
        for _ in range(_MOST_PAGES):
            ended = _ending(page)
            if ended is not None:
                self.visit.ended = ended
                return
            step = _STEP.fullmatch(page.url)
            if page.form is None or page.status >= 400 or not (step or page.url in ("/consent", "/about")):
                self._fault(f"{page.url} answered {page.status} without a form that leads on")
                return
            if step and self.leaves and len(self.visit.acknowledged) >= self.leaves_after:
                await self._leave()
                return
            page = await (self._step(page, int(step[1])) if step else self._consent(page))
        self._fault(f"no end was reached in {_MOST_PAGES:,} pages")

    async def _consent(self, page: Page) -> Page:
        assert page.form is not None  # noqa: S101
        if self._happens(self.behaviour.mistake):
            await self._send_nothing(page, page.form)
        fields = self.answerer.fill(page, page.form)
        times = 2 if self._happens(self.behaviour.double) else 1
        return await self._send(page.url, fields, times)

    async def _step(self, page: Page, index: int) -> Page:
        if self._happens(self.behaviour.reload):
            page = await self._reload(page)
        if self._happens(self.behaviour.pause) or self._happens(self.behaviour.elsewhere):
            return await self._come_back()
        form = page.form
        assert form is not None  # noqa: S101
        if index in self.visit.acknowledged:
            return await self._go_over(page, form, index)
        await self._hesitate(page, form, index)
        fields = self.answerer.fill(page, form)
        page = await self._send(page.url, fields, 2 if self._happens(self.behaviour.double) else 1, index)
        if self._happens(self.behaviour.back) and _ending(page) is None:
            await self._change_answer()
            page = await self.browser.get("/")
        return page

    async def _hesitate(self, page: Page, form: Form, index: int) -> None:
        """Do what people do before they answer: send nothing, leave the page half filled, think."""
        if self._happens(self.behaviour.mistake) and asks(form):
            await self._send_nothing(page, form)
        if self._happens(self.behaviour.draft) and asks(form):
            await self._save_draft(page, form, index)
        if self.think:
            await asyncio.sleep(self.rng.exponential(self.think))

    async def _go_over(self, page: Page, form: Form, index: int) -> Page:
        """Pass a page that was answered before: it must show the answer, and sending it again changes nothing."""
        shown, known = _answers(form, form.values()), _answers(form, self.visit.acknowledged[index])
        # An attention check cannot be changed, and so has nothing that a browser would send.
        possible = [known, *(_answers(form, fields) for fields in self.visit.unsure.get(index, []))]
        if shown not in possible and "choice" not in known:
            self._fault(f"step {index} shows {shown} where {known} was acknowledged")
        self.visit.events["went over an answer"] += 1
        return await self._send(page.url, form.values(), 1)

    async def _send(self, path: str, fields: Fields, times: int, index: int | None = None) -> Page:
        """Send a form, once or at the same time twice; return the page that follows."""
        started = perf_counter()
        results = await asyncio.gather(*(self.browser.post(path, fields) for _ in range(times)), return_exceptions=True)
        self.visit.events["sent a form twice"] += times - 1
        answers = [result for result in results if isinstance(result, httpx.Response)]
        if index is not None and len(answers) < times:
            self.visit.unsure.setdefault(index, []).append(fields)
        _raise_unexpected(results)
        if not answers:
            return await self._after_a_lost_connection(path, fields, index)
        if not self._all_accepted(path, answers):
            return await self.browser.get("/")
        if index is not None:
            self.visit.acknowledged[index] = fields
            self.visit.unsure.pop(index, None)
        page = await self.browser.get(Browser.leads_to(answers[0]))
        if index is not None:
            self.visit.seconds.append(perf_counter() - started)
        return page

    async def _after_a_lost_connection(self, path: str, fields: Fields, index: int | None) -> Page:
        """Go on where nobody knows whether a form arrived: from the start, or by sending it again."""
        self.visit.events["lost a connection"] += 1
        here = await self.browser.get("/")
        if not self._happens(_SENDS_AGAIN):
            return here
        self.visit.events["sent a form again"] += 1
        return await self._send(path, fields, 1, index)

    def _all_accepted(self, path: str, answers: list[httpx.Response]) -> bool:
        """Tell whether every answer to a complete form leads on; note the first that does not as a fault."""
        refused = next((answer for answer in answers if not Browser.accepted(answer)), None)
        if refused is None:
            return True
        target = Browser.leads_to(refused) if refused.is_redirect else "no other page"
        self._fault(f"a complete form to {path} was answered with {refused.status_code}, leading to {target}")
        return False

    async def _send_nothing(self, page: Page, form: Form) -> None:
        """Send a form with nothing filled in: it must come back."""
        hidden = {control.name: [control.value] for control in form.of_type("hidden")}
        try:
            answer = await self.browser.post(page.url, hidden)
        except ServerAwayError:
            return
        self.visit.events["sent an empty form"] += 1
        if answer.status_code not in (303, 422) or Browser.accepted(answer):
            self._fault(f"an empty form to {page.url} was answered with {answer.status_code}")
        elif answer.is_redirect and (await self.browser.get(Browser.leads_to(answer))).form is None:
            self._fault(f"an empty form to {page.url} did not come back")

    async def _reload(self, page: Page) -> Page:
        self.visit.events["reloaded"] += 1
        again = await self.browser.get(page.url)
        if again.url != page.url or again.form is None:
            self._fault(f"{page.url} was not there again on reload, but {again.url} with status {again.status}")
            return await self.browser.get("/")
        return again

    async def _save_draft(self, page: Page, form: Form, index: int) -> None:
        """Save what is half filled in, and reload: the page must show it."""
        fields = _answers(form, self.answerer.fill(page, form))
        part = dict(list(fields.items())[:2])
        token = form.values().get("csrf", [""])[0]
        part_sent = {name: values[0] if len(values) == 1 else values for name, values in part.items()}
        body = json.dumps({"fields": {**part_sent, "revision": form.values().get("revision", ["0"])[0]}})
        try:
            status = await self.browser.put_json(f"/api/draft/{index}", body, token)
        except ServerAwayError:
            return
        self.visit.events["saved a draft"] += 1
        again = await self.browser.get(page.url)
        shown = {} if again.form is None else _answers(again.form, again.form.values())
        if status >= 300 or any(shown.get(name) != values for name, values in part.items()):
            self._fault(f"a draft of step {index} was answered with {status} and then shown as {shown}, not as {part}")

    async def _come_back(self) -> Page:
        """Close the browser; come back in the same one, or in another by the recruitment id."""
        share = self.behaviour.elsewhere / (self.behaviour.pause + self.behaviour.elsewhere)
        elsewhere = self._happens(share)
        cookies = None if elsewhere else self.browser.client.cookies
        await self.browser.client.aclose()
        self.browser = Browser(self.site, cookies)
        self.visit.events["went on in another browser" if elsewhere else "came back"] += 1
        again = await self.browser.get(self.link if elsewhere else "/")
        if not elsewhere:
            return again
        reached = max(self.visit.acknowledged, default=-1) + 1
        if again.url != f"/step/{reached}" and not self.visit.unsure:
            self._fault(f"another browser went on at {again.url}, not at step {reached}")
        self.first, self.elsewhere = reached, True
        if self.visit.acknowledged:
            hidden = await self.browser.get(f"/step/{min(self.visit.acknowledged)}")
            if hidden.url == f"/step/{min(self.visit.acknowledged)}" and hidden.form is not None:
                self._fault(f"another browser was shown the earlier {hidden.url}")
        return again

    async def _change_answer(self) -> None:
        """Go back to an answered pair or case and change it; then perhaps send an old tab of it."""
        judged = [index for index, fields in self.visit.acknowledged.items() if {"overall", "answer"} & fields.keys()]
        answered = [index for index in judged if index >= self.first]
        if not answered:
            return
        index = int(self.rng.choice(answered))
        page = await self.browser.get(f"/step/{index}")
        if page.url != f"/step/{index}" or page.form is None:
            self._fault(f"step {index} could not be opened again: {page.url} came with status {page.status}")
            return
        self.visit.events["changed an answer"] += 1
        # A text of its own: the same answer again would be no change.
        number = self.visit.events["changed an answer"]
        fields = self.answerer.fill(page, page.form) | {"reason": [f"On second thoughts, {number}."]}
        unsure = len(self.visit.unsure.get(index, []))
        await self._send(page.url, fields, 1, index)
        # Where the change got no answer it may not be stored, and then an old tab is as good as any.
        if len(self.visit.unsure.get(index, [])) == unsure and self._happens(self.behaviour.stale):
            old = self.answerer.fill(page, page.form) | {"reason": [f"From an old tab, {number}."]}
            await self._send_old_tab(page.url, old, index)

    async def _send_old_tab(self, path: str, old: Fields, index: int) -> None:
        """Send the form of a page that was open before the answer was changed: it must not be taken."""
        try:
            answer = await self.browser.post(path, old)
        except ServerAwayError:
            self.visit.unsure.setdefault(index, []).append(old)
            return
        self.visit.events["sent an old tab"] += 1
        if Browser.accepted(answer) or answer.status_code >= 500:
            self._fault(f"an old tab of step {index} was taken for an answer")

    async def _leave(self) -> None:
        if self.leaves == "dropped":
            self.visit.ended = "dropped"
            return
        page = await self.browser.get("/withdraw")
        if self.elsewhere:
            # Knowing somebody's id must not be enough to delete their answers.
            self.visit.events["could not withdraw in another browser"] += 1
            self.visit.ended = "dropped"
            if page.form is not None:
                self._fault("another browser was offered to withdraw")
            return
        if page.form is None:
            self._fault(f"/withdraw answered {page.status} without a form")
            return
        answer = await self.browser.post(page.url, self.answerer.fill(page, page.form))
        if not answer.is_redirect or (await self.browser.get("/")).url != "/study/deleted":
            self._fault(f"a withdrawal was answered with {answer.status_code}")
            return
        self.visit.ended = "withdrew"

    def _happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def _fault(self, sentence: str) -> None:
        self.visit.faults.append(f"{self.visit.recruitment_id}: {sentence}.")


def asks(form: Form) -> bool:
    """Tell whether a form asks anything."""
    return any(form.of_type("radio", "number", "range", "checkbox", "textarea", "select", "text"))


def _raise_unexpected(results: Sequence[object]) -> None:
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, ServerAwayError):
            raise result


def _answers(form: Form, fields: Fields) -> Fields:
    """Return the fields that were filled in, without what the form carries hidden and what was left empty."""
    hidden = {control.name for control in form.of_type("hidden")}
    kept = {name: [value for value in values if value.strip()] for name, values in fields.items() if name not in hidden}
    return {name: values for name, values in kept.items() if values}


def _ending(page: Page) -> Ending | None:
    if page.url == "/done":
        return "finished"
    name = page.url.rpartition("/")[2].replace("quota", "full")
    return name if page.url.startswith("/study/") and name in ("full", "closed") else None  # type: ignore[return-value]
