"""Authentication and forgery protection: signed cookies, CSRF tokens, logins and security headers.

A cookie is signed, not encrypted, so it contains nothing secret from its owner. Its only credentials are its random
`session` and, after enrolment or login, a secret token stored in the database.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from evenhand.errors import ConfigError

if TYPE_CHECKING:
    from evenhand.study.store import Session, Study

CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1_000
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1)
_AT_ONCE = BoundedSemaphore(2)
"""Each check takes 64 MiB; at most two run at once, so that a flood of logins cannot exhaust the memory."""
FAILED_LOGIN, UNKNOWN_NAME = "failed to log in", "(unknown name)"
NAME_ATTEMPTS, ADDRESS_ATTEMPTS, ATTEMPT_SECONDS = 20, 10, 15 * 60
_VISIT_SECONDS = 90 * 24 * 3600
_CLOCK_SECONDS = 24 * 3600
"""Tolerated clock difference: how far in the future a cookie's timestamp may lie."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class VisitorCookie:
    """The contents of a participant's cookie.

    Parameters
    ----------
    session : a random value that CSRF tokens are bound to.
    token : the enrolled participant's secret token; None before enrolment.
    first : the first step that this browser may open.
    recruitment_id : the recruiter's id of the participant.
    language : the chosen language.
    agreed : whether the visitor consented but has yet to answer the questions about themselves.
    turned_away : digest of the answers with which a quota refused the visitor; other answers are then rejected.
    """

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None
    first: int = 0
    recruitment_id: str | None = None
    language: str | None = None
    agreed: bool = False
    turned_away: str | None = None


WRITTEN_BY = "_session"
"""Key of the browser's id in drafts and answers; no other browser is shown them."""


@dataclass(frozen=True, slots=True)
class ResearcherCookie:
    """The contents of a researcher's cookie; `token` is the session's secret, None before login."""

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceCookie:
    """The cookie that outlives a login: the name, and a random `key` for counting login attempts."""

    name: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))


Form = Mapping[str, str | list[str]]
"""The fields of a form; a repeated field is a list."""
_Session = TypeVar("_Session", VisitorCookie, ResearcherCookie)
_Cookie = TypeVar("_Cookie", VisitorCookie, ResearcherCookie, DeviceCookie)


