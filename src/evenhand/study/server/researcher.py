"""Researcher pages: login, dashboard, exports and actions on a study; every action is logged."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import numpy as np
from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evenhand.core.csv_text import write_csv
from evenhand.errors import EvenhandError, count, require_choice
from evenhand.study.responses import Responses
from evenhand.study.schema import Values
from evenhand.study.server import dashboard_charts as charts
from evenhand.study.server import security
from evenhand.study.server.bonuses import bonus_list
from evenhand.study.server.dashboard import Dashboard
from evenhand.study.server.middleware import read_fields
from evenhand.study.server.security import DeviceCookie, Logins, ResearcherCookie
from evenhand.study.store import Action, Session

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext

Format = Literal["csv", "parquet", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet", "json": "application/json"}
Fields = Annotated[dict[str, str | list[str]], Depends(read_fields)]
NOTICES = {
    "withdrawn": "The answers of this person were deleted.",
    "nobody": "There is nobody with this code or recruitment id. Nothing was changed.",
    "closed": "The study is closed. Nobody new can start; who has begun may finish.",
    "reopened": "The study is open again.",
    "erased": "All recruitment ids were erased.",
    "empty": "There is nothing to export yet.",
}


def router(context: AppContext, dashboard: Dashboard, desk: Desk) -> APIRouter:
    """Return the routes of the researcher pages."""
    pages = Pages(context, dashboard, desk)
    routes = APIRouter(prefix="/researcher", include_in_schema=False)
    shown: dict[str, Callable[..., Response]]
    shown = {"": pages.dashboard, "/login": pages.show_login, "/export/{form}": pages.export, "/bonus.csv": pages.bonus}
    for path, page in shown.items():
        routes.add_api_route(path, page, methods=["GET"])
    for action in ("login", "logout", "withdraw", "close", "reopen", "erase"):
        routes.add_api_route(f"/{action}", getattr(pages, action), methods=["POST"])
    return routes


class Desk:
    """Login checks and page rendering shared by all researcher pages."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._security = context, context.security
        self._title = context.design.spec.words(context.design.spec.title)
        self._raters = context.design.spec.rationales.raters
        self.logins = Logins(context.study, context.security)

    def login(self, request: Request) -> tuple[Session | None, ResearcherCookie | None]:
        """Return the session and the cookie of a researcher; each is None if missing or invalid."""
        return self.logins.session(request), self._security.researcher(request)

    def is_rater(self, session: Session) -> bool:
        """Return whether the session belongs to a rater, who may only rate reasons so that rating stays blind."""
        return session.name in self._raters

    def require(self, request: Request, *, rater: bool = False) -> Session:
        """Return the session of a researcher, or of a rater if `rater`; answer 401 or 403 otherwise."""
        session = self.logins.session(request)
        if session is None:
            raise HTTPException(401)
        if self.is_rater(session) is not rater:
            raise HTTPException(403)
        return session

    def form(
        self, request: Request, fields: dict[str, str | list[str]], *, rater: bool = False
    ) -> tuple[Session, ResearcherCookie]:
        """Return the session and cookie of a submitted form after checking its CSRF token."""
        session = self.require(request, rater=rater)
        return session, self._security.require_researcher_csrf(request, fields)

    def page(self, template: str, cookie: ResearcherCookie, status: int, **values: object) -> Response:
        """Return a rendered researcher page."""
        csrf = self._security.csrf_token(cookie.session)
        return self._context.page(f"researcher/{template}", status, csrf=csrf, title=self._title, **values)


