"""A browser without JavaScript: cookies, redirects, and the forms and tables of the HTML."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx

from evenhand.errors import ConfigError

_REDIRECTS = 6
_WAIT_AGAIN = 0.1
Fields = dict[str, list[str]]
"""The fields of a form with their values, as submitted."""

_BUTTONS = {"submit", "button", "reset", "image", "file"}
_SKIPPED = {"script", "style", "template"}
_OPENED = {"form": "form", "textarea": "area", "select": "list"}
"""The reader's attribute for the open element, by tag."""
_PERCENT = re.compile(r"(\d[\d.,]*)[\s\u00a0\u202f]?%")
_NUMBER = re.compile(r"[-−]?\d[\d\s,.\u00a0\u202f']*")


class ServerAwayError(Exception):
    """A request got no response, so that it is unknown whether the server processed it."""


@dataclass
class Site:
    """The visited site: its address, and the time to wait while it is unreachable."""

    address: str
    patience: float = 10.0
    context: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                "the address of the study must start with http:// or https://; got {address!r}.", address=self.address
            )
        self.address = f"{parts.scheme}://{parts.netloc}"
        self.context = self.context or ssl.create_default_context()

    async def require_study(self) -> None:
        """Raise a `ConfigError` if no study responds at the address."""
        try:
            async with httpx.AsyncClient(verify=self.context or True, timeout=10.0) as client:
                there = (await client.get(f"{self.address}/api/health")).status_code == 200
        except (httpx.TransportError, httpx.InvalidURL):
            there = False
        if not there:
            raise ConfigError("no study answers at {address}; evenhand study serve starts one.", address=self.address)