class Security:
    """Signs and reads the cookies of one study, and protects its forms against forgery.

    Parameters
    ----------
    secret : the signing key of the study.
    name : the short name of the study, so that cookies of other studies are rejected even under the same key.
    https : whether clients reach the server over https, directly or through a proxy.

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
        self.researcher_cookie = f"{prefix}evenhand-researcher-{name}"
        self.device_cookie = f"{prefix}evenhand-device-{name}"
        self._key = hashlib.sha256(b"csrf:" + name.encode() + b":" + secret).digest()
        roles = {self.visitor_cookie: "visitor", self.researcher_cookie: "researcher", self.device_cookie: "device"}
        self._serializers = {cookie: _serializer(secret, f"{role}:{name}") for cookie, role in roles.items()}

    def visitor(self, request: Request) -> VisitorCookie | None:
        """Return the participant's cookie; None if missing or invalid."""
        return self._held(request, self.visitor_cookie, VisitorCookie)

    def remember(self, response: Response, cookie: VisitorCookie) -> None:
        """Set the participant's cookie."""
        self._set(response, self.visitor_cookie, self._signed(self.visitor_cookie, cookie), _VISIT_SECONDS)

    def researcher(self, request: Request) -> ResearcherCookie | None:
        """Return the researcher's cookie; None if missing or invalid."""
        return self._held(request, self.researcher_cookie, ResearcherCookie)

    def remember_researcher(self, response: Response, cookie: ResearcherCookie) -> None:
        """Set the researcher's cookie as a session cookie of the browser."""
        self._set(response, self.researcher_cookie, self._signed(self.researcher_cookie, cookie), None)

    def forget_researcher(self, response: Response) -> None:
        """Delete the researcher's cookie."""
        self._set(response, self.researcher_cookie, "", 0)

    def device(self, request: Request) -> DeviceCookie | None:
        """Return the device cookie of an earlier login; None if missing, invalid or older than 90 days."""
        return self._held(request, self.device_cookie, DeviceCookie)

    def remember_device(self, response: Response, cookie: DeviceCookie) -> None:
        """Set the device cookie, which remains after logout."""
        self._set(response, self.device_cookie, self._signed(self.device_cookie, cookie), _VISIT_SECONDS)

    def _held(self, request: Request, name: str, kind: type[_Cookie]) -> _Cookie | None:
        held = _read(self._serializers[name], request.cookies.get(name), _VISIT_SECONDS)
        return kind(*held) if isinstance(held, list) and len(held) == len(fields(kind)) else None

    def _signed(self, name: str, cookie: VisitorCookie | ResearcherCookie | DeviceCookie) -> str:
        return str(self._serializers[name].dumps(astuple(cookie)))

    def csrf_token(self, session: str) -> str:
        """Return the CSRF token of a session, sent in the field `csrf` or the header X-CSRF-Token."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def require_csrf(self, request: Request, form: Form | None = None) -> VisitorCookie:
        """Return the participant's cookie if the CSRF token matches; else answer 403."""
        return self._matching(self.visitor(request), request, form)

    def require_researcher_csrf(self, request: Request, form: Form | None = None) -> ResearcherCookie:
        """Return the researcher's cookie if the CSRF token matches; else answer 403."""
        return self._matching(self.researcher(request), request, form)

    def _matching(self, cookie: _Session | None, request: Request, form: Form | None) -> _Session:
        given = (form or {}).get(CSRF_FIELD) or request.headers.get(CSRF_HEADER) or ""
        if cookie is None or not isinstance(given, str):
            raise HTTPException(403)
        if not hmac.compare_digest(given.encode(), self.csrf_token(cookie.session).encode()):
            raise HTTPException(403)
        return cookie

    def _set(self, response: Response, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(name, value, max_age=seconds, path="/", secure=self.https, httponly=True, samesite="lax")


class Logins:
    """Researcher logins, with limits on the number of attempts.

    Parameters
    ----------
    study : the study with its researchers.
    security : the cookies of the study.
    """

    def __init__(self, study: Study, security: Security) -> None:
        self._researchers, self._security = study.researchers, security

    def session(self, request: Request) -> Session | None:
        """Return the session of a logged-in researcher; None if not logged in."""
        cookie = self._security.researcher(request)
        return self._researchers.session(cookie.token) if cookie is not None and cookie.token else None

    def login(self, name: str, password: str, request: Request) -> str | None:
        """Return the token of a new session; None if the name or the password is wrong.

        Raises
        ------
        Throttled : after too many attempts. They are counted in the database before the password is checked, so that
            several servers or restarts do not allow more attempts.
        """
        limits = self._limits(name, request)
        for key, limit in limits:
            if self._researchers.note_attempt(key, limit=limit, window=ATTEMPT_SECONDS) < 0:
                raise Throttled
        stored = self._researchers.password_hash(name)
        if not is_password(stored, password):
            # An unknown name may be a password in the wrong field, so only UNKNOWN_NAME is logged.
            self._researchers.log(name if stored is not None else UNKNOWN_NAME, FAILED_LOGIN)
            return None
        for key, _ in limits:
            self._researchers.forget_attempts(key)
        token = self._researchers.open_session(name)
        self._researchers.log(name, "logged in")
        return token

    def _limits(self, name: str, request: Request) -> list[tuple[str, int]]:
        """Return the keys and limits by which login attempts are counted, the address before the name.

        An attempt rejected for its address does not count for the name, so one address cannot lock a name. Many
        addresses can; therefore a browser with an earlier login under this name has a separate count.
        """
        device = self._security.device(request)
        if device is not None and device.name.casefold() == name.casefold():
            return [(f"device:{device.key}", NAME_ATTEMPTS)]
        address = address_of(request.client)
        return [(f"address:{address}", ADDRESS_ATTEMPTS), (f"name:{name.casefold()}", NAME_ATTEMPTS)]


class Throttled(Exception):  # noqa: N818
    """Too many login attempts."""


def address_of(client: tuple[str, int] | None) -> str:
    """Return the address used for limits: an IPv4 address, or the /64 network of an IPv6 address.

    Examples
    --------
    >>> address_of(("2001:db8::1", 4711)) == address_of(("2001:db8::2", 4712))
    True
    """
    host = client[0] if client else ""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


def from_elsewhere(method: str, headers: Headers, https: bool) -> bool:
    """Return whether a state-changing request was sent by a page of another site.

    Browsers send the origin of a request in Sec-Fetch-Site and in Origin; programs send neither and need a CSRF token,
    as every client does.
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
    """Return the security headers of every response.

    Referrer-Policy is `same-origin`: nothing is sent to other sites, and browsers still send the origin of our own
    forms, which `no-referrer` would suppress.
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


def hash_password(password: str) -> str:
    """Return the hash of a password after checking its length.

    Examples
    --------
    >>> hash_password("too short")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: a password needs at least 12 characters; got 9.
    """
    if len(password) < SHORTEST_PASSWORD:
        raise ConfigError(
            "a password needs at least {least} characters; got {number}.", least=SHORTEST_PASSWORD, number=len(password)
        )
    if len(password) > LONGEST_PASSWORD:
        raise ConfigError(
            "a password may have at most {most:,} characters; got {number:,}.",
            most=LONGEST_PASSWORD,
            number=len(password),
        )
    return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Return whether a password matches its hash; takes the same time for an unknown name (None)."""
    with _AT_ONCE:
        try:
            _HASHER.verify(stored or _nobody(), password[:LONGEST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


@cache
def _nobody() -> str:
    return _HASHER.hash("the password of nobody")
