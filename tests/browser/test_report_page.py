"""The report as a browser shows it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


def open_page(browser: Any, path: Path, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("request", lambda request: None if request.url.startswith("file:") else trouble.append(request.url))
    page.goto(path.as_uri())
    return page, trouble


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_without_a_word_to_the_network(browser: Any, report: Path, width: int, scheme: str) -> None:
    page, trouble = open_page(browser, report, width, scheme)
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#findings .verdict").first.is_visible()
    assert page.locator("svg.chart").first.is_visible()


def test_text_has_enough_contrast_in_light_and_dark(browser: Any, report: Path) -> None:
    """WCAG AA, 4.5 to 1, for every kind of text the page has."""
    for scheme in ("light", "dark"):
        page, _ = open_page(browser, report, 1280, scheme)
        for selector in ("p.note", "th", ".limit-words", ".interval", ".verdict", "summary", "figcaption", "nav a"):
            ratio = page.evaluate(CONTRAST, selector)
            assert ratio >= 4.5, (scheme, selector, ratio)


def test_it_is_read_in_order_by_keyboard_and_screen_reader(browser: Any, report: Path) -> None:
    page, _ = open_page(browser, report, 1280)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent.trim())"
    )
    assert page.evaluate("[...document.querySelectorAll('th')].every(h => h.scope)")
    assert page.evaluate("[...document.querySelectorAll('svg.chart desc')].every(d => d.textContent.trim())")
    assert page.locator("svg.chart title").count() == page.locator("svg.chart").count()


def test_folded_tables_open_and_print_opens_them_all(browser: Any, report: Path, tmp_path: Path) -> None:
    page, _ = open_page(browser, report, 1280)
    summary = page.locator("summary", has_text="Every value by race").first
    table = page.locator("details", has=page.locator("summary", has_text="Every value by race")).first.locator("table")
    assert not table.is_visible()
    page.emulate_media(media="print")
    assert table.is_visible()
    page.emulate_media(media="screen")
    summary.focus()
    page.keyboard.press("Enter")
    assert table.is_visible()
    page.pdf(path=str(tmp_path / "report.pdf"))
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


CONTRAST = """
selector => {
  const luminance = c => {
    const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => {
      v = v / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => {
    while (e) { const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(c)) return c; e = e.parentElement; }
    return 'rgb(255, 255, 255)'; };
  const e = document.querySelector(selector);
  const [a, b] = [luminance(getComputedStyle(e).color), luminance(behind(e))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05); }
"""