class Browser:
    """One person's browser."""

    def __init__(self, site: Site, cookies: httpx.Cookies | None = None) -> None:
        self.site = site
        self.client = httpx.AsyncClient(
            base_url=site.address,
            cookies=cookies,
            verify=site.context or True,
            timeout=30.0,
            headers={"user-agent": "evenhand virtual respondent", "accept": "text/html"},
        )
        self.waited = 0

    async def get(self, path: str) -> Page:
        """Return a page after following redirects; retry for a while if the server is unreachable."""
        end = time.monotonic() + self.site.patience
        for _ in range(_REDIRECTS):
            answer = await self._patient(path, end)
            if not answer.is_redirect:
                return read_page(urlsplit(str(answer.url)).path, answer.status_code, answer.text)
            path = self.leads_to(answer)
        return Page(url=path, status=answer.status_code, text="redirected without end")

    async def _patient(self, path: str, end: float) -> httpx.Response:
        while True:
            try:
                return await self._limited("GET", path)
            except httpx.TransportError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(_WAIT_AGAIN)

    async def post(self, path: str, fields: Fields) -> httpx.Response:
        """Submit a form once; `ServerAwayError` means that it may or may not have arrived."""
        body = urlencode([(name, value) for name, values in fields.items() for value in values])
        return await self.send_once("POST", path, body, {"content-type": "application/x-www-form-urlencoded"})

    async def send_once(self, method: str, path: str, body: str, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request once, with the Origin header of the site."""
        try:
            return await self._limited(method, path, body, {"origin": self.site.address, **headers})
        except httpx.TransportError as error:
            raise ServerAwayError(str(error)) from None

    async def _limited(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a request; if the server answers 429, wait as long as it asks and retry."""
        while True:
            answer = await self.client.request(method, path, content=body, headers=headers)
            if answer.status_code != 429:
                return answer
            self.waited += 1
            await asyncio.sleep(float(answer.headers.get("retry-after", "1")))

    @staticmethod
    def leads_to(answer: httpx.Response) -> str:
        """Return the target of a redirect: a path of the same site with its query."""
        location: str = answer.headers.get("location", "")
        parts = urlsplit(urljoin(str(answer.url), location))
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @staticmethod
    def accepted(answer: httpx.Response) -> bool:
        """Return whether a form was accepted: incomplete or outdated forms redirect back to themselves."""
        query = parse_qs(urlsplit(Browser.leads_to(answer)).query)
        return answer.is_redirect and not ({"missing", "stale"} & query.keys())


@dataclass(kw_only=True)
class Control:
    """A field of a form, or one choice of a group of radio buttons."""

    name: str
    type: str
    value: str = ""
    checked: bool = False
    required: bool = False
    choices: list[str] = field(default_factory=list)
    ends: tuple[str, str] = ("", "")


@dataclass
class Form:
    """A form with its address, method and fields."""

    action: str
    method: str
    controls: list[Control] = field(default_factory=list)

    def values(self) -> Fields:
        """Return the fields that a browser would submit for the untouched form, without buttons."""
        sent: Fields = {}
        for control in self.controls:
            if control.checked if control.type in ("radio", "checkbox") else control.type not in _BUTTONS:
                sent.setdefault(control.name, []).append(control.value)
        return sent

    def choices(self, name: str) -> list[str]:
        """Return the values offered by a group of radio buttons, a checkbox or a list."""
        named = [control for control in self.controls if control.name == name]
        offered = [control.value for control in named if control.type in ("radio", "checkbox")]
        return offered or [value for control in named for value in control.choices]

    def of_type(self, *types: str) -> Iterator[Control]:
        """Yield the fields of the given types."""
        return (control for control in self.controls if control.type in types)

    def __contains__(self, name: object) -> bool:
        return any(control.name == name for control in self.controls)


@dataclass(kw_only=True)
class Page:
    """The parsed response to a request."""

    url: str
    status: int
    forms: list[Form] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def form(self) -> Form | None:
        """The main form of the page: the form submitted to the page's own address."""
        here = ("", self.url)
        return next((form for form in self.forms if form.method == "post" and form.action.split("?")[0] in here), None)

    @property
    def percent(self) -> float | None:
        """The first percentage in the text."""
        match = _PERCENT.search(self.text)
        return as_number(match[1]) if match else None

    def series(self) -> list[list[float]]:
        """Return the two series of the first numeric table: its columns if it has two, else its last rows.

        A final row of totals is left out.

        Examples
        --------
        >>> read_page("/", 200, "<table><tr><th>Year<th>1<th>2<th>3<tr><th>K<td>$1,200<td>900<td>0<tr><th>L<td>1"
        ...     "<td>2<td>3</table>").series()
        [[1200.0, 900.0, 0.0], [1.0, 2.0, 3.0]]
        """
        for table in self.tables:
            upright = len(table) >= 3 and {len(row) for row in table} == {3}
            lines = list(zip(*table, strict=True))[1:] if upright else table[-2:]
            series = [_numbers(line[1:]) for line in lines]
            if len(series) == 2 and series[0] and len(series[0]) == len(series[1]):
                return _without_totals(series) if upright else series
        return []


def _numbers(cells: Sequence[str]) -> list[float]:
    """Return the numbers in cells; an empty list if a cell is not numeric."""
    numbers = [number for number in map(as_number, cells) if number is not None]
    return numbers if len(numbers) == len(cells) else []


def _without_totals(series: list[list[float]]) -> list[list[float]]:
    totals = len(series[0]) > 2 and all(abs(values[-1] - sum(values[:-1])) < 1e-6 for values in series)
    return [values[:-1] for values in series] if totals else series


def as_number(text: str) -> float | None:
    """Return the number in a cell, ignoring its unit; None if there is not exactly one.

    Examples
    --------
    >>> as_number("$50,800"), as_number("1.234,5 €"), as_number("0"), as_number("Felony")
    (50800.0, 1234.5, 0.0, None)
    """
    numbers = _NUMBER.findall(text)
    if len(numbers) != 1:
        return None
    digits = re.sub(r"[\s\u00a0\u202f']", "", numbers[0]).rstrip(".,").replace("−", "-")
    head, mark, tail = digits, "", ""
    for sign in ".,":
        before, this, after = digits.rpartition(sign)
        if this and (not mark or len(after) < len(tail)):
            head, mark, tail = before, this, after
    if mark and len(tail) == 3:  # a sign before three digits groups thousands
        head, tail = head + tail, ""
    return float(re.sub(r"[.,]", "", head) + (f".{tail}" if tail else ""))


class _Reader(HTMLParser):
    """Collects forms, tables and text while the HTML is read."""

    def __init__(self, page: Page) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.form: Form | None = None
        self.area: Control | None = None
        self.list: Control | None = None
        self.in_cell = self.in_term = False
        self.skipped = 0
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _SKIPPED:
            self.skipped += 1
        elif tag == "form":
            self.form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.page.forms.append(self.form)
        elif tag in ("input", "textarea", "select", "button"):
            self._add_control(tag, given)
        elif tag == "option" and self.list is not None:
            self.list.choices.append(given.get("value", ""))
            if "selected" in given or len(self.list.choices) == 1:
                self.list.value = given.get("value", "")
        elif tag in ("dt", "dd"):
            self.in_term = True
            self.page.terms.append("")
        else:
            self._begin_table_part(tag)

    def _begin_table_part(self, tag: str) -> None:
        tables = self.page.tables
        if tag == "table":
            tables.append([])
        elif tag == "tr" and tables:
            tables[-1].append([])
        elif tag in ("td", "th") and tables and tables[-1]:
            self.in_cell = True
            tables[-1][-1].append("")

    def _add_control(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "submit" if tag == "button" else "text") if tag in ("input", "button") else tag
        value = given.get("value", "on" if kind == "checkbox" else "")
        control = Control(
            name=given.get("name", ""), type=kind, value=value, checked="checked" in given, required="required" in given
        )
        control.ends = given.get("min", ""), given.get("max", "")
        if control.name and self.form is not None and "disabled" not in given:
            self.form.controls.append(control)
        if tag == "textarea":
            self.area = control
        elif tag == "select":
            self.list = control

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self.skipped -= 1
        elif tag in _OPENED:
            setattr(self, _OPENED[tag], None)
        elif tag in ("td", "th", "table"):
            self.in_cell = False
        elif tag in ("dt", "dd", "dl"):
            self.in_term = False

    def handle_data(self, data: str) -> None:
        if self.area is not None:
            self.area.value += data
        elif not self.skipped:
            self.words.append(data)
            if self.in_cell:
                self.page.tables[-1][-1][-1] += data
            if self.in_term:
                self.page.terms[-1] += data


def read_page(url: str, status: int, html: str) -> Page:
    """Parse the HTML of a page.

    Examples
    --------
    >>> page = read_page("/consent", 200, '<form method="post"><input type="checkbox" name="agree"></form>')
    >>> page.form.choices("agree"), page.form.values()
    (['on'], {})
    """
    page = Page(url=url, status=status)
    reader = _Reader(page)
    reader.feed(html)
    reader.close()
    page.text = " ".join("".join(reader.words).split())
    page.terms = [" ".join(term.split()) for term in page.terms]
    for table in page.tables:
        table[:] = [[" ".join(cell.split()) for cell in row] for row in table if row]
    for form in page.forms:
        for control in form.of_type("textarea"):
            control.value = control.value.removeprefix("\n")
    return page
