"""The web application of a study: routes, shared page context and JSON endpoints."""

from __future__ import annotations

import asyncio
import hashlib
import math
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import jinja2
from fastapi import APIRouter, Depends, FastAPI
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand._version import __version__
from evenhand.study.server import participant, reasons, researcher
from evenhand.study.server.dashboard import Dashboard, Estimator
from evenhand.study.server.middleware import (
    MOST_FIELDS,
    Rates,
    RequestLimits,
    RequestLog,
    SecurityHeaders,
    error_response,
    require_type,
)
from evenhand.study.server.pages import TEMPLATES
from evenhand.study.server.security import CSRF_FIELD, WRITTEN_BY, Form, Security, VisitorCookie
from evenhand.study.store.participants import enrolment_of

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.store import Study


_HERE = Path(__file__).parent
_HOUR = 3600.0
HEALTH_SECONDS = 2.0


@dataclass(frozen=True)
class StaticFile:
    """A static file: content, media type and version hash, read once at startup."""

    content: bytes
    kind: str
    version: str


@dataclass(frozen=True, eq=False, kw_only=True)
class AppContext:
    """The objects that every page needs.

    Parameters
    ----------
    design, study : the study's design, and its stored data.
    security : cookies and tokens.
    templates : the Jinja environment; everything is escaped. `static("style.css")` returns the address of a file.
    files : the static files by name.
    newcomers : limit on enrolments per address; None for no limit.
    """

    design: Design
    study: Study
    security: Security
    templates: jinja2.Environment
    files: Mapping[str, StaticFile]
    newcomers: Rates | None = None

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a rendered template."""
        return HTMLResponse(self.templates.get_template(template).render(values), status)


def create_app(
    design: Design,
    study: Study,
    *,
    estimates: Estimator | None = None,
    https: bool = False,
    rate: float = 50.0,
    enrolments: float = math.inf,
    on_close: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the web application of one study.

    Parameters
    ----------
    design, study : the study's design, and its stored data.
    estimates : function that computes the dashboard's estimates; none by default.
    https : whether clients reach it over https, directly or through a proxy.
    rate : maximum requests per second and address, with bursts of four seconds; `math.inf` for no limit.
    enrolments : maximum enrolments per hour and address, with bursts of one hour; `math.inf` for no limit.
    on_close : called when the server stops, such as `Store.close`.
    """
    files = read_static(_HERE / "static")
    security = Security(study.secret, design.name, https=https)
    newcomers = None if math.isinf(enrolments) else Rates(enrolments / _HOUR, burst=_HOUR)
    context = AppContext(
        design=design, study=study, security=security, templates=make_templates(files), files=files, newcomers=newcomers
    )
    dashboard = Dashboard(design, study, estimates)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        dashboard.close()
        if on_close is not None:
            on_close()

    app = FastAPI(
        title="evenhand study",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=[
            Middleware(SecurityHeaders, https=https),
            Middleware(RequestLog, context=context),
            Middleware(RequestLimits, context=context, rate=rate),
        ],
        exception_handlers={HTTPException: _on_http_error, RequestValidationError: _on_invalid_request},
    )
    app.include_router(participant.router(context))
    desk = researcher.Desk(context)
    app.include_router(researcher.router(context, dashboard, desk))
    app.include_router(reasons.router(context, desk))
    app.include_router(_json_router(context, dashboard, desk))
    app.add_api_route("/static/{name:path}", _static_route(files), include_in_schema=False)
    app.state.context, app.state.dashboard = context, dashboard
    return app


async def _on_http_error(request: Request, error: Any) -> Response:
    return error_response(request.app.state.context, request.scope, error.status_code, error.headers)


async def _on_invalid_request(request: Request, error: Any) -> Response:
    # A non-numeric path parameter means that there is no such page.
    status = 422 if error.errors()[0]["loc"][0] == "body" else 404
    return error_response(request.app.state.context, request.scope, status)


def make_templates(files: Mapping[str, StaticFile]) -> jinja2.Environment:
    """Return the Jinja environment with the addresses of the static files."""
    environment = TEMPLATES.overlay()
    environment.globals = {**TEMPLATES.globals, "static": lambda name: f"/static/{name}?v={files[name].version}"}
    return environment


