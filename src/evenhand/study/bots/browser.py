"""A browser without JavaScript: cookies, redirects, forms, and patience while a server is away."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx

from evenhand.errors import ConfigError
from evenhand.study.bots.page import Fields, Page, read_page

_REDIRECTS = 6
_WAIT_AGAIN = 0.1


class ServerAwayError(Exception):
    """A request got no answer: whether it was taken in is not known."""


@dataclass
class Visit:
    """The site that a crowd visits: its address, and how long to wait while it is away."""

    address: str
    patience: float = 10.0
    context: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(f"the address of the study must start with http:// or https://; got {self.address!r}.")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self.context = self.context or ssl.create_default_context()

    async def require_study(self) -> None:
        """Raise a `ConfigError` where no study answers at the address."""
        try:
            async with httpx.AsyncClient(verify=self.context or True, timeout=10.0) as client:
                there = (await client.get(f"{self.address}/api/health")).status_code == 200
        except (httpx.TransportError, httpx.InvalidURL):
            there = False
        if not there:
            raise ConfigError(f"no study answers at {self.address}; evenhand study serve starts one.")


class Browser:
    """One browser of one person."""

    def __init__(self, visit: Visit, cookies: httpx.Cookies | None = None) -> None:
        self.visit = visit
        self.client = httpx.AsyncClient(
            base_url=visit.address,
            cookies=cookies,
            verify=visit.context or True,
            timeout=30.0,
            headers={"user-agent": "evenhand virtual respondent", "accept": "text/html"},
        )
        self.waited = 0

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def get(self, path: str) -> Page:
        """Return a page, after the redirects that lead to it; a server that is away is tried again for a while."""
        end = time.monotonic() + self.visit.patience
        for _ in range(_REDIRECTS):
            answer = await self._patient(path, end)
            if not answer.is_redirect:
                return read_page(urlsplit(str(answer.url)).path, answer.status_code, answer.text)
            path = self.leads_to(answer)
        return Page(path, answer.status_code, text="redirected without end")

    async def _patient(self, path: str, end: float) -> httpx.Response:
        while True:
            try:
                return await self._limited("GET", path)
            except httpx.TransportError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(_WAIT_AGAIN)

    async def post(self, path: str, fields: Fields) -> httpx.Response:
        """Send a form once. `ServerAwayError` says that no answer came, so that it may or may not have arrived."""
        body = urlencode([(name, value) for name, values in fields.items() for value in values])
        origin = {"origin": self.visit.address, "content-type": "application/x-www-form-urlencoded"}
        try:
            return await self._limited("POST", path, body, origin)
        except httpx.TransportError as error:
            raise ServerAwayError(str(error)) from None

    async def put_json(self, path: str, body: str, token: str) -> int:
        """Save a draft as the page's script does; return the status."""
        headers = {"origin": self.visit.address, "content-type": "application/json", "x-csrf-token": token}
        try:
            return (await self._limited("PUT", path, body, headers)).status_code
        except httpx.TransportError as error:
            raise ServerAwayError(str(error)) from None

    async def _limited(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a request; where the server says that it was one too many, wait as long as it says."""
        while True:
            answer = await self.client.request(method, path, content=body, headers=headers)
            if answer.status_code != 429:
                return answer
            self.waited += 1
            await asyncio.sleep(float(answer.headers.get("retry-after", "1")))

    @staticmethod
    def leads_to(answer: httpx.Response) -> str:
        """Return where a redirect leads: a path of the same site with its query."""
        location: str = answer.headers.get("location", "")
        parts = urlsplit(urljoin(str(answer.url), location))
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @staticmethod
    def accepted(answer: httpx.Response) -> bool:
        """Tell whether a form was taken: a form that lacks something, or of an old tab, leads back to itself."""
        query = parse_qs(urlsplit(Browser.leads_to(answer)).query)
        return answer.is_redirect and not ({"missing", "stale"} & query.keys())
