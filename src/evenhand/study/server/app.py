"""The web application of a study: what every request passes, and how the rooms behind it hang together."""

from __future__ import annotations

import hashlib
import logging
import math
import mimetypes
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import jinja2
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand._version import __version__
from evenhand.study.server.desk import Desk
from evenhand.study.server.estimates import Estimator
from evenhand.study.server.failures import SENTENCES, error_response
from evenhand.study.server.limits import MOST_BYTES, Rates, address_of, limited
from evenhand.study.server.security import Security, from_elsewhere, security_headers
from evenhand.study.store.errors import StoreError

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.store import Study

log = logging.getLogger("evenhand.study")
_HERE = Path(__file__).parent
_CLIENT_GONE = 499
Endpoint = Callable[[Request], Awaitable[Response]]


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
    """

    design: Design
    study: Study
    security: Security
    templates: jinja2.Environment
    files: Mapping[str, StaticFile]

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
    on_close: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the application of one study.

    Parameters
    ----------
    design, study : the study as it is shown, and as it is stored.
    estimates : what the dashboard estimates from responses; none by default.
    https : whether people reach it over https, directly or through a proxy.
    rate : requests a second that one address may send, four seconds' worth at once; `math.inf` for any number.
    on_close : called when the server stops, such as `Store.close`.
    """
    from evenhand.study.server import api, participant, researcher

    files = read_static(_HERE / "static")
    context = AppContext(design, study, Security(study.secret, design.name, https=https), make_templates(files), files)
    desk = Desk(context, estimates)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()
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
    )
    pages = participant.Pages(context)
    app.include_router(participant.router(pages))
    app.include_router(researcher.router(context, desk))
    app.include_router(api.router(context, desk))
    app.add_api_route("/static/{name:path}", _static_route(files), include_in_schema=False)
    app.add_exception_handler(HTTPException, _answer_http_error(context))
    app.add_exception_handler(RequestValidationError, _answer_invalid(context))
    app.add_middleware(Guard, context=context, rate=rate, steps={"GET": pages.show_step, "POST": pages.take_step})
    app.state.context, app.state.desk = context, desk
    return app


class Guard:
    """What every request passes first and last: limits, the origin of forms, headers, the log, and errors.

    Nothing of an error reaches the visitor. The log has the method, the path without its query, the status and the
    milliseconds; of an error the kind and the places in the code, but not its message, which may quote what people
    wrote, except where the database fails.
    """

    def __init__(self, app: ASGIApp, *, context: AppContext, rate: float, steps: Mapping[str, Endpoint]) -> None:
        self._app, self._context, self._steps = app, context, steps
        self._https = context.security.https
        self._headers = security_headers(self._https)
        self._rates = None if math.isinf(rate) else Rates(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock, status = perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                named = {name.lower() for name, _ in given}
                message["headers"] = [*given, *(pair for pair in self._headers if pair[0] not in named)]
            await send(message)

        try:
            answer = self._refusal(scope) or self._step(scope) or self._app
            await answer(scope, limited(receive), send_guarded)
        except ClientDisconnect:
            status = _CLIENT_GONE
        except Exception as error:
            _log_error(error)
            if status:
                raise ConnectionAbortedError("an answer broke off") from None
            await self._apology(scope)(scope, receive, send_guarded)
        finally:
            path = quote(scope["path"][:200], safe="/")
            spent = 1e3 * (perf_counter() - clock)
            log.info("method=%s path=%s status=%d ms=%.1f", scope["method"], path, status, spent)

    def _step(self, scope: Scope) -> ASGIApp | None:
        """Return what answers the page of a step without the router's detours: nearly all requests are for one."""
        folder, _, number = scope["path"].rpartition("/")
        endpoint = self._steps.get(scope["method"])
        if folder != "/step" or endpoint is None or not (number.isascii() and number.isdigit() and len(number) < 10):
            return None

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            scope["path_params"] = {"index": int(number)}
            try:
                response = await endpoint(Request(scope, receive))
            except HTTPException as error:
                response = error_response(self._context, scope, error.status_code, error.headers)
            await response(scope, receive, send)

        return answer

    def _apology(self, scope: Scope) -> Response:
        """Return the answer to an error of ours, in one line where even its page fails."""
        try:
            return error_response(self._context, scope, 500)
        except Exception as error:
            _log_error(error)
            return PlainTextResponse(SENTENCES[500], 500)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further."""
        headers = Headers(scope=scope)
        wait = 0.0 if self._rates is None else self._rates.wait(address_of(scope.get("client")))
        if wait > 0:
            return error_response(self._context, scope, 429, {"retry-after": str(math.ceil(wait))})
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return error_response(self._context, scope, 400)
        if int(length[:20]) > MOST_BYTES:
            return error_response(self._context, scope, 413, {"connection": "close"})
        if from_elsewhere(scope["method"], headers, self._https):
            return error_response(self._context, scope, 403)
        return None


def make_templates(files: Mapping[str, StaticFile]) -> jinja2.Environment:
    """Return the Jinja environment: everything escaped, unknown names refused, templates compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = lambda name: f"/static/{name}?v={files[name].version}"
    return environment


def read_static(folder: Path) -> dict[str, StaticFile]:
    """Read the static files; only what is read here can be asked for."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file():
            content = path.read_bytes()
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            found[path.name] = StaticFile(content, kind, hashlib.sha256(content).hexdigest()[:12])
    return found


def _static_route(files: Mapping[str, StaticFile]) -> Callable[[str], Any]:
    async def static(name: str, v: str = "") -> Response:
        found = files.get(name)
        if found is None:
            raise HTTPException(404)
        kept = "public, max-age=31536000, immutable" if v == found.version else "no-cache"
        return Response(found.content, headers={"cache-control": kept, "content-type": _with_charset(found.kind)})

    return static


def _with_charset(kind: str) -> str:
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _answer_http_error(context: AppContext) -> Callable[[Request, Any], Any]:
    async def answer(request: Request, error: HTTPException) -> Response:
        return error_response(context, request.scope, error.status_code, error.headers)

    return answer


def _answer_invalid(context: AppContext) -> Callable[[Request, Any], Any]:
    async def answer(request: Request, _: RequestValidationError) -> Response:
        # A value in the address that is no number names no page.
        return error_response(context, request.scope, 404)

    return answer


def _log_error(error: Exception) -> None:
    places = "".join(traceback.format_tb(error.__traceback__))
    # What the store says is a sentence of ours, free of values; other messages may quote what people wrote.
    said = f"{type(error).__name__}: {error}" if isinstance(error, StoreError) else type(error).__name__
    log.error("internal error %s\n%s", said, places)