def read_static(folder: Path) -> dict[str, StaticFile]:
    """Read the static files; no other file is served."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.is_file():
            content = path.read_bytes()
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            files[path.name] = StaticFile(content, kind, hashlib.sha256(content).hexdigest()[:12])
    return files


def _static_route(files: Mapping[str, StaticFile]) -> Callable[[str], Any]:
    async def static(name: str, v: str = "") -> Response:
        file = files.get(name)
        if file is None:
            raise HTTPException(404)
        kept = "public, max-age=31536000, immutable" if v == file.version else "no-cache"
        kind = f"{file.kind}; charset=utf-8" if file.kind.startswith("text/") else file.kind
        return Response(file.content, headers={"cache-control": kept, "content-type": kind})

    return static


# JSON: drafts of answers as people type, the numbers of the dashboard, and whether the server is well -----------------


Plain = Annotated[str, Field(pattern="^[^\\u0000]*$")]
"""Text that every database can store."""


class Draft(BaseModel, extra="forbid"):
    """The request to store a draft: the fields of a form, and the revision of the answer that they edit."""

    fields: Annotated[dict[Plain, Plain | list[Plain]], Field(max_length=MOST_FIELDS)]


class Problem(BaseModel):
    """An error message of one sentence."""

    error: str


class Health(BaseModel):
    """The result of the database health check."""

    status: str


class Stamp(BaseModel):
    """The hash of the dashboard's current numbers."""

    stamp: str


class Kept(BaseModel):
    """Whether a draft was stored; not if a newer answer is stored or the participant has finished."""

    kept: bool


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in (400, *statuses, 429, 500, 503)}


def _require_json(request: Request) -> None:
    require_type(request, "application/json")


def _json_router(context: AppContext, dashboard: Dashboard, desk: researcher.Desk) -> APIRouter:
    """Return the JSON routes."""
    routes = APIRouter(prefix="/api")
    study, design = context.study, context.design
    # A separate thread, so that an unresponsive database blocks only it and further checks still time out.
    checks = ThreadPoolExecutor(1, thread_name_prefix="health")

    @routes.get("/health", responses=_problems())
    async def health() -> Health:
        """Return ok if the database answers within two seconds, else 503."""
        asked = asyncio.get_running_loop().run_in_executor(checks, lambda: study.closed)
        try:
            await asyncio.wait_for(asked, HEALTH_SECONDS)
        except TimeoutError:
            raise HTTPException(503) from None
        return Health(status="ok")

    @routes.put("/draft/{index}", responses=_problems(403, 404, 413, 415, 422), dependencies=[Depends(_require_json)])
    async def draft(request: Request, index: Annotated[int, PathParameter(ge=0, le=100_000)], sent: Draft) -> Kept:
        """Store a draft of a form; the header X-CSRF-Token must contain the form's token."""
        visitor = context.security.require_csrf(request)
        return Kept(kept=await participant.run_page(keep, visitor, index, sent.fields))

    def keep(visitor: VisitorCookie, index: int, fields: Form) -> bool:
        person = study.participants.by_token(visitor.token) if visitor.token else None
        if person is None:
            raise HTTPException(403)
        if person.fingerprint not in (None, design.fingerprint):
            raise HTTPException(404)
        steps = design.plan(person.condition, person.place).steps
        if not visitor.first <= index < len(steps) or index > person.reached:
            raise HTTPException(404)
        typed = {name: value for name, value in fields.items() if name not in (CSRF_FIELD, "revision")}
        draft = {**typed, WRITTEN_BY: enrolment_of(visitor.session)}
        return study.answers.save_draft(person, steps[index].key, draft, revision=participant.revision_of(fields))

    @routes.get("/dashboard", responses=_problems(401, 403))
    def stamp(request: Request) -> Stamp:
        """Return a hash that changes when any number of the dashboard does."""
        desk.require(request)
        return Stamp(stamp=dashboard.state().stamp)

    return routes
