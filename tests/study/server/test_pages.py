"""The chart of a pair as a reader, a screen reader and a hostile value meet it."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.study.server.pages import HEIGHT, WIDTH, Line, axis_ticks, pair_chart

YEARS = ("2019", "2020", "2021", "2022")
K, L = Line("K", (45_500, 56_700, 62_000, 60_800)), Line("L", (126_200, 154_600, 167_600, 132_800))
values = st.floats(-1e9, 1e9, allow_nan=False) | st.integers(0, 9).map(float)


def parse(first: Line = K, second: Line = L, times: tuple[str, ...] = YEARS, **more: object) -> ElementTree.Element:
    return ElementTree.fromstring(pair_chart(first, second, times, **({"title": "Income"} | more)))  # noqa: S314


def texts(drawn: ElementTree.Element, kind: str) -> list[str]:
    return [one.text or "" for one in drawn.iter("text") if kind in one.get("class", "").split()]


def test_every_value_and_every_time_can_be_read_off() -> None:
    drawn = parse(unit="$")
    assert texts(drawn, "time") == list(YEARS)
    assert [text for text in texts(drawn, "value") if text in {"$45,500", "$56,700", "$62,000", "$60,800"}] == [
        "$45,500",
        "$56,700",
        "$62,000",
        "$60,800",
    ]
    assert len(texts(drawn, "value")) == 8
    assert texts(drawn, "name") == ["K", "L"]
    assert texts(drawn, "tick") == ["$0", "$50,000", "$100,000", "$150,000", "$200,000"]


def test_points_lie_where_the_axis_says() -> None:
    drawn = parse()
    lines = {float(one.get("y1", "nan")) for one in drawn.iter("line")}
    ticks = [float(text.replace(",", "")) for text in texts(drawn, "tick")]
    bottom, top = max(lines), min(lines)
    path = next(one.get("d", "") for one in drawn.iter("path") if one.get("class") == "trace first")
    points = [tuple(map(float, point.split())) for point in path[1:].split(" L")]
    for (_, y), value in zip(points, K.values, strict=True):
        share = (value - ticks[0]) / (ticks[-1] - ticks[0])
        assert y == pytest.approx(bottom + share * (top - bottom), abs=0.06)
    steps = [b[0] - a[0] for a, b in pairwise(points)]
    assert max(steps) - min(steps) < 0.21


def test_uneven_times_lie_unevenly() -> None:
    drawn = parse(Line("K", (1, 2, 3)), Line("L", (3, 2, 1)), ("2019", "2020", "2023"), stamps=(2019.0, 2020.0, 2023.0))
    path = next(one.get("d", "") for one in drawn.iter("path") if one.get("class") == "trace first")
    x = [float(point.split()[0]) for point in path[1:].split(" L")]
    assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(3, abs=0.02)


def test_the_lines_differ_in_more_than_colour() -> None:
    drawn = parse()
    markers = {
        one.get("class"): re.sub(r"[\d. -]+", "", one.get("d", ""))
        for one in drawn.iter("path")
        if "marker" in one.get("class", "")
    }
    assert set(markers["marker first"]) == set("Maz")
    assert set(markers["marker second"]) == set("Mlz")


def test_those_who_do_not_see_it_get_a_title_and_every_value() -> None:
    drawn = parse(unit="$")
    assert drawn.get("role") == "img"
    labels = (drawn.get("aria-labelledby") or "").split()
    held = {one.get("id"): one.text for one in drawn.iter() if one.get("id")}
    assert held[labels[0]] == "Income"
    assert held[labels[1]] == (
        "K: 2019 $45,500, 2020 $56,700, 2021 $62,000, 2022 $60,800; "
        "L: 2019 $126,200, 2020 $154,600, 2021 $167,600, 2022 $132,800"
    )


def test_hostile_texts_stay_texts() -> None:
    bad = '"><script>alert(1)</script>\x00&'
    drawn = pair_chart(Line(bad, (1, 2)), Line("L", (2, 1)), (bad, "b"), title=bad, unit=bad)
    assert "<script" not in drawn
    assert "\x00" not in drawn
    root = ElementTree.fromstring(drawn)  # noqa: S314
    assert {one.tag for one in root.iter()} == {"svg", "title", "desc", "line", "text", "path"}
    assert not any("style" in one.attrib or any(name.startswith("on") for name in one.attrib) for one in root.iter())


def test_twelve_times_do_not_overlap() -> None:
    years = tuple(str(year) for year in range(2011, 2023))
    drawn = parse(Line("K", tuple(range(45_000, 57_000, 1_000))), Line("L", (99_999,) * 12), years, unit="$")
    x = [float(one.get("x", "nan")) for one in drawn.iter("text") if one.get("class") == "time"]
    assert all(b - a >= 6.9 * len("2022") for a, b in pairwise(x))
    assert texts(drawn, "time")[-1] == "2022"
    assert texts(drawn, "value") == ["$45,000", "$99,999", "$56,000", "$99,999"]
    counts = parse(Line("K", (1,) * 12), Line("L", (2,) * 12), years)
    assert len(texts(counts, "value")) == 24


def test_names_stand_apart_where_the_lines_end_together() -> None:
    drawn = parse(Line("K", (1, 5)), Line("L", (2, 5)), ("a", "b"))
    y = [float(one.get("y", "nan")) for one in drawn.iter("text") if "name" in one.get("class", "")]
    assert abs(y[0] - y[1]) >= 15


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n)] * 2)))
def test_all_points_and_labels_are_on_the_canvas(pair: tuple[list[float], list[float]]) -> None:
    times = tuple(str(2010 + at) for at in range(len(pair[0])))
    drawn = parse(Line("K", tuple(pair[0])), Line("L", tuple(pair[1])), times)
    for one in drawn.iter("text"):
        assert 0 <= float(one.get("x", "nan")) <= WIDTH
        assert 8 <= float(one.get("y", "nan")) <= HEIGHT
    for path in drawn.iter("path"):
        if "trace" in path.get("class", ""):
            for point in path.get("d", "")[1:].split(" L"):
                x, y = map(float, point.split())
                assert 0 <= x <= WIDTH
                assert 0 <= y <= HEIGHT


@settings(max_examples=200, deadline=None)
@given(st.lists(values, min_size=1, max_size=24))
def test_the_axis_holds_zero_and_all_values_in_few_round_steps(shown: list[float]) -> None:
    ticks = axis_ticks(*shown)
    assert 2 <= len(ticks) <= 7
    assert 0 in ticks
    span = ticks[-1] - ticks[0]
    assert ticks[0] <= min(shown) + 1e-6 * span
    assert ticks[-1] >= max(shown) - 1e-6 * span
    steps = [b - a for a, b in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps))
    lead = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-9)
    assert round(lead, 6) in (1, 2, 2.5, 5)
