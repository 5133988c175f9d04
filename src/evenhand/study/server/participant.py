"""The participant pages: plain forms, each submitted, stored and answered with a redirect."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evenhand.study.flow.about import CONSENT, about_view, read_about
from evenhand.study.flow.language import preferred_language
from evenhand.study.flow.pages import Fields, read_form
from evenhand.study.server import pages as templates
from evenhand.study.server.middleware import is_plain, is_small_number, read_fields
from evenhand.study.server.pages import Filled, StepPage, as_fields, common_values
from evenhand.study.server.security import WRITTEN_BY, Form, VisitorCookie, address_of
from evenhand.study.store.participants import enrolment_of
from evenhand.study.store.records import ConnectionLost, QuotaFull, StudyClosed, StudyFull

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext
    from evenhand.study.store.records import Participant

P = ParamSpec("P")
R = TypeVar("R")
_LONGEST_ID = 200


def router(context: AppContext) -> APIRouter:
    """Return the routes of the participant pages."""
    pages, routes = Pages(context), APIRouter()
    for method, path, page in (
        ("GET", "/", pages.enter),
        ("GET", "/consent", pages.show_consent),
        ("POST", "/consent", pages.take_consent),
        ("GET", "/about", pages.show_about),
        ("POST", "/about", pages.take_about),
        ("GET", "/step/{index:int}", pages.show_step),
        ("POST", "/step/{index:int}", pages.take_step),
        ("GET", "/done", pages.show_done),
        ("GET", "/withdraw", pages.show_withdraw),
        ("POST", "/withdraw", pages.take_withdraw),
        ("GET", "/study/{why}", pages.show_why_not),
    ):
        routes.add_route(path, _endpoint(page), [method])
    return routes


def _endpoint(page: Callable[..., Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that reads the submitted form, if any, and runs its page in a thread."""

    async def respond(request: Request) -> Response:
        form = [await read_fields(request)] if request.method == "POST" else []
        return await run_page(page, request, *form)

    return respond


