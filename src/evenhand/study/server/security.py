"""Who somebody is: signed cookies, tokens against forged requests, logins; and the headers of every answer.

A cookie is signed, not encrypted: it holds nothing that its owner may not know. It never grants more than its random
`session` and, for somebody enrolled or logged in, a secret token that the database knows.
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
"""Each check takes 64 MiB; more than two at once wait, so that a flood of logins cannot use up the memory."""
FAILED_LOGIN, UNKNOWN_NAME = "failed to log in", "(unknown name)"
NAME_ATTEMPTS, ADDRESS_ATTEMPTS, ATTEMPT_SECONDS = 20, 10, 15 * 60
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
    agreed : whether they agreed to take part, where they say something about themselves before they are enrolled.
    turned_away : digest of what they said about themselves when a quota turned them away; other answers are not taken.
    """

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None
    first: int = 0
    recruitment_id: str | None = None
    language: str | None = None
    agreed: bool = False
    turned_away: str | None = None


WRITTEN_BY = "_session"
"""Under this name drafts and answers say which browser wrote them; no other is shown them."""


@dataclass(frozen=True, slots=True)
class ResearcherCookie:
    """What a researcher's browser holds: `token` is the secret of the session in the database, None before login."""

    session: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    token: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceCookie:
    """What stays in a browser after a login: under which name, and a random `key` that its attempts are counted by."""

    name: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))


Form = Mapping[str, str | list[str]]
"""The fields of a form; one that was sent more than once holds a list."""
_Session = TypeVar("_Session", VisitorCookie, ResearcherCookie)
_Cookie = TypeVar("_Cookie", VisitorCookie, ResearcherCookie, DeviceCookie)


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
        self.researcher_cookie = f"{prefix}evenhand-researcher-{name}"
        self.device_cookie = f"{prefix}evenhand-device-{name}"
        self._key = hashlib.sha256(b"csrf:" + name.encode() + b":" + secret).digest()
        roles = {self.visitor_cookie: "visitor", self.researcher_cookie: "researcher", self.device_cookie: "device"}
        self._serializers = {cookie: _serializer(secret, f"{role}:{name}") for cookie, role in roles.items()}

    def visitor(self, request: Request) -> VisitorCookie | None:
        """Return the participant's cookie; None where there is none, or it is not one of ours."""
        return self._held(request, self.visitor_cookie, VisitorCookie)

    def remember(self, response: Response, cookie: VisitorCookie) -> None:
        """Set the participant's cookie."""
        self._set(response, self.visitor_cookie, self._signed(self.visitor_cookie, cookie), _VISIT_SECONDS)

    def researcher(self, request: Request) -> ResearcherCookie | None:
        """Return the researcher's cookie; None where there is none, or it is not one of ours."""
        return self._held(request, self.researcher_cookie, ResearcherCookie)

    def remember_researcher(self, response: Response, cookie: ResearcherCookie) -> None:
        """Set the researcher's cookie; it goes when the browser closes."""
        self._set(response, self.researcher_cookie, self._signed(self.researcher_cookie, cookie), None)

    def forget_researcher(self, response: Response) -> None:
        """Take the researcher's cookie away."""
        self._set(response, self.researcher_cookie, "", 0)

    def device(self, request: Request) -> DeviceCookie | None:
        """Return what an earlier login left in this browser; None where there was none within 90 days."""
        return self._held(request, self.device_cookie, DeviceCookie)

    def remember_device(self, response: Response, cookie: DeviceCookie) -> None:
        """Set the cookie that stays after logout."""
        self._set(response, self.device_cookie, self._signed(self.device_cookie, cookie), _VISIT_SECONDS)

    def _held(self, request: Request, name: str, kind: type[_Cookie]) -> _Cookie | None:
        held = _read(self._serializers[name], request.cookies.get(name), _VISIT_SECONDS)
        return kind(*held) if isinstance(held, list) and len(held) == len(fields(kind)) else None

    def _signed(self, name: str, cookie: VisitorCookie | ResearcherCookie | DeviceCookie) -> str:
        return str(self._serializers[name].dumps(astuple(cookie)))

    def csrf_token(self, session: str) -> str:
        """Return the token that forms of a session carry in the field `csrf` or the header X-CSRF-Token."""
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()

    def require_csrf(self, request: Request, form: Form | None = None) -> VisitorCookie:
        """Return the participant's cookie if the form (or the header) carries its token; else answer 403."""
        return self._matching(self.visitor(request), request, form)

    def require_researcher_csrf(self, request: Request, form: Form | None = None) -> ResearcherCookie:
        """Return the researcher's cookie if the form carries its token; else answer 403."""
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
    """Researchers who log in, and how often somebody may try.

    Parameters
    ----------
    study : the study with its researchers.
    security : its cookies.
    """

    def __init__(self, study: Study, security: Security) -> None:
        self._researchers, self._security = study.researchers, security

    def session(self, request: Request) -> Session | None:
        """Return the session of a researcher who is logged in."""
        cookie = self._security.researcher(request)
        return self._researchers.session(cookie.token) if cookie is not None and cookie.token else None

    def login(self, name: str, password: str, request: Request) -> str | None:
        """Return the token of a new session, or None where name or password is wrong.

        Raises
        ------
        Throttled : after too many attempts. They are counted in the database before the password is looked at, so that
            several servers and restarts do not add attempts.
        """
        limits = self._limits(name, request)
        for key, limit in limits:
            if self._researchers.note_attempt(key, limit=limit, window=ATTEMPT_SECONDS) < 0:
                raise Throttled
        stored = self._researchers.password_hash(name)
        if not is_password(stored, password):
            # A name that is not known may be a password in the wrong field. It is logged too: the work is the same.
            self._researchers.log(name if stored is not None else UNKNOWN_NAME, FAILED_LOGIN)
            return None
        for key, _ in limits:
            self._researchers.forget_attempts(key)
        token = self._researchers.open_session(name)
        self._researchers.log(name, "logged in")
        return token

    def _limits(self, name: str, request: Request) -> list[tuple[str, int]]:
        """Return what attempts are counted by, and how many are allowed: the address first, then the name.

        What the address may not try does not count for the name, so one address cannot lock a name. Many addresses
        can; therefore a browser in which somebody logged in under this name before has a count of its own.
        """
        device = self._security.device(request)
        if device is not None and device.name.casefold() == name.casefold():
            return [(f"device:{device.key}", NAME_ATTEMPTS)]
        address = address_of(request.client)
        return [(f"address:{address}", ADDRESS_ATTEMPTS), (f"name:{name.casefold()}", NAME_ATTEMPTS)]


class Throttled(Exception):  # noqa: N818
    """Too many attempts to log in."""


def address_of(client: tuple[str, int] | None) -> str:
    """Return the address that limits are counted for: an IPv4 address, or the /64 network of an IPv6 address.

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


def hash_password(password: str) -> str:
    """Return what is stored of a password.

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
    """Tell whether a password is the stored one; for an unknown name (None) the work is the same and the answer no."""
    with _AT_ONCE:
        try:
            _HASHER.verify(stored or _nobody(), password[:LONGEST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


@cache
def _nobody() -> str:
    return _HASHER.hash("the password of nobody")