class Pages:
    """The researcher's pages of one study."""

    def __init__(self, context: AppContext, dashboard: Dashboard, desk: Desk) -> None:
        self._context, self._dashboard, self._study = context, dashboard, context.study
        self._spec, self._security = context.design.spec, context.security
        self._desk, self._logins = desk, desk.logins
        self._page = desk.page

    def show_login(self, request: Request) -> Response:
        """Show the login form."""
        if self._logins.session(request) is not None:
            return redirect_to("/researcher")
        return self._login_page(request, "", 200)

    def login(self, request: Request, fields: Fields) -> Response:
        """Log a researcher in with a new random session token."""
        self._security.require_researcher_csrf(request, fields)
        name, password = field_of(fields, "name").strip()[:200], field_of(fields, "password")
        try:
            token = self._logins.login(name, password, request)
        except security.Throttled:
            said = f"Too many attempts. Please wait {security.ATTEMPT_SECONDS // 60} minutes."
            response = self._login_page(request, said, 429, name)
            response.headers["retry-after"] = str(security.ATTEMPT_SECONDS)
            return response
        if token is None:
            return self._login_page(request, "This name and password do not belong together.", 422, name)
        response = redirect_to("/researcher")
        device = self._security.device(request)
        known = device is not None and device.name == name
        self._security.remember_device(response, device if device is not None and known else DeviceCookie(name))
        self._security.remember_researcher(response, ResearcherCookie(token=token))
        return response

    def _login_page(self, request: Request, problem: str, status: int, name: str = "") -> Response:
        held = self._security.researcher(request)
        cookie, known = held or ResearcherCookie(), bool(self._study.researchers.names())
        response = self._page("login.html", cookie, status, problem=problem, known=known, name=name)
        if held is None:
            self._security.remember_researcher(response, cookie)
        return response

    def logout(self, request: Request, fields: Fields) -> Response:
        """End the session in the browser and in the database."""
        cookie = self._security.require_researcher_csrf(request, fields)
        if cookie.token:
            self._study.researchers.end_session(cookie.token)
        response = redirect_to("/researcher/login")
        self._security.forget_researcher(response)
        return response

    def dashboard(self, request: Request, done: str = "") -> Response:
        """Show the dashboard."""
        return self._dashboard_page(request, NOTICES.get(done, ""), 200)

    def _dashboard_page(self, request: Request, notice: str, status: int) -> Response:
        session, cookie = self._desk.login(request)
        if session is None or cookie is None:
            return redirect_to("/researcher/login")
        if self._desk.is_rater(session):
            return redirect_to("/researcher/reasons")
        state = self._dashboard.state()
        return self._page(
            "dashboard.html",
            cookie,
            status,
            name=session.name,
            numbers=state,
            notice=notice,
            actions=recent_actions(self._study.researchers.actions(200), 20),
            axes=charts.axes(state.snapshot),
            link=self._link(request),
            code=self._study.completion_code,
            places=self._context.design.places,
            charts=charts,
            count=count,
            ago=_ago,
            spec=self._spec,
            questions=[self._spec.words(check.question) for check in self._spec.attention],
            serum=self._pays_bonus(),
        )

    def _pays_bonus(self) -> bool:
        return any(bonus.by == "truth_serum" or self._spec.rationales.raters for bonus in self._spec.payment.bonuses)

    def _link(self, request: Request) -> str:
        """Return the link for participants, with the host name that this browser uses."""
        scheme = "https" if self._security.https else "http"
        host = request.headers.get("host", "")
        return f"{scheme}://{host}/?{self._spec.recruitment.id_parameter}=ID"

    def export(self, request: Request, form: str) -> Response:
        """Return the answers as a file."""
        session = self._desk.require(request)
        if form not in FORMATS:
            raise HTTPException(404)
        responses = self._study.results.responses()
        try:
            content = export(responses, form)
        except EvenhandError as error:
            return self._not_exported(request, responses, error)
        self._study.researchers.log(session.name, "exported the answers", form)
        return as_download(content, f"{self._spec.name}.{form}", MEDIA[form])

    def bonus(self, request: Request) -> Response:
        """Return the list of participants owed a bonus as a CSV file."""
        session = self._desk.require(request)
        responses, finished = self._study.results.responses(), self._study.participants.bonus_rows()
        try:
            listed = bonus_list(responses, finished, self._spec, self._study.ratings.all())
        except EvenhandError as error:
            return self._not_exported(request, responses, error)
        self._study.researchers.log(
            session.name, "exported the bonus list", count(len(listed["participant"]), "bonus", "bonuses")
        )
        return as_download(write_csv(listed).encode(), f"{self._spec.name}-bonus.csv", MEDIA["csv"])

    def _not_exported(self, request: Request, responses: Responses, error: EvenhandError) -> Response:
        if not len(responses.person):
            return redirect_to("/researcher?done=empty")
        return self._dashboard_page(request, f"This could not be exported: {error}", 422)

    def withdraw(self, request: Request, fields: Fields) -> Response:
        """Delete a participant's answers, by code or recruitment id, after confirmation."""
        session, cookie = self._desk.form(request, fields)
        who = field_of(fields, "who").strip()
        if field_of(fields, "confirm") != "yes":
            known = self._study.participants.by_recruitment_id(who)
            code = known.code if known is not None else who
            return self._page("confirm.html", cookie, 200, action="withdraw", who=code)
        if not self._study.participants.withdraw(who):
            return redirect_to("/researcher?done=nobody")
        return self._done("withdrawn", session, "deleted the answers of a person", who)

    def erase(self, request: Request, fields: Fields) -> Response:
        """Erase all recruitment ids, after confirmation."""
        session, cookie = self._desk.form(request, fields)
        if field_of(fields, "confirm") != "yes":
            return self._page("confirm.html", cookie, 200, action="erase", who="", serum=self._pays_bonus())
        erased = self._study.participants.erase_recruitment_ids()
        self._study.researchers.log(session.name, "erased the recruitment ids", f"{erased:,}")
        return redirect_to("/researcher?done=erased")

    def close(self, request: Request, fields: Fields) -> Response:
        """Close the study to new participants."""
        session, _ = self._desk.form(request, fields)
        self._study.close()
        return self._done("closed", session, "closed the study")

    def reopen(self, request: Request, fields: Fields) -> Response:
        """Reopen the study to new participants."""
        session, _ = self._desk.form(request, fields)
        self._study.reopen()
        return self._done("reopened", session, "reopened the study")

    def _done(self, notice: str, session: Session, action: str, detail: str = "") -> Response:
        """Log an action, refresh the dashboard and redirect to it with a notice."""
        self._study.researchers.log(session.name, action, detail)
        self._dashboard.changed()
        return redirect_to(f"/researcher?done={notice}")


