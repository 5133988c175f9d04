"""The report as a browser shows it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh

pytestmark = pytest.mark.browser


def open_page(browser: Any, path: Path, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("request", lambda request: None if request.url.startswith("file:") else trouble.append(request.url))
    page.goto(path.as_uri())
    return page, trouble


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_without_a_word_to_the_network_and_text_has_contrast(
    browser: Any, report: Path, scheme: str
) -> None:
    """Contrast as WCAG AA has it, 4.5 to 1, for every kind of text the page has."""
    page, trouble = open_page(browser, report, 1280, scheme)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#findings .verdict").first.is_visible()
        assert page.locator("svg.chart:visible").count()
        for panels in page.evaluate(PANELS):
            assert panels["right"] >= 0.97 * panels["room"], (width, panels)
        assert page.evaluate(COLLISIONS) == [], "labels of ticks collide"
    assert trouble == []
    for selector in ("p.note", "th", ".limit-words", ".interval", ".verdict", "summary", "figcaption", "nav a"):
        ratio = page.evaluate(CONTRAST, selector)
        assert ratio >= 4.5, (selector, ratio)


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


LOOKS = ["color-contrast", "scrollable-region-focusable", "target-size"]
"""What width and colours can change; all other rules are tried once."""


def test_axe_finds_nothing_serious(browser: Any, report: Path) -> None:
    parts = ["header", "#answer", "#findings", "#parity > figure:nth-of-type(1)", "#left-out", "#provenance"]
    assert serious(open_page(browser, report, 1280)[0], parts) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme", "media"),
    [
        (1280, "light", "screen"),
        (1280, "dark", "screen"),
        (390, "light", "screen"),
        (390, "dark", "screen"),
        (1280, "light", "print"),
    ],
)
def test_axe_finds_nothing_serious_in_six_sections(
    browser: Any, six_sections: Path, width: int, scheme: str, media: str
) -> None:
    page, _ = open_page(browser, six_sections, width, scheme)
    page.emulate_media(media=media)
    parts = ["header", "#answer", "#findings", *(f"#{name} > figure:nth-of-type(1)" for name in SECTIONS)]
    assert serious(page, parts, None if (width, scheme) == (1280, "light") else LOOKS) == []


def serious(page: Any, parts: list[str], rules: list[str] | None = None) -> list[tuple[str, list[str]]]:
    """Return what axe calls serious in some parts of a page, by all rules or some; it closes the page."""
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = Axe().run(page, context={"include": [[part] for part in parts]}, options=options).response["violations"]
    page.context.close()
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in grave]


SECTIONS = ("parity", "effort", "disagreement", "reliability", "agreement", "improvability")


@pytest.mark.slow
def test_six_sections_are_there_and_light(browser: Any, six_sections: Path) -> None:
    assert six_sections.stat().st_size < 1_000_000
    page, trouble = open_page(browser, six_sections, 390)
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("[...document.querySelectorAll('figure')].every(f => f.querySelector('.shows'))")
    for name in SECTIONS:
        assert page.locator(f"#{name} figure").count()


def test_it_is_light_and_its_long_tables_lie_beside_it(browser: Any, report: Path) -> None:
    assert report.stat().st_size < 400_000
    page, _ = open_page(browser, report, 1280)
    links = page.evaluate("[...document.querySelectorAll('a[href$=\".csv\"]')].map(a => a.getAttribute('href'))")
    assert links
    for name in links:
        text = (report.parent / name).read_text(encoding="utf-8")
        assert text.count("\n") > 25
    assert page.evaluate("Math.max(...[...document.querySelectorAll('details table')].map(t => t.rows.length))") <= 26


PANELS = """
() => [...document.querySelectorAll('.panels')].map(p => {
  const b = p.getBoundingClientRect(), ends = [...p.children].map(c => c.getBoundingClientRect().right);
  return {room: b.width, right: Math.max(...ends) - b.left, what: p.parentElement.querySelector('h3').textContent}; })
"""

COLLISIONS = """
() => { const found = [];
  for (const axis of document.querySelectorAll('.forest thead .plot svg')) {
    const boxes = [...axis.querySelectorAll('text')].map(t => t.getBoundingClientRect()).filter(b => b.width);
    boxes.forEach((b, i) => { if (i && b.left < boxes[i - 1].right + 2) found.push(axis.textContent); });
  }
  return found; }
"""

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


def test_on_a_phone_captions_are_whole_and_numbers_of_an_axis_keep_clear(browser: Any, tmp_path: Path) -> None:
    data = {"sex": ["F", "M"] * 400, "hired": [1, 0, 0, 1, 1, 0, 0, 1, 0, 1] * 80}
    table = eh.Table(data, groups="sex", predictions={"screener": "hired"}, favourable="selected")
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, report={"profile": "ugesp-1978"})
    page, _ = open_page(browser, audit.save(tmp_path)["report.html"], 390)
    ends = page.evaluate(RIGHT_ENDS, "#ugesp-1978 .scroll caption")
    assert ends
    assert max(ends) <= 390
    rooms = page.evaluate(ROOM_BEFORE_AXIS)
    assert rooms
    assert min(rooms) >= 4


ROOM_BEFORE_AXIS = """() => [...document.querySelectorAll('.forest thead:has(.num + .plot)')].map(head => {
  const n = document.createRange(); n.selectNodeContents(head.querySelector('th.num'));
  return head.querySelector('text').getBoundingClientRect().left - n.getBoundingClientRect().right;
})"""

RIGHT_ENDS = """selector => [...document.querySelectorAll(selector)].map(element => {
  const range = document.createRange(); range.selectNodeContents(element);
  return range.getBoundingClientRect().right;
})"""


SMALL_TEXT = """() => [...document.querySelectorAll('svg text')].filter(text => {
  const drawn = text.getScreenCTM();
  return text.getBoundingClientRect().width && drawn && parseFloat(getComputedStyle(text).fontSize) * drawn.a < 9;
}).map(text => text.textContent)"""


def test_the_answers_stand_on_the_first_screen_of_a_phone_before_their_pictures(browser: Any, report: Path) -> None:
    page, _ = open_page(browser, report, 390)
    answers = page.locator(".answers > div")
    tops = [answers.nth(number).bounding_box()["y"] for number in range(answers.count())]
    assert len(tops) >= 5
    assert max(tops) < 844
    assert page.locator(".for_whom-drawn").bounding_box()["y"] > max(tops)
    wide, _ = open_page(browser, report, 1280)
    whom, drawn = (wide.locator(name).bounding_box() for name in (".answers .for_whom", ".for_whom-drawn"))
    assert drawn["y"] == pytest.approx(whom["y"] + whom["height"], abs=2)
    assert wide.locator("nav:visible").count() == page.locator("nav:visible").count() == 1


def test_text_of_charts_is_legible_on_a_phone(browser: Any, report: Path) -> None:
    page, _ = open_page(browser, report, 390)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("document.querySelectorAll('svg text').length") > 100
    assert page.evaluate(SMALL_TEXT) == []
