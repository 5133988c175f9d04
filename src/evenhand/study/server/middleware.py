"""Middleware of every request: security headers, logging, errors, limits and origin checks.

It limits what a client may send (requests per second, bytes, fields, characters). If something fails, a visitor gets
one plain sentence in their language, without technical details.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic, perf_counter
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.errors import ConfigError
from evenhand.study.server.pages import common_values
from evenhand.study.server.security import address_of, from_elsewhere, security_headers
from evenhand.study.store import StoreError

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext

log = logging.getLogger("evenhand.study")
MOST_BYTES = 64 * 1024
MOST_FIELDS = 100
_CLIENT_GONE = 499
_MOST_ADDRESSES = 20_000
_BURST = 4.0
"""Size of the allowed burst, in seconds of the request rate."""
SENTENCES = {
    400: "This request could not be read.",
    401: "Please log in.",
    403: "This was not accepted: the form was open too long or came from another site. Reload it and send it again.",
    404: "There is no such page.",
    405: "This page cannot be used in this way.",
    413: "This is too long.",
    431: "This is too long.",
    415: "The form was sent in a way that this page does not read.",
    422: "Something in this cannot be stored. Please go back and check it.",
    429: "Too many requests. Please wait a moment and try again.",
    500: "Something went wrong on our side. What was saved before is safe. Please try again.",
    503: "This server cannot reach its database. What was saved before is safe. Please try again.",
}
_WORDS = dict.fromkeys((400, 413, 415, 422, 431), "not_stored") | dict.fromkeys((404, 405), "not_found")
_WORDS |= {403: "form_expired", 429: "slow_down", 500: "try_again", 503: "try_again"}
"""The interface texts that translate these sentences for participants."""


class SecurityHeaders:
    """Adds the security headers to every response, except headers already set."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app, self._headers = app, security_headers(https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                named = {name.lower() for name, _ in headers}
                message["headers"] = [*headers, *(pair for pair in self._headers if pair[0] not in named)]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class RequestLog:
    """Logs every request, and answers internal errors with an apology without details of the error.

    The log has the method, the path without its query, the status and the milliseconds; for an error its class and the
    stack trace, but not its message, which may quote participants. A database failure is logged in one line
    when it begins, and then once a minute with the number of failed requests.
    """

    def __init__(self, app: ASGIApp, *, context: AppContext) -> None:
        self._app, self._context = app, context
        self._outage = Outage()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock, status = perf_counter(), 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except ClientDisconnect:
            status = _CLIENT_GONE
        except Exception as error:
            self._log_error(error)
            if status:
                raise ConnectionAbortedError("an answer broke off") from None
            response = self._apology(scope, 503 if isinstance(error, StoreError) else 500)
            await response(scope, receive, send_noted)
        finally:
            self._outage.tell()
            path = quote(scope["path"][:200], safe="/")
            spent = 1e3 * (perf_counter() - clock)
            log.info("method=%s path=%s status=%d ms=%.1f", scope["method"], path, status, spent)

    def _apology(self, scope: Scope, status: int) -> Response:
        """Return the response to an internal error; plain text if the error page fails too."""
        try:
            return error_response(self._context, scope, status)
        except Exception as error:
            self._log_error(error)
            return PlainTextResponse(SENTENCES[status], status)

    def _log_error(self, error: Exception) -> None:
        if isinstance(error, StoreError):
            self._outage.note(str(error))  # our own message, without values
            return
        places = "".join(traceback.format_tb(error.__traceback__))
        log.error("internal error %s\n%s", type(error).__name__, places)


class Outage:
    """Logs database failures: the first as a line, the following ones as a count every `pause` seconds.

    Examples
    --------
    >>> clock = iter([0.0, 1.0, 2.0, 70.0, 140.0])
    >>> outage = Outage(clock=lambda: next(clock))
    >>> for _ in range(3):
    ...     outage.note("the database 'study.db' cannot be used: no space left.")
    >>> outage.tell()
    >>> outage.tell()
    """

    def __init__(self, pause: float = 60.0, clock: Callable[[], float] | None = None) -> None:
        self._pause, self._clock = pause, clock or monotonic
        self._since: float | None = None
        self._more, self._said = 0, ""

    def note(self, said: str) -> None:
        """Count a failed request; the first one of an outage is logged."""
        now = self._clock()
        if self._since is None:
            self._since = now
            log.error("a request failed: %s", said)
        else:
            self._more, self._said = self._more + 1, said

    def tell(self) -> None:
        """Log the number of further failures once per pause; a pause without failures ends the outage."""
        if self._since is None or (now := self._clock()) - self._since < self._pause:
            return
        if not self._more:
            self._since = None
            return
        log.error("%d more requests failed in %.0f s; the last: %s", self._more, now - self._since, self._said)
        self._since, self._more = now, 0