def recent_actions(actions: Sequence[Action], most: int) -> list[tuple[Action, int]]:
    """Return the newest actions with counts; consecutive failed logins of one name are merged."""
    listed: list[tuple[Action, int]] = []
    for action in actions:
        last = listed[-1][0] if listed else None
        if (
            last is not None
            and last.action == action.action == security.FAILED_LOGIN
            and last.researcher == action.researcher
        ):
            listed[-1] = (last, listed[-1][1] + 1)
        else:
            listed.append((action, 1))
    return listed[:most]


def field_of(fields: dict[str, str | list[str]], name: str) -> str:
    """Return a form field that was sent exactly once, else an empty text."""
    given = fields.get(name, "")
    return given if isinstance(given, str) else ""


def redirect_to(address: str) -> RedirectResponse:
    """Return a redirect (303 See Other), which also works after a form."""
    return RedirectResponse(address, 303)


def as_download(content: bytes, name: str, kind: str) -> Response:
    """Return a file to download."""
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-type": kind}
    return Response(content, headers=headers)


def _ago(moment: datetime | None) -> str:
    """Return the approximate time since a moment as text."""
    if moment is None:
        return "none yet"
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{count(seconds // size, unit)} ago"
    return "just now"


def export(responses: Responses, form: Format) -> bytes:
    """Return the tidy table of the answers as the bytes of a file.

    In CSV, text that a spreadsheet would execute is prefixed with an apostrophe; `read_responses` removes it.

    Examples
    --------
    >>> import evenhand as eh
    >>> export(eh.study.simulate_responses(1, seed=1), "csv").splitlines()[0][:21]
    b'participant,condition'
    """
    require_choice("format", form, FORMATS)
    columns = responses.to_columns()
    if form == "csv":
        return write_csv(columns).encode()
    return _parquet(columns) if form == "parquet" else _json(columns)


def _json(columns: dict[str, Values]) -> bytes:
    listed = {
        name: [None if isinstance(value, float) and not np.isfinite(value) else value for value in values.tolist()]
        for name, values in columns.items()
    }
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=0).encode()


def _parquet(columns: dict[str, Values]) -> bytes:
    from evenhand.table.engines import connect

    typed = ", ".join(
        f"CAST({_quoted(name)} AS {'DOUBLE' if values.dtype.kind == 'f' else 'VARCHAR'}) AS {_quoted(name)}"
        for name, values in columns.items()
    )
    with tempfile.TemporaryDirectory() as folder, connect() as connection:
        path = os.path.join(folder, "responses.parquet")
        connection.execute("SET preserve_insertion_order = true")
        connection.register("answers", columns)
        connection.execute(f"COPY (SELECT {typed} FROM answers) TO '{path}' (FORMAT parquet)")  # noqa: S608
        with open(path, "rb") as file:
            return file.read()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
