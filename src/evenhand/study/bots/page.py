"""What a virtual respondent sees of a page: its forms and its tables, read from the HTML as it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

Fields = dict[str, list[str]]
"""The fields of a form with their values, as they are sent."""

_BUTTONS = {"submit", "button", "reset", "image", "file"}
_SKIPPED = {"script", "style", "template"}
_PERCENT = re.compile(r"(\d[\d.,]*)[\s\u00a0\u202f]?%")
_NUMBER = re.compile(r"[-−]?\d[\d\s,.\u00a0\u202f']*")


@dataclass
class Control:
    """A field of a form, or one choice of a group of radio buttons."""

    name: str
    type: str
    value: str = ""
    checked: bool = False
    required: bool = False
    choices: list[str] = field(default_factory=list)


@dataclass
class Form:
    """A form: where it goes and what it asks."""

    action: str
    method: str
    controls: list[Control] = field(default_factory=list)

    def values(self) -> Fields:
        """Return what a browser would send if nobody touched the form; buttons are not pressed."""
        sent: Fields = {}
        for one in self.controls:
            if one.checked if one.type in ("radio", "checkbox") else one.type not in _BUTTONS:
                sent.setdefault(one.name, []).append(one.value)
        return sent

    def choices(self, name: str) -> list[str]:
        """Return the values that a group of radio buttons, a checkbox or a list offers."""
        found = [one.value for one in self.controls if one.name == name and one.type in ("radio", "checkbox")]
        return found or [value for one in self.controls if one.name == name for value in one.choices]

    def of_type(self, *types: str) -> Iterator[Control]:
        """Yield the fields of some types."""
        return (one for one in self.controls if one.type in types)

    def __contains__(self, name: object) -> bool:
        return any(one.name == name for one in self.controls)


@dataclass
class Page:
    """What came back for a request."""

    url: str
    status: int
    forms: list[Form] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def form(self) -> Form | None:
        """The form that leads on: the one that is sent to the page's own address."""
        own = [one for one in self.forms if one.method == "post" and one.action.split("?")[0] in ("", self.url)]
        return own[0] if own else None

    @property
    def percent(self) -> float | None:
        """The first percentage that the text names."""
        found = _PERCENT.search(self.text)
        return as_number(found[1]) if found else None

    def series(self) -> list[list[float]]:
        """Return the two series of the first table of numbers: its columns where it has two, else its last rows.

        A last line of totals is left out.

        Examples
        --------
        >>> read_page("/", 200, "<table><tr><th>Year<th>1<th>2<th>3<tr><th>K<td>$1,200<td>900<td>0<tr><th>L<td>1"
        ...     "<td>2<td>3</table>").series()
        [[1200.0, 900.0, 0.0], [1.0, 2.0, 3.0]]
        """
        for table in self.tables:
            columns = len(table) >= 3 and {len(row) for row in table} == {3}
            rows = [list(column) for column in zip(*table[1:], strict=True)][1:] if columns else table[-2:]
            found = [[as_number(cell) for cell in (row if columns else row[1:])] for row in rows]
            full = [[number for number in row if number is not None] for row in found if row and None not in row]
            if len(full) == 2 and len(full[0]) == len(full[1]):
                totals = len(full[0]) > 2 and all(abs(row[-1] - sum(row[:-1])) < 1e-6 for row in full)
                return [row[:-1] for row in full] if totals and columns else full
        return []


def as_number(text: str) -> float | None:
    """Return the number in a cell, whatever its unit, or None.

    Examples
    --------
    >>> as_number("$50,800"), as_number("1.234,5 €"), as_number("0"), as_number("Felony")
    (50800.0, 1234.5, 0.0, None)
    """
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    digits = re.sub(r"[\s\u00a0\u202f']", "", found[0]).rstrip(".,").replace("−", "-")
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
            self._control(tag, given)
        elif tag == "option" and self.list is not None:
            self.list.choices.append(given.get("value", ""))
            if "selected" in given or len(self.list.choices) == 1:
                self.list.value = given.get("value", "")
        elif tag == "table":
            self.page.tables.append([])
        elif tag == "tr" and self.page.tables:
            self.page.tables[-1].append([])
        elif tag in ("td", "th") and self.page.tables and self.page.tables[-1]:
            self.in_cell = True
            self.page.tables[-1][-1].append("")
        elif tag in ("dt", "dd"):
            self.in_term = True
            self.page.terms.append("")

    def _control(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "submit" if tag == "button" else "text") if tag in ("input", "button") else tag
        value = given.get("value", "on" if kind == "checkbox" else "")
        one = Control(given.get("name", ""), kind, value, "checked" in given, "required" in given)
        if one.name and self.form is not None and "disabled" not in given:
            self.form.controls.append(one)
        if tag == "textarea":
            self.area = one
        elif tag == "select":
            self.list = one

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self.skipped -= 1
        elif tag == "form":
            self.form = None
        elif tag == "textarea":
            self.area = None
        elif tag == "select":
            self.list = None
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
    """Read the HTML of a page.

    Examples
    --------
    >>> page = read_page("/consent", 200, '<form method="post"><input type="checkbox" name="agree"></form>')
    >>> page.form.choices("agree"), page.form.values()
    (['on'], {})
    """
    page = Page(url, status)
    reader = _Reader(page)
    reader.feed(html)
    reader.close()
    page.text = " ".join("".join(reader.words).split())
    page.terms = [" ".join(term.split()) for term in page.terms]
    for table in page.tables:
        table[:] = [[" ".join(cell.split()) for cell in row] for row in table if row]
    for form in page.forms:
        for one in form.controls:
            if one.type == "textarea":
                one.value = one.value.removeprefix("\n")
    return page
