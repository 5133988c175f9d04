"""The web application of a study: its routes, and what every page needs."""

from __future__ import annotations

import hashlib
import math
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand._version import __version__
from evenhand.core.display import showable_value
from evenhand.study.server import api, participant, researcher
from evenhand.study.server.dashboard import Dashboard, Estimator
from evenhand.study.server.middleware import Rates, RequestLimits, RequestLog, SecurityHeaders, error_response
from evenhand.study.server.security import Security

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.store import Study

_HERE = Path(__file__).parent
_HOUR = 3600.0


@dataclass(frozen=True)
class StaticFile:
    """A file that pages load: its bytes and what kind they are, read once at the start."""

    content: bytes
    kind: str
    version: str


@dataclass(frozen=True, eq=False)
class AppContext:
    """What every page needs.

    Parameters
    ----------
    design, study : the study as it is shown, and as it is stored.
    security : cookies and tokens.
    templates : the Jinja environment; everything is escaped. `static("style.css")` in a template is a file's address.
    files : the static files by name.
    newcomers : how many people an address may enrol; None for any number.
    """

    design: Design
    study: Study
    security: Security
    templates: jinja2.Environment
    files: Mapping[str, StaticFile]
    newcomers: Rates | None = None

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page made from a template."""
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
    """Return the application of one study.

    Parameters
    ----------
    design, study : the study as it is shown, and as it is stored.
    estimates : what the dashboard estimates from responses; none by default.
    https : whether people reach it over https, directly or through a proxy.
    rate : requests a second that one address may send, four seconds' worth at once; `math.inf` for any number.
    enrolments : people an hour whom one address may enrol, an hour's worth at once; `math.inf` for any number.
    on_close : called when the server stops, such as `Store.close`.
    """
    files = read_static(_HERE / "static")
    security = Security(study.secret, design.name, https=https)
    newcomers = None if math.isinf(enrolments) else Rates(enrolments / _HOUR, burst=_HOUR)
    context = AppContext(design, study, security, make_templates(files), files, newcomers)
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
        exception_handlers={HTTPException: _on_http_error, RequestValidationError: _on_invalid_address},
    )
    app.include_router(participant.router(context))
    app.include_router(researcher.router(context, dashboard))
    app.include_router(api.router(context, dashboard))
    app.add_api_route("/static/{name:path}", _static_route(files), include_in_schema=False)
    app.state.context, app.state.dashboard = context, dashboard
    return app


async def _on_http_error(request: Request, error: Any) -> Response:
    return error_response(request.app.state.context, request.scope, error.status_code, error.headers)


async def _on_invalid_address(request: Request, _: Exception) -> Response:
    # A value in the address that is no number names no page.
    return error_response(request.app.state.context, request.scope, 404)


def make_templates(files: Mapping[str, StaticFile]) -> jinja2.Environment:
    """Return the Jinja environment: everything escaped, unknown names refused, templates compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=showable_value,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = lambda name: f"/static/{name}?v={files[name].version}"
    return environment


def read_static(folder: Path) -> dict[str, StaticFile]:
    """Read the static files; only what is read here can be asked for."""
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
