"""Visitors who do what people do: reload, go back, send twice or nothing, leave and come back, withdraw.

They remember what the server acknowledged, so that it can be compared with what is stored.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import httpx
import numpy as np

from evenhand.study.bots import Visit, Visitors
from evenhand.study.bots.browser import Browser, Fields, Form, Page, ServerAwayError
from evenhand.study.bots.visitor import Visitor, ending_of
from evenhand.study.flow.design import Design
from evenhand.study.flow.pages import read_form
from evenhand.study.store import Participant, Study

_SENDS_AGAIN = 0.5
"""How often somebody whose form got no answer sends it again; the others start from the link."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How often visitors do what people do: chances by page or, where it says so, by person.

    Parameters
    ----------
    reload : reload a page before answering it.
    mistake : send a form with nothing filled in first.
    draft : leave a half-filled page, which the script saves.
    double : send a form twice at once.
    back : go back and change an answer; then, with a chance of `stale`, send an old tab of it.
    pause, elsewhere : close the browser and come back in the same one, or in another by the recruitment id.
    drop, withdraw : by person: leave for good in the middle, or withdraw there.
    """

    reload: float = 0.1
    mistake: float = 0.1
    draft: float = 0.1
    double: float = 0.15
    back: float = 0.15
    stale: float = 0.6
    pause: float = 0.08
    elsewhere: float = 0.05
    drop: float = 0.15
    withdraw: float = 0.1


class BusyVisitor(Visitor):
    """One person who goes through the study with detours."""

    behaviour: ClassVar[Behaviour] = Behaviour()

    def __init__(self, site: Any, visit: Visit, answerer: Any, visitors: Visitors, rng: np.random.Generator) -> None:
        super().__init__(site, visit, answerer, visitors, rng)
        self.first = 0  # the first page that this browser may open
        self.elsewhere = False  # whether this is not their first browser
        share = rng.random()
        self.leaves = share < self.behaviour.drop + self.behaviour.withdraw
        self.withdraws = self.leaves and share >= self.behaviour.drop

    async def fill_in(self, page: Page, index: int | None) -> Page:
        assert page.form is not None
        if index is None:
            return await self._consent(page, page.form)
        return await self._step(page, index)

    async def _consent(self, page: Page, form: Form) -> Page:
        if self.happens(self.behaviour.mistake):
            await self._send_nothing(page, form)
        return await self.send_times(
            page.url, self.answerer.fill(page, form), 2 if self.happens(self.behaviour.double) else 1
        )

    async def _step(self, page: Page, index: int) -> Page:
        if self.happens(self.behaviour.reload):
            page = await self._reload(page)
        if self.happens(self.behaviour.pause) or self.happens(self.behaviour.elsewhere):
            return await self._come_back()
        form = page.form
        assert form is not None
        if index in self.visit.acknowledged:
            return await self._go_over(page, form, index)
        await self._hesitate(page, form, index)
        fields = self.answerer.fill(page, form)
        page = await self.send_times(page.url, fields, 2 if self.happens(self.behaviour.double) else 1, index)
        if self.happens(self.behaviour.back) and ending_of(page) is None:
            await self._change_answer()
            page = await self.browser.get("/")
        return page

    async def _hesitate(self, page: Page, form: Form, index: int) -> None:
        """Do what people do before they answer: send nothing, leave the page half filled, think."""
        if self.happens(self.behaviour.mistake) and asks(form):
            await self._send_nothing(page, form)
        if self.happens(self.behaviour.draft) and asks(form):
            await self._save_draft(page, form, index)
        if self.think:
            await asyncio.sleep(self.rng.exponential(self.think))

    async def _go_over(self, page: Page, form: Form, index: int) -> Page:
        """Pass a page that was answered before: it must show the answer, and sending it again changes nothing."""
        shown, known = _answers(form, form.values()), _answers(form, self.visit.acknowledged[index])
        # An attention check cannot be changed, and so has nothing that a browser would send.
        possible = [known, *(_answers(form, fields) for fields in self.visit.unsure.get(index, []))]
        if shown not in possible and "choice" not in known:
            self.fault(f"step {index} shows {shown} where {known} was acknowledged")
        self.visit.events["went over an answer"] += 1
        return await self.send_times(page.url, form.values(), 1)

    async def send_times(self, path: str, fields: Fields, times: int, index: int | None = None) -> Page:
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
        if not self.happens(_SENDS_AGAIN):
            return here
        self.visit.events["sent a form again"] += 1
        return await self.send_times(path, fields, 1, index)

    def _all_accepted(self, path: str, answers: list[httpx.Response]) -> bool:
        """Tell whether every answer to a complete form leads on; note the first that does not as a fault."""
        refused = next((answer for answer in answers if not Browser.accepted(answer)), None)
        if refused is None:
            return True
        target = Browser.leads_to(refused) if refused.is_redirect else "no other page"
        self.fault(f"a complete form to {path} was answered with {refused.status_code}, leading to {target}")
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
            self.fault(f"an empty form to {page.url} was answered with {answer.status_code}")
        elif answer.is_redirect and (await self.browser.get(Browser.leads_to(answer))).form is None:
            self.fault(f"an empty form to {page.url} did not come back")

    async def _reload(self, page: Page) -> Page:
        self.visit.events["reloaded"] += 1
        again = await self.browser.get(page.url)
        if again.url != page.url or again.form is None:
            self.fault(f"{page.url} was not there again on reload, but {again.url} with status {again.status}")
            return await self.browser.get("/")
        return again

    async def _save_draft(self, page: Page, form: Form, index: int) -> None:
        """Save what is half filled in, and reload: the page must show it."""
        fields = _answers(form, self.answerer.fill(page, form))
        part = dict(list(fields.items())[:2])
        token = form.values().get("csrf", [""])[0]
        part_sent = {name: values[0] if len(values) == 1 else values for name, values in part.items()}
        body = json.dumps({"fields": {**part_sent, "revision": form.values().get("revision", ["0"])[0]}})
        headers = {"content-type": "application/json", "x-csrf-token": token}
        try:
            status = (await self.browser.send_once("PUT", f"/api/draft/{index}", body, headers)).status_code
        except ServerAwayError:
            return
        self.visit.events["saved a draft"] += 1
        again = await self.browser.get(page.url)
        shown = {} if again.form is None else _answers(again.form, again.form.values())
        if status >= 300 or any(shown.get(name) != values for name, values in part.items()):
            self.fault(f"a draft of step {index} was answered with {status} and then shown as {shown}, not as {part}")

    async def _come_back(self) -> Page:
        """Close the browser; come back in the same one, or in another by the recruitment id."""
        share = self.behaviour.elsewhere / (self.behaviour.pause + self.behaviour.elsewhere)
        elsewhere = self.happens(share)
        cookies = None if elsewhere else self.browser.client.cookies
        await self.browser.client.aclose()
        self.browser = Browser(self.site, cookies)
        self.visit.events["went on in another browser" if elsewhere else "came back"] += 1
        again = await self.browser.get(self.link if elsewhere else "/")
        if not elsewhere:
            return again
        reached = max(self.visit.acknowledged, default=-1) + 1
        if again.url != f"/step/{reached}" and not self.visit.unsure:
            self.fault(f"another browser went on at {again.url}, not at step {reached}")
        self.first, self.elsewhere = reached, True
        if self.visit.acknowledged:
            hidden = await self.browser.get(f"/step/{min(self.visit.acknowledged)}")
            if hidden.url == f"/step/{min(self.visit.acknowledged)}" and hidden.form is not None:
                self.fault(f"another browser was shown the earlier {hidden.url}")
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
            self.fault(f"step {index} could not be opened again: {page.url} came with status {page.status}")
            return
        self.visit.events["changed an answer"] += 1
        # A text of its own: the same answer again would be no change.
        number = self.visit.events["changed an answer"]
        fields = self.answerer.fill(page, page.form) | {"reason": [f"On second thoughts, {number}."]}
        unsure = len(self.visit.unsure.get(index, []))
        await self.send_times(page.url, fields, 1, index)
        # Where the change got no answer it may not be stored, and then an old tab is as good as any.
        if len(self.visit.unsure.get(index, [])) == unsure and self.happens(self.behaviour.stale):
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
            self.fault(f"an old tab of step {index} was taken for an answer")

    async def leave(self) -> None:
        if not self.withdraws:
            self.visit.ended = "dropped"
            return
        page = await self.browser.get("/withdraw")
        if self.elsewhere:
            # Knowing somebody's id must not be enough to delete their answers.
            self.visit.events["could not withdraw in another browser"] += 1
            self.visit.ended = "dropped"
            if page.form is not None:
                self.fault("another browser was offered to withdraw")
            return
        if page.form is None:
            self.fault(f"/withdraw answered {page.status} without a form")
            return
        answer = await self.browser.post(page.url, self.answerer.fill(page, page.form))
        if not answer.is_redirect or (await self.browser.get("/")).url != "/study/deleted":
            self.fault(f"a withdrawal was answered with {answer.status_code}")
            return
        self.visit.ended = "withdrew"


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


def lost_answers(visits: Sequence[Visit], design: Design, study: Study) -> list[str]:
    """Return a sentence for each answer that the server acknowledged but that is not stored as it was sent.

    An answer that was sent without an acknowledgement may be stored or not, but nothing else may.
    """
    lost = []
    for visit in visits:
        if visit.ended == "withdrew" or not (visit.acknowledged or visit.unsure):
            continue
        person = study.participants.by_recruitment_id(visit.recruitment_id)
        if person is None:
            lost.append(f"{visit.recruitment_id} is not known.")
            continue
        for index, fields in visit.acknowledged.items():
            allowed = [fields, *visit.unsure.get(index, [])]
            stored = _stored(design, study, person, index)
            if stored not in [_payload(design, person, index, sent) for sent in allowed]:
                lost.append(f"{visit.recruitment_id}, step {index}: sent {fields}, stored {stored}.")
    return lost


def _payload(design: Design, person: Participant, index: int, fields: Fields) -> Any:
    plan = design.plan(person.condition, person.place)
    payload, errors = read_form(design, plan, plan.steps[index], fields, person.language)
    assert not errors
    return payload


def _stored(design: Design, study: Study, person: Participant, index: int) -> Any:
    answer = study.answers.get(person, design.plan(person.condition, person.place).steps[index].key)
    if answer is None:
        return None
    # What begins with an underscore is a note of the server's own.
    return {name: value for name, value in answer.payload.items() if not name.startswith("_")}


def busy(**chances: float) -> type[BusyVisitor]:
    """Return a kind of visitor with some other chances."""
    return type("Busy", (BusyVisitor,), {"behaviour": Behaviour(**chances)})
