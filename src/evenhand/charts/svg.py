"""From chart to SVG: rendered without a browser, with a title and description for those who cannot see it."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from evenhand.charts.look import styled
from evenhand.errors import showable

_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)" viewBox="([^"]+)">')


def to_svg(chart: Any, title: str, description: str, *, name: str) -> str:
    """Return a chart as inline SVG.

    The renderer drops a chart's description and numbers its clip paths anew in every process; so title and
    description are added here, and identifiers are derived from `name`, which must be unique on the page.

    Examples
    --------
    >>> import altair as alt
    >>> chart = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> to_svg(chart, "Points", "One point at 1.", name="figure-1").startswith('<svg role="img"')
    True
    """
    import vl_convert

    raw: str = vl_convert.vegalite_to_svg(styled(chart).to_dict(validate=False))
    match = _SIZE.search(raw)
    width, height, box = match.groups() if match else ("300", "200", "0 0 300 200")
    body = raw[match.end() : raw.rindex("</svg>")] if match else raw
    head = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" class="chart" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{box}" width="{width}" height="{height}">'
        f'<title id="{name}-title">{escape(showable(title))}</title>'
        f'<desc id="{name}-text">{escape(showable(description))}</desc>'
    )
    return head + _quiet(_own_ids(body, name)) + "</svg>"


def _own_ids(body: str, name: str) -> str:
    """Renumber identifiers in the order in which they appear."""
    found = dict.fromkeys(re.findall(r'\bid="([^"]+)"', body))
    for number, identifier in enumerate(found):
        body = body.replace(f'id="{identifier}"', f'id="{name}-{number}"')
        body = body.replace(f"url(#{identifier})", f"url(#{name}-{number})")
    return body


def _quiet(body: str) -> str:
    """Hide the parts from screen readers: the title and description stand for the whole."""
    body = re.sub(r' (?:aria-label|aria-roledescription|role)="[^"]*"', "", body)
    return f'<g aria-hidden="true">{body}</g>'


def to_png(chart: Any) -> bytes:
    """Return a chart as a PNG of twice the resolution of a screen."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(styled(chart).to_dict(validate=False), scale=2)
    return drawn