class RequestLimits:
    """Rejects requests that are too frequent, too long, or sent by a page of another site."""

    def __init__(self, app: ASGIApp, *, context: AppContext, rate: float) -> None:
        self._app, self._context = app, context
        self._rates = None if math.isinf(rate) else Rates(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) or self._app
        await answer(scope, limited(receive), send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a rejected request; None if it is allowed."""
        headers = Headers(scope=scope)
        wait = 0.0 if self._rates is None else self._rates.wait(address_of(scope.get("client")))
        if wait > 0:
            return error_response(self._context, scope, 429, {"retry-after": str(math.ceil(wait))})
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_BYTES:
            return error_response(self._context, scope, 431, {"connection": "close"})
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return error_response(self._context, scope, 400)
        if int(length[:20]) > MOST_BYTES:
            return error_response(self._context, scope, 413, {"connection": "close"})
        if from_elsewhere(scope["method"], headers, self._context.security.https):
            return error_response(self._context, scope, 403)
        return None


def error_response(
    context: AppContext, scope: Scope, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error page, or a JSON error for paths under /api/."""
    sentence = SENTENCES.get(status, SENTENCES[500 if status >= 500 else 400])
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    spec = context.design.spec
    if scope["path"].startswith("/researcher"):
        values = {"language": "en", "study": spec.words(spec.title, "en"), "sentence": sentence}
        response = context.page("error.html", status, **values)
    else:
        visitor = context.security.visitor(Request(scope))
        asked = visitor.language if visitor else None
        language = asked if asked in spec.languages else spec.languages[0]
        values = common_values(context.design, language, _WORDS.get(status, sentence))
        response = context.page("participant/message.html", status, **values, again=True)
    response.headers.update(headers or {})
    return response


class Rates:
    """A token bucket for each address: `rate` requests a second, with a burst of `burst` seconds.

    The least recently seen addresses are dropped first, so that memory is bounded.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    >>> rates = Rates(1.0, lambda: next(clock))
    >>> [round(rates.wait("a"), 1) for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic, burst: float = _BURST) -> None:
        self._rate, self._most, self._clock = rate, max(1.0, rate * burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Count one request of an address; return the seconds it has to wait, 0 if allowed."""
        now = self._clock()
        left, since = self._buckets.pop(address, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        taken = left >= 1
        self._buckets[address] = (left - 1 if taken else left, now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / self._rate


def require_proxies(given: str | None) -> None:
    """Require proxies to be named by address: a trusted proxy can claim any client address.

    Examples
    --------
    >>> require_proxies("192.0.2.1, 10.0.0.0/8")
    >>> require_proxies("*")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: --proxy must be the IP address or network of your proxy; got '*'.
    """
    for part in [] if given is None else given.split(","):
        try:
            network = ipaddress.ip_network(part.strip())
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            raise ConfigError(
                "--proxy must be the IP address or network of your proxy; got {strip!r}.", strip=part.strip()
            )


def limited(receive: Receive, most: int = MOST_BYTES) -> Receive:
    """Return a `receive` that rejects a body over the limit, even if sent in chunks without a length."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413)
        return message

    return receive_limited


async def read_fields(request: Request) -> dict[str, str | list[str]]:
    """Return the fields of a submitted form; repeated fields become lists.

    Only application/x-www-form-urlencoded is read (415 otherwise); too many fields, invalid UTF-8 and NUL
    characters, which PostgreSQL cannot store, are answered with 422.
    """
    require_type(request, "application/x-www-form-urlencoded")
    try:
        text = (await request.body()).decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(422) from None
    if not all(is_plain(name) and is_plain(value) for name, value in pairs):
        raise HTTPException(422)
    lists: dict[str, list[str]] = {}
    for name, value in pairs:
        lists.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in lists.items()}


def require_type(request: Request, kind: str) -> None:
    """Reject a request with another content type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise HTTPException(415)


def is_plain(text: str) -> bool:
    """Return whether every database can store a text: no NUL and no lone surrogate.

    Examples
    --------
    >>> [is_plain(text) for text in ("é", "a" + chr(0), chr(0xD800))]
    [True, False, False]
    """
    if "\x00" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_small_number(text: object) -> bool:
    """Return whether a value is a text of one to nine digits.

    Examples
    --------
    >>> [is_small_number(text) for text in ("12", "٣", "1" * 10, "", 3)]
    [True, False, False, False, False]
    """
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10
