"""Icon charts of 100 people per group, which show two kinds of wrong decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from textwrap import wrap

from evenhand.charts.look import LINE, Legend, head_of, letters, text_at

_ACROSS, _DOWN = 13, 15
"""From one person to the next."""
_BLOCK, _GAP = 10 * _ACROSS, 30
_SMALLER = 0.68


@dataclass(frozen=True)
class OfHundred:
    """A group scaled to 100 people: its name and size, and the numbers drawn as solid and as outlined icons.

    `solid_people` and `hollow_people` are the unscaled numbers: the affected people, and the people they are counted
    among.
    """

    group: str
    n: int
    solid: int
    hollow: int
    solid_people: tuple[int, int] = (0, 0)
    hollow_people: tuple[int, int] = (0, 0)

    def told(self, solid: str, hollow: str) -> tuple[str, str]:
        """Return both numbers of 100 as text, with the unscaled numbers of people.

        Examples
        --------
        >>> OfHundred("East", 380, 1, 0, (2, 378), (1, 2)).told("wrongly selected", "wrongly not selected")
        ('1 wrongly selected (2 of 378)', 'fewer than 1 wrongly not selected (1 of 2)')
        """
        return (
            _told(self.solid, self.solid_people, solid),
            _told(self.hollow, self.hollow_people, hollow),
        )


def _told(number: int, people: tuple[int, int], what: str) -> str:
    """Return a number of 100 as text with the unscaled numbers; "fewer than 1" if it was rounded down to 0."""
    rounded = "fewer than 1" if number == 0 and people[0] else f"{number}"
    return f"{rounded} {what}" + (f" ({people[0]:,} of {people[1]:,})" if people[1] else "")


@dataclass(frozen=True)
class Icons:
    """A panel of groups, each drawn as 100 people.

    Parameters
    ----------
    title : the panel's title.
    groups : the groups, in order.
    solid, hollow : the meaning of solid and of outlined icons; all other icons are pale.
    """

    title: str
    groups: tuple[OfHundred, ...]
    solid: str
    hollow: str

    @property
    def legend(self) -> Legend:
        """An empty legend, since each group states its numbers."""
        return []

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:  # noqa: ARG002 - people have a size of their own
        """Return the width, the height and the SVG content of the panel; see `Panel`."""
        panel = self if titles else replace(self, title="")
        wide = width or 2 * (_BLOCK + _GAP)
        top, head = head_of(panel.title, [], wide)
        scale = _scale(wide, len(panel.groups))
        step, block = scale * (_BLOCK + _GAP), scale * _BLOCK
        across = max(1, int((wide + step - block) / step))
        texts, people = [head], list[tuple[str, float, float, int]]()
        for start in range(0, len(panel.groups), across):
            row = panel.groups[start : start + across]
            lines = [list(panel._texts(group, step - 2)) for group in row]
            below = top + max(map(len, lines)) * LINE + 12
            for column, (group, of_group) in enumerate(zip(row, lines, strict=True)):
                texts += [_line(column * step, top, number, text) for number, text in enumerate(of_group)]
                people += _runs(column * step / scale, below / scale, group)
            top = below + scale * 10 * _DOWN + 10
        return wide, ceil(top), "".join([*texts, *_drawn(people, scale)])

    def _texts(self, group: OfHundred, width: float) -> Iterator[str]:
        """Yield the lines above a group: its name, its size, and its two numbers of 100."""
        for text in (
            group.group or " ",
            f"n = {group.n:,}",
            *group.told(self.solid, self.hollow),
        ):
            yield from wrap(text, letters(width)) or [""]


def _scale(width: int, groups: int) -> float:
    """Return the scale of the icons, smaller if all groups then fit into one row."""
    whole = groups * (_BLOCK + _GAP) - _GAP
    return _SMALLER if _SMALLER * whole <= width < whole else 1.0


def _line(left: float, top: float, number: int, text: str) -> str:
    bold = ' font-weight="600"' if number == 0 else ""
    return text_at(left, top + (number + 1) * LINE, text, f'fill="currentColor"{bold}')


def _runs(left: float, top: float, group: OfHundred) -> Iterator[tuple[str, float, float, int]]:
    """Yield runs of neighbouring equal icons in a row: first solid, then outlined, then pale icons.

    Each run consists of the style, the position of the first icon (x, y), and the number of icons.
    """
    looks = ["solid"] * group.solid + ["hollow"] * group.hollow
    looks += ["pale"] * (100 - len(looks))
    for row in range(10):
        column = 0
        for look, same in groupby(looks[10 * row : 10 * row + 10]):
            number = len(list(same))
            yield look, left + column * _ACROSS + 5, top + row * _DOWN, number
            column += number


def _drawn(runs: Sequence[tuple[str, float, float, int]], scale: float) -> Iterator[str]:
    """Yield all icons as SVG; an icon is a dot for the head and a dot for the shoulders.

    A run of icons is one dashed line whose dashes have length 0. An outlined icon is an icon with a smaller one on top
    in the background colour.
    """
    size = "" if scale == 1 else f' transform="scale({scale})"'
    yield f'<g{size} fill="none" stroke="currentColor" stroke-linecap="round" stroke-dasharray="0 {_ACROSS}">'
    for look, style, (head, shoulders) in _LAYERS:
        places = [(x, y, (number - 1) * _ACROSS + 4) for name, x, y, number in runs if name == look]
        for width, down in ((head, 0), (shoulders, 6)) if places else ():
            path = "".join(f"M{x:.4g} {y + down:.0f}h{long:g}" for x, y, long in places)
            yield f'<path{style} stroke-width="{width}" d="{path}"/>'
    yield "</g>"


_LAYERS = (
    ("pale", ' opacity=".22"', (4.4, 7)),
    ("solid", "", (4.4, 7)),
    ("hollow", "", (4.4, 7)),
    ("hollow", ' class="ground" stroke="#fff"', (2, 4.4)),
)
"""What is drawn, in order: the look, its style, and the widths of heads and shoulders."""