async def run_page(page: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """Run a function that uses the database in a thread, and retry once if the connection was lost.

    Running a page or a form twice is safe: the second run finds what the first one stored.
    """
    try:
        return await run_in_threadpool(page, *args, **named)
    except ConnectionLost:
        return await run_in_threadpool(page, *args, **named)


class Pages:
    """The pages of one study."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._design, self._study = context, context.design, context.study
        self._security = context.security

    def enter(self, request: Request) -> Response:
        """Read recruitment id and language from the link, then redirect to the page where the visitor left off."""
        spec, cookie = self._design.spec, self._security.visitor(request) or VisitorCookie()
        given = request.query_params.get(spec.recruitment.id_parameter, "").strip()
        given = "" if is_placeholder(given) else given
        if given and not (len(given) <= _LONGEST_ID and given.isprintable() and is_plain(given)):
            return _redirect("/study/need_link")
        if given and given != cookie.recruitment_id:
            # Another person in the same browser: show nothing of the previous person.
            cookie = VisitorCookie(recruitment_id=given, language=cookie.language)
            known = self._study.participants.by_recruitment_id(given)
            if known is not None:
                cookie = replace(cookie, token=known.token, first=known.reached)
        asked = request.query_params.get("lang", "")
        if asked in spec.languages:
            cookie = replace(cookie, language=asked)
        person = self._person(cookie)
        response = _redirect("/consent" if person is None else self._way_on(person))
        self._security.remember(response, cookie)
        return response

    def show_consent(self, request: Request) -> Response:
        """Show the consent page."""
        known = self._security.visitor(request)
        cookie = known or VisitorCookie()
        if elsewhere := self._not_new(cookie):
            return elsewhere
        language = self._language(request, cookie)
        csrf = self._security.csrf_token(cookie.session)
        values = templates.consent_values(self._design, language, csrf, missing=_asks(request, "missing"))
        response = self._context.page("participant/consent.html", **values)
        if known is None:
            self._security.remember(response, cookie)
        return response

    def take_consent(self, request: Request, fields: Form) -> Response:
        """After consent, redirect to the questions about the participant, or enrol them if there are none."""
        cookie = self._security.require_csrf(request, fields)
        if elsewhere := self._not_new(cookie):
            return elsewhere
        if fields.get("agree") != "yes":
            return _redirect("/consent?missing=1")
        language = self._language(request, cookie)
        if not self._design.spec.about.questions:
            return self._enrol(request, cookie, language, {})
        response = _redirect("/about")
        self._security.remember(response, replace(cookie, agreed=True, language=language))
        return response

    def show_about(self, request: Request) -> Response:
        """Show the questions about the participant."""
        cookie = self._security.visitor(request)
        if cookie is None:
            return _redirect("/consent")
        return self._not_new(cookie, agreed=True) or self._about_page(request, cookie, {}, {})

    def _about_page(
        self, request: Request, cookie: VisitorCookie, fields: Fields, errors: Mapping[str, str], status: int = 200
    ) -> Response:
        language = self._language(request, cookie)
        view = about_view(self._design.spec, language)
        values = common_values(self._design, language, "about_you") | {"view": view, "given": fields, "errors": errors}
        labels = {one.field: one.question for one in view.questions}
        csrf = self._security.csrf_token(cookie.session)
        return self._context.page("participant/about.html", status, **values, labels=labels, consent=CONSENT, csrf=csrf)

    def take_about(self, request: Request, raw: Form) -> Response:
        """Enrol a participant with their answers about themselves."""
        cookie = self._security.require_csrf(request, raw)
        if elsewhere := self._not_new(cookie, agreed=True):
            return elsewhere
        fields, language = as_fields(raw, [*raw]), self._language(request, cookie)
        about, errors = read_about(self._design.spec, fields, language)
        if errors:
            return self._about_page(request, cookie, fields, errors, 422)
        told = enrolment_of(repr((cookie.session, sorted(about.items()))))
        if cookie.turned_away not in (None, told):
            return _redirect("/study/quota")
        return self._enrol(request, replace(cookie, turned_away=told), language, about)

    def _not_new(self, cookie: VisitorCookie, *, agreed: bool = False) -> Response | None:
        """Return the redirect of a visitor who is enrolled, refused, or has not `agreed`; None otherwise."""
        person = self._person(cookie)
        if person is not None:
            return _redirect(self._way_on(person))
        if refused := self._refusal(cookie):
            return _redirect(f"/study/{refused}")
        return _redirect("/consent") if agreed and not (cookie.agreed and self._design.spec.about.questions) else None

    def _enrol(self, request: Request, cookie: VisitorCookie, language: str, about: Mapping[str, str]) -> Response:
        if wait := self._wait_to_enrol(request):
            response = self._message(language, "slow_down", again=True, status=429)
            response.headers["retry-after"] = str(math.ceil(wait))
            return response
        try:
            # The session is random and signed: a form sent twice, or from two tabs, enrols one person.
            person = self._study.participants.enrol(
                cookie.session, recruitment_id=cookie.recruitment_id, language=language, about=about
            )
        except QuotaFull:
            response = _redirect("/study/quota")
            self._security.remember(response, cookie)
            return response
        except (StudyClosed, StudyFull) as refusal:
            return _redirect("/study/closed" if isinstance(refusal, StudyClosed) else "/study/full")
        response = _redirect(self._way_on(person))
        first = cookie.first if cookie.token == person.token else person.reached
        known = VisitorCookie(
            session=cookie.session,
            token=person.token,
            first=first,
            recruitment_id=cookie.recruitment_id,
            language=language,
        )
        self._security.remember(response, known)
        return response

    def _wait_to_enrol(self, request: Request) -> float:
        """Return the seconds until the visitor's address may enrol another participant; 0 if now."""
        newcomers = self._context.newcomers
        return 0.0 if newcomers is None else newcomers.wait(address_of(request.client))

    def show_step(self, request: Request) -> Response:
        """Show the page of a step with the stored answer or the draft."""
        cookie = self._security.visitor(request)
        person = self._person(cookie)
        if cookie is None or person is None:
            return _redirect("/consent")
        page = self._open(request, cookie, person)
        if page is None or person.finished_at or person.withdrawn_at:
            return _redirect(self._way_on(person))
        filled = None if page.index < page.first else self._filled(request, cookie, person, page)
        if filled is None:
            return self._message(page.language, "elsewhere", again=True)
        return self._step_page(cookie, page, filled)

    def _open(self, request: Request, cookie: VisitorCookie, person: Participant) -> StepPage | None:
        """Return the requested page; None if the participant has not reached it or the study changed."""
        index = request.path_params["index"]
        if index > person.reached or self._has_changed(person):
            return None
        plan = self._design.plan(person.condition, person.place)
        if index >= len(plan.steps):
            return None
        return StepPage(plan, index, self._language(request, cookie, person), cookie.first)

    def _filled(self, request: Request, cookie: VisitorCookie, person: Participant, page: StepPage) -> Filled | None:
        """Return the form contents of a step: this browser's draft, else the stored answer.

        None if the answer was given in another browser: knowing a recruitment id is not enough to read answers.
        """
        browser = enrolment_of(cookie.session)
        answer, draft = self._study.answers.page(person, page.step.key)
        if answer is not None and answer.payload.get(WRITTEN_BY, browser) != browser:
            return None
        draft = draft if draft and draft.get(WRITTEN_BY) == browser else None
        revision, stale = answer.revision if answer else 0, _asks(request, "stale")
        locked = page.step.kind == "check" and answer is not None
        if draft is None or stale or locked:
            return Filled(templates.fields_of(answer.payload) if answer else {}, revision, stale=stale, locked=locked)
        fields = as_fields(draft)
        return Filled(fields, revision, self._read(page, fields)[1] if _asks(request, "missing") else {})

    def _read(self, page: StepPage, fields: Fields) -> tuple[dict[str, Any], dict[str, str]]:
        return read_form(self._design, page.plan, page.step, fields, page.language)

    def _step_page(self, cookie: VisitorCookie, page: StepPage, filled: Filled, status: int = 200) -> Response:
        csrf = self._security.csrf_token(cookie.session)
        template, values = templates.step_values(self._design, page, csrf, filled)
        return self._context.page(template, status, **values)

    def take_step(self, request: Request, raw: Form) -> Response:
        """Store the answer of a step; it is committed to disk on return."""
        cookie = self._security.require_csrf(request, raw)
        person = self._person(cookie)
        if person is None:
            return _redirect("/consent")
        page, browser = self._open(request, cookie, person), enrolment_of(cookie.session)
        if page is None or not self._may_answer(page, person, browser):
            return _redirect(self._way_on(person))
        index, fields, revision = page.index, as_fields(raw), revision_of(raw)
        payload, errors = self._read(page, fields)
        draft = {**fields, WRITTEN_BY: browser}
        if errors and self._study.answers.save_draft(person, page.step.key, draft, revision=revision):
            return _redirect(f"/step/{index}?missing=1")
        if errors:
            return self._step_page(cookie, page, Filled(fields, revision, errors), 422)
        last = index + 1 == len(page.plan.steps)
        payload[WRITTEN_BY] = browser
        saved = self._study.answers.save(person, page.step, index, payload, revision=revision, last=last)
        if saved.status == "stale":
            return _redirect(f"/step/{index}?stale=1")
        return _redirect("/done" if last else f"/step/{min(index + 1, saved.reached)}")

    def _may_answer(self, page: StepPage, person: Participant, browser: str) -> bool:
        """Return whether this browser may answer a step: not if it was answered in another browser."""
        if page.index < page.first:
            return False
        return page.index == person.reached or self._is_by(browser, person, page.step.key)

    def show_done(self, request: Request) -> Response:
        """Show the debrief and the completion code."""
        cookie = self._security.visitor(request)
        person = self._person(cookie)
        if cookie is None or person is None:
            return _redirect("/consent")
        if person.finished_at is None or person.withdrawn_at:
            return _redirect(self._way_on(person))
        language = self._language(request, cookie, person)
        if not self._finished_here(cookie, person):
            return self._message(language, "done_elsewhere")
        return self._context.page(
            "participant/done.html", **templates.done_values(self._design, language, person.completion_code)
        )

    def show_withdraw(self, request: Request) -> Response:
        """Ask the participant to confirm that their answers should be deleted."""
        cookie = self._security.visitor(request)
        person = self._person(cookie)
        if cookie is None or person is None or person.withdrawn_at:
            return _redirect("/consent" if person is None else self._way_on(person))
        if person.enrolment != enrolment_of(cookie.session):
            return self._message(self._language(request, cookie, person), "stop_elsewhere", again=True)
        values = common_values(self._design, self._language(request, cookie, person), "stop")
        csrf = self._security.csrf_token(cookie.session)
        return self._context.page("participant/withdraw.html", **values, csrf=csrf, back=self._way_on(person))

    def take_withdraw(self, request: Request, fields: Form) -> Response:
        """Delete the participant's answers."""
        cookie = self._security.require_csrf(request, fields)
        person = self._person(cookie)
        if person is not None and person.enrolment != enrolment_of(cookie.session):
            return _redirect("/withdraw")
        if person is not None and person.withdrawn_at is None:
            self._study.participants.withdraw(person)
        return _redirect("/study/deleted")

    def show_why_not(self, request: Request) -> Response:
        """Show why a visitor cannot take part, or that their answers were deleted."""
        why = request.path_params["why"]
        language = self._language(request, self._security.visitor(request))
        if why not in ("closed", "full", "quota", "deleted", "need_link", "changed"):
            return self._message(language, "not_found", again=True, status=404)
        return self._message(language, why)

    def _message(self, language: str, word: str, *, again: bool = False, status: int = 200) -> Response:
        values = common_values(self._design, language, word)
        url = self._design.spec.recruitment.turned_away_url if word == "quota" else None
        return self._context.page("participant/message.html", status, **values, again=again, url=url)

    def _has_changed(self, person: Participant) -> bool:
        """Return whether the study changed after the participant enrolled, so that their answers do not fit it."""
        return person.fingerprint not in (None, self._design.fingerprint)

    def _finished_here(self, cookie: VisitorCookie, person: Participant) -> bool:
        browser = enrolment_of(cookie.session)
        if person.enrolment == browser or self._has_changed(person):
            return person.enrolment == browser
        return self._is_by(browser, person, self._design.plan(person.condition, person.place).steps[-1].key)

    def _is_by(self, browser: str, person: Participant, key: str) -> bool:
        """Return whether an answer was given in this browser, or not given yet."""
        answer = self._study.answers.get(person, key)
        return answer is None or answer.payload.get(WRITTEN_BY, browser) == browser

    def _person(self, cookie: VisitorCookie | None) -> Participant | None:
        return self._study.participants.by_token(cookie.token) if cookie and cookie.token else None

    def _refusal(self, cookie: VisitorCookie) -> str | None:
        """Return why a new visitor may not take part; None if they may."""
        if self._study.closed:
            return "closed"
        return "need_link" if self._design.spec.recruitment.required and not cookie.recruitment_id else None

    def _way_on(self, person: Participant) -> str:
        """Return the address of the participant's next page."""
        if person.withdrawn_at:
            return "/study/deleted"
        if person.finished_at:
            return "/done"
        return "/study/changed" if self._has_changed(person) else f"/step/{person.reached}"

    def _language(self, request: Request, cookie: VisitorCookie | None, person: Participant | None = None) -> str:
        """Return the page's language: the chosen, the enrolment's, the browser's, or the study's first."""
        languages = self._design.spec.languages
        for wanted in (cookie and cookie.language, person and person.language):
            if wanted in languages:
                return str(wanted)
        return preferred_language(request.headers.get("accept-language", ""), languages)


def is_placeholder(given: str) -> bool:
    """Return whether the id in a link is an unfilled placeholder, as in a preview of the link.

    Examples
    --------
    >>> [is_placeholder(given) for given in ("{{%PROLIFIC_PID%}}", "ID", "5f1a")]
    [True, True, False]
    """
    return given == "ID" or any(mark in given for mark in "{}%")


def _redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)


def _asks(request: Request, name: str) -> bool:
    return request.query_params.get(name) == "1"


def revision_of(fields: Mapping[str, Any]) -> int:
    """Return the revision that a form edits; 0 if missing or invalid."""
    given = fields.get("revision", "0")
    text = given[-1] if isinstance(given, list) and given else given
    return int(text) if is_small_number(text) else 0
