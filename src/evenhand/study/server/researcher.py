"""The researcher's pages: login, dashboard, exports, and what can be done with a study; every action is logged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evenhand.errors import EvenhandError, count
from evenhand.study.responses import Responses, write_csv
from evenhand.study.server.desk import ATTEMPT_SECONDS, Desk, Throttled, total
from evenhand.study.server.desk_charts import axes, dropout_bars, is_open, show, time_bars, trend
from evenhand.study.server.exports import FORMATS, MEDIA, bonus_list, export
from evenhand.study.server.limits import read_fields
from evenhand.study.server.security import DeskCookie, DeviceCookie
from evenhand.study.store.records import Session

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext

Fields = Annotated[dict[str, str | list[str]], Depends(read_fields)]
NOTICES = {
    "withdrawn": "The answers of this person were deleted.",
    "nobody": "There is nobody with this code or recruitment id. Nothing was changed.",
    "closed": "The study is closed. Nobody new can start; who has begun may finish.",
    "reopened": "The study is open again.",
    "erased": "All recruitment ids were erased.",
    "empty": "There is nothing to export yet.",
}


def router(context: AppContext, desk: Desk) -> APIRouter:
    """Return the routes of researchers."""
    pages = Pages(context, desk)
    routes = APIRouter(prefix="/researcher", include_in_schema=False)
    routes.add_api_route("", pages.dashboard, methods=["GET"])
    routes.add_api_route("/login", pages.show_login, methods=["GET"])
    routes.add_api_route("/login", pages.login, methods=["POST"])
    routes.add_api_route("/logout", pages.logout, methods=["POST"])
    routes.add_api_route("/export/{form}", pages.export, methods=["GET"])
    routes.add_api_route("/bonus.csv", pages.bonus, methods=["GET"])
    for action in ("withdraw", "close", "reopen", "erase"):
        routes.add_api_route(f"/{action}", getattr(pages, action), methods=["POST"])
    return routes


class Pages:
    """The researcher's pages of one study."""

    def __init__(self, context: AppContext, desk: Desk) -> None:
        self._context, self._desk, self._study = context, desk, context.study
        self._spec, self._security = context.design.spec, context.security

    def show_login(self, request: Request) -> Response:
        """Show the form to log in."""
        if self._desk.session(request) is not None:
            return _redirect("/researcher")
        return self._login_page(request, "", 200)

    def login(self, request: Request, fields: Fields) -> Response:
        """Log a researcher in, with a session of its own that nobody could know before."""
        self._security.require_desk_csrf(request, fields)
        name, password = _text(fields, "name").strip()[:200], _text(fields, "password")
        try:
            token = self._desk.login(name, password, request)
        except Throttled:
            said = f"Too many attempts. Please wait {ATTEMPT_SECONDS // 60} minutes."
            response = self._login_page(request, said, 429, name)
            response.headers["retry-after"] = str(ATTEMPT_SECONDS)
            return response
        if token is None:
            return self._login_page(request, "This name and password do not belong together.", 422, name)
        response = _redirect("/researcher")
        device = self._security.device(request)
        known = device is not None and device.name == name
        self._security.remember_device(response, device if device is not None and known else DeviceCookie(name))
        self._security.remember_desk(response, DeskCookie(token=token))
        return response

    def _login_page(self, request: Request, problem: str, status: int, name: str = "") -> Response:
        held = self._security.desk(request)
        cookie, known = held or DeskCookie(), bool(self._study.researchers())
        response = self._page("login.html", cookie, status, problem=problem, known=known, name=name)
        if held is None:
            self._security.remember_desk(response, cookie)
        return response

    def logout(self, request: Request, fields: Fields) -> Response:
        """End the session, here and in the database."""
        cookie = self._security.require_desk_csrf(request, fields)
        if cookie.token:
            self._study.end_session(cookie.token)
        response = _redirect("/researcher/login")
        self._security.forget_desk(response)
        return response

    def dashboard(self, request: Request, done: str = "") -> Response:
        """Show the numbers of the study."""
        return self._dashboard(request, NOTICES.get(done, ""), 200)

    def _dashboard(self, request: Request, notice: str, status: int) -> Response:
        session, cookie = self._desk.session(request), self._security.desk(request)
        if session is None or cookie is None:
            return _redirect("/researcher/login")
        numbers = self._desk.numbers()
        counts = numbers.counts
        return self._page(
            "dashboard.html",
            cookie,
            status,
            name=session.name,
            numbers=numbers,
            counts=counts,
            checks=counts.checks,
            stamp=numbers.as_json()["stamp"],
            notice=notice,
            actions=self._desk.done(20),
            axes=axes(numbers.snapshot),
            link=self._link(request),
            code=self._study.completion_code,
            places=self._context.design.places,
            dropout=dropout_bars(numbers.pages, numbers.names),
            times=time_bars(numbers.pages, numbers.names),
            trend=trend,
            show=show,
            is_open=is_open,
            count=count,
            total=total,
            ago=_ago,
            kind=self._spec.kind,
            confidence=self._spec.analysis.confidence,
            questions=[self._spec.words(check.question) for check in self._spec.attention],
            serum=self._pays_bonus(),
        )

    def _pays_bonus(self) -> bool:
        return any(bonus.by == "truth_serum" for bonus in self._spec.payment.bonuses)

    def _link(self, request: Request) -> str:
        """Return where participants begin, as this browser reaches the server."""
        scheme = "https" if self._security.https else "http"
        host = request.headers.get("host", "")
        return f"{scheme}://{host}/?{self._spec.recruitment.id_parameter}=ID"

    def export(self, request: Request, form: str) -> Response:
        """Return the answers as a file."""
        session = self._require(request)
        if form not in FORMATS:
            raise HTTPException(404)
        responses = self._study.responses()
        try:
            content = export(responses, form)
        except EvenhandError as error:
            return self._not_exported(request, responses, error)
        self._study.log(session.name, "exported the answers", form)
        return _download(content, f"{self._spec.name}.{form}", MEDIA[form])

    def bonus(self, request: Request) -> Response:
        """Return whom to pay a bonus."""
        session = self._require(request)
        responses, finished = self._study.responses(), self._study.bonus_rows()
        try:
            listed = bonus_list(responses, finished, self._spec)
        except EvenhandError as error:
            return self._not_exported(request, responses, error)
        self._study.log(session.name, "exported the bonus list", count(len(listed["participant"]), "bonus", "bonuses"))
        return _download(write_csv(listed).encode(), f"{self._spec.name}-bonus.csv", MEDIA["csv"])

    def _not_exported(self, request: Request, responses: Responses, error: EvenhandError) -> Response:
        if not len(responses.person):
            return _redirect("/researcher?done=empty")
        return self._dashboard(request, f"This could not be exported: {error}", 422)

    def withdraw(self, request: Request, fields: Fields) -> Response:
        """Delete somebody's answers, by their code or recruitment id, after asking once more."""
        session, cookie = self._require_form(request, fields)
        who = _text(fields, "who").strip()
        if _text(fields, "confirm") != "yes":
            known = self._study.person_by_recruitment(who)
            code = known.code if known is not None else who
            return self._page("confirm.html", cookie, 200, action="withdraw", who=code)
        if not self._study.withdraw(who, erase=True):
            return _redirect("/researcher?done=nobody")
        self._study.log(session.name, "deleted the answers of a person", who)
        self._desk.changed()
        return _redirect("/researcher?done=withdrawn")

    def erase(self, request: Request, fields: Fields) -> Response:
        """Erase all recruitment ids, after asking once more."""
        session, cookie = self._require_form(request, fields)
        if _text(fields, "confirm") != "yes":
            return self._page("confirm.html", cookie, 200, action="erase", who="", serum=self._pays_bonus())
        erased = self._study.erase_recruitment_ids()
        self._study.log(session.name, "erased the recruitment ids", f"{erased:,}")
        return _redirect("/researcher?done=erased")

    def close(self, request: Request, fields: Fields) -> Response:
        """Take nobody new."""
        session, _ = self._require_form(request, fields)
        self._study.close()
        self._study.log(session.name, "closed the study")
        self._desk.changed()
        return _redirect("/researcher?done=closed")

    def reopen(self, request: Request, fields: Fields) -> Response:
        """Take people again."""
        session, _ = self._require_form(request, fields)
        self._study.reopen()
        self._study.log(session.name, "reopened the study")
        self._desk.changed()
        return _redirect("/researcher?done=reopened")

    def _require(self, request: Request) -> Session:
        session = self._desk.session(request)
        if session is None:
            raise HTTPException(401)
        return session

    def _require_form(self, request: Request, fields: dict[str, str | list[str]]) -> tuple[Session, DeskCookie]:
        session = self._require(request)
        return session, self._security.require_desk_csrf(request, fields)

    def _page(self, template: str, cookie: DeskCookie, status: int, **values: object) -> Response:
        csrf = self._security.csrf_token(cookie.session)
        title = self._spec.words(self._spec.title)
        return self._context.page(f"researcher/{template}", status, csrf=csrf, title=title, **values)


def _text(fields: dict[str, str | list[str]], name: str) -> str:
    given = fields.get(name, "")
    return given if isinstance(given, str) else ""


def _redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)


def _download(content: bytes, name: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-type": kind}
    return Response(content, headers=headers)


def _ago(moment: datetime | None) -> str:
    """Return how long ago a moment was, roughly."""
    if moment is None:
        return "none yet"
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{count(seconds // size, unit)} ago"
    return "just now"
