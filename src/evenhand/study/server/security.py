"""Who somebody is: signed cookies, tokens against forged requests, and the headers of every answer.

A cookie is signed, not encrypted: it holds nothing that its owner may not know. It never grants more than its random
`session` and, for somebody enrolled or logged in, a secret token that the database knows.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_VISIT_SECONDS = 90 * 24 * 3600
_CLOCK_SECONDS = 24 * 3600
"""How far ahead the clock of another server of the study, or of this one before it was set right, may have been."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class VisitorCookie:
    """What a participant's browser holds.

    Parameters
    ----------
    session : random; tokens against forged requests are bound to it.
    token : the secret of the enrolled participant; None before consent.
    first : the first step that this browser may open.
    recruitment_id : what the recruiter calls the person, until they are enrolled.
    language : the language they chose.
    """

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None
    first: int = 0
    recruitment_id: str | None = None
    language: str | None = None


WRITTEN_BY = "_session"
"""Under this name drafts and answers say which browser wrote them; no other is shown them."""


@dataclass(frozen=True, slots=True)
class DeskCookie:
    """What a researcher's browser holds: `token` is the secret of the session in the database, None before login."""

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceCookie:
    """What stays in a browser after a login: under which name, and a random `key` that its attempts are counted by."""

    name: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))


class Security:
    """Sign and read the cookies of one study, and guard its forms.

    Parameters
    ----------
    secret : the signing key of the study.
    name : the short name of the study, so that a cookie of another study is not taken even under the same key.
    https : whether people reach the server over https, directly or through a proxy.

    Examples
    --------
    >>> security = Security(b"k" * 32, "who-is-alike", https=False)
    >>> security.csrf_token("a") == security.csrf_token("b")
    False
    """

    def __init__(self, secret: bytes, name: str, *, https: bool) -> None:
        self.https = https
        prefix = "__Host-" if https else ""
        self.visitor_cookie = f"{prefix}evenhand-{name}"
        self.desk_cookie = f"{prefix}evenhand-desk-{name}"
        self.device_cookie = f"{prefix}evenhand-device-{name}"
        self._key = hashlib.sha256(b"csrf:" + name.encode() + b":" + secret).digest()
        self._visitors = _serializer(secret, f"visitor:{name}")
        self._desks = _serializer(secret, f"desk:{name}")
        self._devices = _serializer(secret, f"device:{name}")

    def visitor(self, request: Request) -> VisitorCookie | None:
        """Return the participant's cookie; None where there is none, or it is not one of ours."""
        held = _read(self._visitors, request.cookies.get(self.visitor_cookie), _VISIT_SECONDS)
        if not isinstance(held, list) or len(held) != 5:
            return None
        session, token, first, recruitment_id, language = held
        return VisitorCookie(session, token, first, recruitment_id, language)

    def remember(self, response: Response, cookie: VisitorCookie) -> None:
        """Set the participant's cookie."""
        held = [cookie.session, cookie.token, cookie.first, cookie.recruitment_id, cookie.language]
        self._set(response, self.visitor_cookie, str(self._visitors.dumps(held)), _VISIT_SECONDS)

    def forget(self, response: Response) -> None:
        """Take the participant's cookie away."""
        self._set(response, self.visitor_cookie, "", 0)

    def desk(self, request: Request) -> DeskCookie | None:
        """Return the researcher's cookie; None where there is none, or it is not one of ours."""
        held = _read(self._desks, request.cookies.get(self.desk_cookie), _VISIT_SECONDS)
        return DeskCookie(held[0], held[1]) if isinstance(held, list) and len(held) == 2 else None

    def remember_desk(self, response: Response, cookie: DeskCookie) -> None:
        """Set the researcher's cookie; it goes when the browser closes."""
        self._set(response, self.desk_cookie, str(self._desks.dumps([cookie.session, cookie.token])), None)

    def forget_desk(self, response: Response) -> None:
        """Take the researcher's cookie away."""
        self._set(response, self.desk_cookie, "", 0)

    def device(self, request: Request) -> DeviceCookie | None:
        """Return what an earlier login left in this browser; None where there was none within 90 days."""
        held = _read(self._devices, request.cookies.get(self.device_cookie), _VISIT_SECONDS)
        return DeviceCookie(held[0], held[1]) if isinstance(held, list) and len(held) == 2 else None

    def remember_device(self, response: Response, cookie: DeviceCookie) -> None:
        """Set the cookie that stays after logout."""
        self._set(response, self.device_cookie, str(self._devices.dumps([cookie.name, cookie.key])), _VISIT_SECONDS)

    def csrf_token(self, session: str) -> str:
        """Return the token that forms of a session carry in the field `csrf` or the header X-CSRF-Token."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def require_csrf(self, request: Request, form: Mapping[str, str | list[str]] | None = None) -> VisitorCookie:
        """Return the participant's cookie if the form (or the header) carries its token; else answer 403."""
        cookie = self.visitor(request)
        if cookie is None or not self._matches(request, form, cookie.session):
            raise HTTPException(403)
        return cookie

    def require_desk_csrf(self, request: Request, form: Mapping[str, str | list[str]] | None = None) -> DeskCookie:
        """Return the researcher's cookie if the form carries its token; else answer 403."""
        cookie = self.desk(request)
        if cookie is None or not self._matches(request, form, cookie.session):
            raise HTTPException(403)
        return cookie

    def _matches(self, request: Request, form: Mapping[str, str | list[str]] | None, session: str) -> bool:
        given = (form or {}).get(CSRF_FIELD) or request.headers.get(CSRF_HEADER) or ""
        return isinstance(given, str) and hmac.compare_digest(given.encode(), self.csrf_token(session).encode())

    def _set(self, response: Response, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(name, value, max_age=seconds, path="/", secure=self.https, httponly=True, samesite="lax")


def from_elsewhere(method: str, headers: Headers, https: bool) -> bool:
    """Tell whether a request that changes something was sent by a page of another site.

    Browsers say where a request comes from in Sec-Fetch-Site and in Origin; programs send neither, and need the token
    of the form like everybody.
    """
    if method in SAFE_METHODS:
        return False
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        sent = urlsplit(origin)
    except ValueError:
        return True
    return sent.netloc != headers.get("host") or sent.scheme not in (("https",) if https else ("http", "https"))


def security_headers(https: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers that every answer carries.

    Referrer-Policy is `same-origin`: nothing is sent to other sites, and browsers still name the origin of our own
    forms, which they hide under `no-referrer`.
    """
    headers = {
        "content-security-policy": _POLICY,
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-robots-tag": "noindex",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()",
        "cache-control": "no-store",
    }
    if https:
        headers["strict-transport-security"] = "max-age=31536000"
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _serializer(secret: bytes, salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(
        secret, salt=f"evenhand:{salt}", signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256}
    )


def _read(serializer: URLSafeTimedSerializer, value: str | None, seconds: int) -> object:
    if not value:
        return None
    try:
        held, signed = serializer.loads(value, return_timestamp=True)
    except BadData:
        return None
    return held if -_CLOCK_SECONDS <= time.time() - signed.timestamp() <= seconds else None
