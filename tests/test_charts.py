"""Charts as SVG: named, described, quiet, the same on every render."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evenhand.charts import (
    PALETTE,
    Curve,
    Icons,
    OfHundred,
    Picture,
    Slopes,
    columns_for,
    curve,
    forest,
    grids_of,
    legend_of,
    same_looks,
    share_axis,
    to_svg,
)
from evenhand.charts.look import looks
from evenhand.errors import ConfigError, MissingExtraError


def some_chart() -> Curve:
    values = [{"x": 1, "y": 2, "series": "<b>"}, {"x": 3, "y": 4, "series": "b"}]
    return curve(values, title="T", x="x", y="y", intervals="none")


def test_it_has_a_title_and_a_description_and_is_well_formed() -> None:
    svg = to_svg(some_chart(), "Title & more", "What <it> shows", name="figure")
    root = ElementTree.fromstring(svg)  # noqa: S314
    space = "{http://www.w3.org/2000/svg}"
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{space}title") == "Title & more"
    assert root.findtext(f"{space}desc") == "What <it> shows"


def test_rendering_twice_gives_the_same_text() -> None:
    assert to_svg(some_chart(), "t", "d", name="a") == to_svg(some_chart(), "t", "d", name="a")


def test_identifiers_carry_the_name() -> None:
    svg = to_svg(some_chart(), "t", "d", name="figure-7")
    assert re.findall(r'id="([^"]+)"', svg) == ["figure-7-title", "figure-7-text"]


def test_names_of_data_are_text() -> None:
    assert ">&lt;b&gt;</text>" in to_svg(some_chart(), "t", "d", name="a")
    hostile = forest([{"label": "<script>", "value": 1.0, "low": 0.0, "high": 2.0}], title="a\x00<b>")
    assert "<script" not in to_svg(hostile, "t", "d", name="a")
    ElementTree.fromstring(to_svg(hostile, "t", "d", name="a"))  # noqa: S314


def test_text_takes_the_colour_of_the_page() -> None:
    assert 'fill="currentColor"' in to_svg(some_chart(), "t", "d", name="a")


def test_colours_hold_three_to_one_on_white_and_on_black() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in PALETTE:
        assert 1.05 / (luminance(colour) + 0.05) >= 3, colour
        assert (luminance(colour) + 0.05) / (luminance("#14171b") + 0.05) >= 3, colour


def test_each_series_has_its_colour_and_shape_and_a_point_without_an_interval_is_hollow() -> None:
    rows = [{"label": "a", "value": 1.0, "low": 0.0, "high": 2.0, "series": name} for name in "xy"]
    rows.append({"label": "b", "value": 1.0, "low": None, "high": None, "series": "x"})
    svg = to_svg(forest(rows, title="t"), "t", "d", name="a")
    blue, orange = PALETTE[:2]
    assert svg.count(f'<path fill="{orange}" d="M') == 2, "a square in the plot and one in the legend"
    assert svg.count(f'<path stroke="{blue}" stroke-width="7"') == 2, "a circle in the plot and one in the legend"
    assert re.findall(r'<path fill="none" stroke="(#\w+)"', svg) == [blue]


def test_a_forest_says_its_numbers_and_wraps_a_long_label() -> None:
    rows = [{"label": "a " * 40, "value": 0.2599, "low": 0.25, "high": 0.35, "n": 1234}]
    svg = to_svg(forest(rows, title="0.3333"), "t", "d", name="a")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert {"0.260", "0.3333"} <= set(texts)
    label = [text for text in texts if text.startswith("a a") or "1,234" in text]
    assert len(label) > 1
    assert " ".join(label).endswith("(n = 1,234)")
    assert len(svg) < 4_000


def test_a_bar_has_the_full_colour_of_its_series_and_is_broken_where_people_are_few() -> None:
    rows = [{"label": name, "value": 1.0, "low": 0.0, "high": 2.0, "small": name == "few"} for name in ("many", "few")]
    svg = to_svg(forest(rows, title="t"), "t", "d", name="a")
    bars = re.findall(rf'<line [^>]*stroke="{PALETTE[0]}"[^>]*>', svg)
    assert ["stroke-dasharray" in bar for bar in bars] == [False, True]
    assert not any("opacity" in bar for bar in bars)


def test_an_axis_that_does_not_start_at_0_is_marked() -> None:
    def texts(**options: Any) -> str:
        return to_svg(
            forest([{"label": "a", "value": 0.7, "low": 0.6, "high": 0.8}], title="t", **options), "", "", name=""
        )

    assert "axis from 60%" in texts(percent=True)
    assert "axis from 60%" in texts(percent=True, zero=0.7, dashed="everybody")
    assert "axis from" not in texts(percent=True, domain=(0.0, 0.8))
    assert "axis from" not in texts(zero=1.0), "a ratio beside the line of no difference"


def test_a_curve_whose_axis_starts_above_0_is_marked_too() -> None:
    rows = [{"x": x, "y": 0.86 + x / 100, "series": "m"} for x in range(3)]
    panel = curve(rows, title="Accuracy", x="x", y="Share", intervals="none", percent_y=True)
    assert panel.above == "Share, axis from 86%"
    assert "Share, axis from 86%" in to_svg(panel, "t", "d", name="a")
    assert curve(rows, title="Accuracy", x="x", y="Share", domain=(0.0, 1.0)).above == "Share"


def test_the_line_of_equality_has_45_degrees_at_any_width() -> None:
    for width in (0, 330, 960):
        panel = curve(REGIONS, title="Both", x="F", y="M", points=True, domain=(0, 1), diagonal=True)
        wide, high, drawn = panel.drawn(width, 0, legend=True)
        left, bottom, right, top = map(float, re.findall(r'd="M([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)"', drawn)[0])
        assert right - left == pytest.approx(bottom - top, abs=1)
        assert right < wide
        assert bottom < high


def test_a_gap_names_both_of_its_groups() -> None:
    row = {"label": "Rate", "value": 0.1, "low": 0.0, "high": 0.2, "pair": "A<b> (1,200) − B (90)"}
    one = to_svg(forest([row], title="t"), "t", "d", name="a")
    assert "A&lt;b&gt;" in one
    rows = [{**row, "series": "first"}, {**row, "series": "second", "pair": "C (7) − D (8)"}]
    texts = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", to_svg(forest(rows, title="t"), "t", "d", name="a")))
    assert "first: A&lt;b&gt; (1,200) − B (90)" in texts
    assert "second: C (7) − D (8)" in texts


def test_ticks_are_few_and_hold_all_that_is_drawn() -> None:
    for low, high in ((0.0, 1.0), (-0.31, 0.02), (0.9981, 0.9999), (0.0, 3e-7), (-250.0, 1e6), (0.5, 0.5)):
        panel = forest([{"label": "a", "value": low, "low": low, "high": high}], title="")
        ticks = panel.ticks()
        assert 2 <= len(ticks) <= 5, (low, high, ticks)
        assert ticks[0] <= low <= high <= ticks[-1]


def test_panels_that_share_an_axis_have_the_same_ticks() -> None:
    panels = [forest([{"label": "a", "value": v, "low": 0.0, "high": v}], title="") for v in (0.02, 0.7)]
    first, second = share_axis(panels)
    assert first.ticks() == second.ticks()


def test_no_panel_stands_alone_in_the_last_row() -> None:
    for panels in range(2, 13):
        assert panels % columns_for(panels) != 1, panels


def test_a_figure_of_several_panels_has_one_legend() -> None:
    rows = [{"label": "a", "value": 1.0, "low": 0.0, "high": 2.0, "series": name, "n": 7} for name in ("one", "two")]
    panels = [forest(rows, title=title) for title in ("left", "right")]
    assert [name for name, *_ in legend_of(panels)] == ["one", "two"]
    svg = Picture("Both", tuple(panels), "What it shows.").to_svg(name="a")
    assert (svg.count(">one<"), svg.count(">left<"), svg.count(">What it shows.</text>")) == (1, 1, 1)
    assert svg.count("a (n = 7)") == 2


def test_a_picture_is_saved_as_it_is_drawn(tmp_path: Path) -> None:
    picture = Picture("Title", (some_chart(), some_chart(), some_chart()))
    assert picture.save(tmp_path / "a.svg").read_text().count("<svg") == 1
    root = ElementTree.fromstring(picture._repr_html_())  # noqa: S314
    assert float(root.attrib["width"]) > 3 * some_chart().drawn(0, 0, legend=False)[0]
    with pytest.raises(ConfigError, match=r"a picture is saved as \.svg or \.png; got '.*a\.pdf'"):
        picture.save(tmp_path / "a.pdf")


def test_a_png_is_black_on_white_at_twice_the_size(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    picture = Picture("Title", (some_chart(),))
    drawn = image.open(picture.save(tmp_path / "a.png")).convert("RGB")
    width, height, _ = picture.drawn(0, 0)
    assert drawn.size == (2 * width, 2 * height)
    assert drawn.getpixel((0, 0)) == (255, 255, 255)
    assert drawn.convert("L").getextrema()[0] < 80


def test_what_a_png_lacks_is_said_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "vl_convert", missing)
    with pytest.raises(MissingExtraError, match=r"PNG needs the package 'vl_convert'.*'evenhand\[png\]'"):
        Picture("Title", (some_chart(),)).to_png()


def test_an_axis_of_scores_up_to_ten_is_in_plain_numbers() -> None:
    rows = [{"x": x, "y": x / 10, "low": None, "high": None, "series": "F"} for x in range(1, 11)]
    drawn = to_svg(curve(rows, title="Calibration", x="Score", y="Share"), "Calibration", "", name="scores")
    assert ">10</text>" in drawn
    assert "1e+1" not in drawn


REGIONS = [
    {"series": "now", "x": 0.8, "y": 0.2, "left": 0.7, "right": 0.9, "low": 0.1, "high": 0.3},
    {"series": "new", "x": 0.6, "y": 0.4, "left": 0.5, "right": 0.7, "low": 0.2, "high": 0.6},
]


def test_a_box_reaches_from_limit_to_limit_and_dashed_lines_run_through_a_point() -> None:
    panel = curve(REGIONS, title="Both", x="Up", y="Gap", intervals="boxes", points=True, level=0.2, upright=0.8)
    width, _, drawn = panel.drawn(0, 0, legend=True)
    boxes = [list(map(float, box)) for box in re.findall(r'd="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H', drawn)]
    assert len(boxes) == 2
    (left, low, right, high), (first, *_) = boxes
    across, along = re.findall(r'stroke-dasharray="4 4" d="M([\d.]+) ([\d.]+)([Hv])', drawn)
    assert float(along[0]) == pytest.approx((left + right) / 2, abs=0.11)
    assert float(across[1]) == pytest.approx((low + high) / 2, abs=0.11)
    assert first < left < right <= width
    assert right - left == pytest.approx(left - first, abs=0.2), "0.5 to 0.7 is as wide as 0.7 to 0.9"


def test_an_ellipse_has_the_limits_as_its_radii() -> None:
    panel = curve(REGIONS, title="Both", x="F", y="M", intervals="ellipses", points=True, domain=(0, 1), diagonal=True)
    _, _, drawn = panel.drawn(0, 0, legend=True)
    rings = re.findall(r'<ellipse cx="[\d.]+" cy="[\d.]+" rx="([\d.]+)" ry="([\d.]+)"', drawn)
    assert len(rings) == 2
    assert float(rings[1][1]) == pytest.approx(2 * float(rings[0][1]), abs=0.2), "limits twice as far apart"


def test_a_point_without_limits_is_drawn_without_a_region() -> None:
    bare = {"series": "now", "x": 0.5, "y": 0.5, "left": None, "right": None, "low": None, "high": None}
    for intervals in ("boxes", "ellipses"):
        panel = curve([bare], title="One", x="F", y="M", intervals=intervals, points=True)
        _, _, drawn = panel.drawn(0, 0, legend=True)
        assert "<ellipse" not in drawn
        assert 'opacity=".1"' not in drawn


def test_dashes_lie_over_wide_pale_lines() -> None:
    rows = [{"x": x, "y": x, "series": name} for name in ("whole", "part") for x in (0.0, 1.0)]
    panel = curve(rows, title="Both", x="x", y="y", order=("whole", "part"), dashed=("part",), intervals="none")
    _, _, drawn = panel.drawn(0, 0, legend=False)
    assert drawn.index('stroke-width="4.5"') < drawn.index('stroke-dasharray="5 3"')
    assert drawn.count("stroke-dasharray") == 1


def test_points_of_a_series_may_stand_apart_and_many_are_small() -> None:
    def dots(number: int) -> str:
        rows = [{"x": x, "y": x % 7, "series": "a"} for x in range(number)]
        return curve(rows, title="Many", x="x", y="y", intervals="none", points=True, lines=False).drawn(
            0, 0, legend=False
        )[2]

    assert 'stroke-width="1.6"' not in dots(20)
    assert 'stroke-width="7"' in dots(20)
    assert 'stroke-width="3"' in dots(200)


def test_a_series_keeps_its_colour_and_shape_in_all_charts_drawn_together() -> None:
    def look(name: str, *series: str) -> str:
        return next(f"{colour} {shape}" for shown, colour, shape in looks(series) if shown == name)

    with same_looks(["xgboost", "logistic"], ["Asian", "Black", "White"], ["Men", "Women"]):
        assert look("logistic", "logistic") == look("logistic", "xgboost", "logistic")
        assert look("White", "Black", "White") == look("White", "Asian", "Black", "White")
        assert len({look(name, "new", "Black", "logistic") for name in ("new", "Black", "logistic")}) == 3
        assert look("new", "new") == look("new", "new", "logistic"), "also one that was not known before"
        assert len({look(str(name), *map(str, range(8))) for name in range(8)}) == 8
    assert look("logistic", "logistic") == look("first", "first"), "by position, in a chart of its own"


def intersections(*groups: str) -> Any:
    rows = [
        {"label": group, "value": (at + 1) / 10, "low": at / 10, "high": (at + 2) / 10, "n": 100 + at}
        for at, group in enumerate(groups)
    ]
    return forest(rows, title="Rate", percent=True, domain=(0.0, 1.0))


def texts_of(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_intersections_are_a_grid_with_value_and_people_in_each_cell() -> None:
    (grid,) = grids_of(intersections("A × F", "A × M", "<b> × F", "<b> × M", "C × F"), " × ")
    assert (grid.rows, grid.columns) == (("A", "<b>", "C"), ("F", "M"))
    svg = to_svg(grid, "t", "d", name="a", width=600)
    ElementTree.fromstring(svg)  # noqa: S314
    texts = texts_of(svg)
    assert {f"{10 * (at + 1)}.0% · n = {100 + at}" for at in range(5)} <= set(texts)
    assert texts.count("–") == 1, "nobody is C and M"
    assert "&lt;b&gt;" in texts
    bars = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)" [^>]*stroke-width="9"', svg)
    lengths = [float(right) - float(left) for left, right in bars]
    assert lengths == pytest.approx([lengths[0] * (at + 1) for at in range(5)], abs=0.2), "from 0, on one axis"


def test_the_longer_side_of_a_grid_goes_down_and_text_stays_within_its_cell() -> None:
    (grid,) = grids_of(intersections(*(f"{sex} × {age}" for sex in "FM" for age in "1234567")), " × ")
    assert (len(grid.rows), grid.columns) == (7, ("F", "M"))
    wide, high, drawn = grid.drawn(330, 0, legend=True)
    assert wide == 330
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"', drawn)]
    assert max(places) < 330
    assert max(map(float, re.findall(r'y="(\d+)">', drawn))) < high


def test_there_is_no_grid_where_it_would_be_wrong_or_too_wide() -> None:
    assert grids_of(intersections("A × F", "Black women", "A × M"), " × ") == [], "a name for readers has no parts"
    assert grids_of(intersections("A × B × F", "A × M"), " × ") == [], "a name with the sign itself"
    assert grids_of(intersections(*(f"{a} × {b}" for a in range(7) for b in range(7))), " × ") == []
    (grid,) = grids_of(intersections("A × old × F", "A × old × M", "A × new × F"), " × ")
    assert grid.rows == ("A × old", "A × new"), "of three names the first two are together"


def test_each_model_has_a_grid_in_its_colour() -> None:
    rows = [
        {"label": group, "value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "series": model}
        for group in ("A × F", "A × M", "B × F", "B × M")
        for model in ("one", "two")
    ]
    panel = forest(rows, title="Rate", percent=True, domain=(0.0, 1.0))
    with same_looks(["one", "two"]):
        first, second = (to_svg(grid, "t", "d", name="a") for grid in grids_of(panel, " × "))
    assert (PALETTE[0] in first, PALETTE[1] in first) == (True, False)
    assert (PALETTE[0] in second, PALETTE[1] in second) == (False, True)
    assert "Rate, two" in texts_of(second)


def slopes(*numbers: tuple[float, float]) -> Slopes:
    rows = [
        {"label": f"F{at} <b>", "series": "m", "old": old, "new": new, "clear": at == 0}
        for at, (old, new) in enumerate(numbers)
    ]
    return Slopes("Rate", tuple(rows), ("m",))


def test_a_slope_joins_before_and_now_on_one_axis_from_0() -> None:
    svg = to_svg(slopes((0.1, 0.3), (0.2, 0.2)), "t", "d", name="a")
    ElementTree.fromstring(svg)  # noqa: S314
    lines = re.findall(
        rf'stroke="{PALETTE[0]}" (stroke-width="[\d.]+"[^>]*) d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', svg
    )
    (clear, *first), (other, *second) = lines
    before, now = ([float(line[at]) for line in (first, second)] for at in (1, 3))
    assert before[0] - before[1] == pytest.approx(now[1] - now[0], abs=0.2), "0.1 apart before and now"
    assert "dasharray" not in clear
    assert "dasharray" in other, "this change may be chance"
    assert "0.300  F0 &lt;b&gt;" in svg


def test_texts_of_a_slope_never_lie_over_each_other() -> None:
    svg = to_svg(slopes(*((0.5, 0.5 + at / 1000) for at in range(12))), "t", "d", name="a")
    places = [
        (anchor, float(y)) for y, anchor in re.findall(r'<text x="[\d.]+" y="([\d.]+)"( text-anchor="end")?', svg)
    ]
    for side in {anchor for anchor, _ in places}:
        heights = sorted(y for anchor, y in places if anchor == side)
        assert min(below - above for above, below in pairwise(heights)) >= 13
    high = float(re.findall(r'viewBox="0 0 \d+ (\d+)"', svg)[0])
    assert max(y for _, y in places) <= high


def test_each_group_has_100_icons_and_its_numbers_in_words() -> None:
    groups = (OfHundred("<b>", 1234, 7, 25), OfHundred("B", 50, 0, 0), OfHundred("C", 9, 60, 40))
    svg = to_svg(Icons("Model", groups, "too many", "too few"), "t", "d", name="a", width=300)
    ElementTree.fromstring(svg)  # noqa: S314

    def drawn(path: str) -> int:
        return sum(int(float(long) // 13) + 1 for long in re.findall(r"h([\d.]+)", path))

    heads = re.findall(r'<path( [^>]*?)? ?stroke-width="(?:4.4|2)" d="([^"]+)"', svg)
    of_look = [drawn(path) for style, path in heads if "class" not in style][0:3]
    assert sum(of_look) == 300
    assert of_look[1:] == [7 + 60, 25 + 40], "solid, then outlines"
    texts = texts_of(svg)
    assert {"n = 1,234", "7 too many", "25 too few", "0 too many", "60 too many", "&lt;b&gt;"} <= set(texts)
    high = float(re.findall(r'viewBox="0 0 \d+ (\d+)"', svg)[0])
    assert max(float(y) for y in re.findall(r"M[\d.]+ (\d+)h", svg)) < high


def test_people_are_smaller_where_all_groups_then_stand_in_one_row() -> None:
    def heights(width: int, groups: int) -> int:
        panel = Icons("Model", tuple(OfHundred(str(at), 9, 1, 1) for at in range(groups)), "many", "few")
        return panel.drawn(width, 0, legend=False)[1]

    assert heights(650, 6) < heights(650, 4) < heights(340, 4)
    assert heights(960, 6) == heights(960, 1)


def test_icons_say_fewer_than_one_rather_than_none() -> None:
    """5 of 18 missed frauds among 2,378 people are 0.2 of 100: none is drawn, and the words say so."""
    group = OfHundred("North", 2_378, 1, 0, (27, 2_360), (5, 18))
    assert group.told("a", "b") == ("1 a (27 of 2,360)", "fewer than 1 b (5 of 18)")
    assert OfHundred("East", 100, 0, 0, (0, 90), (0, 10)).told("a", "b") == ("0 a (0 of 90)", "0 b (0 of 10)")
