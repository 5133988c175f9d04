"""The analyst's choices: rates of inertia, and the declared grid of alternative choices.

`Choices` has the user's settings from `[effort.robustness]` in `audit.toml`. `Grid` is the resulting grid for one
audit: every choice with its options, which always include the audit's own option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import inf, prod
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from evenhand.errors import ConfigError, SettingError, require_name
from evenhand.settings import Settings
from evenhand.stats.effort import MEASURES, TrajectoryMeasure
from evenhand.stats.pairs import Norm

if TYPE_CHECKING:
    from evenhand.audits.effort.spec import EffortSpec

PUBLISHED_RATES: dict[str, dict[str, float]] = {
    "nces-2012": {"White": 13.0, "Asian": 14.0, "Pacific Islander": 25.0, "American Indian": 36.0, "Black": 39.0}
}
"""Published rates by name. NCES 2012: percentage of children in poverty by race (National Center for Education
Statistics), as the effort paper uses them; it gives no figure for Hispanic children."""

SHORTEST = 3  # time steps of a window, as of a trajectory
MOST_WINDOWS = 10  # windows tried by default
MOST_SPECIFICATIONS = 20_000
GIVEN, NONE = "given", "none"
MEASURE_TITLES: dict[TrajectoryMeasure, str] = {
    "acceleration": "acceleration",
    "slope": "slope",
    "theil_sen": "Theil-Sen slope",
    "last_minus_first": "last minus first",
}

ChoiceName = Literal["window", "measure", "inertia", "unit", "weight", "scale", "distance", "width", "min_count"]
Window = tuple[int, int]  # the numbers of its first and last time step

CHOICE_TITLES: dict[ChoiceName, str] = {
    "window": "Window",
    "measure": "Trajectory measure",
    "inertia": "Inertia",
    "unit": "Unit",
    "weight": "Weight of effort",
    "scale": "Scale",
    "distance": "Distance",
    "width": "Width of effort bins",
    "min_count": "Smallest group compared",
}
"""The display name of each choice."""

_BOUNDS: dict[str, tuple[Callable[[float], bool], str]] = {
    "weights": (lambda weight: 0 <= weight <= 1, "between 0 and 1"),
    "scales": (lambda multiple: 0 < multiple < inf, "above 0"),
    "units": (lambda multiple: 0 < multiple < inf, "above 0"),
    "widths": (lambda width: 0 < width <= 1, "above 0 and at most 1"),
    "min_counts": (lambda count: count >= 1, "at least 1"),
}


@dataclass(frozen=True)
class Choice:
    """One choice of an analyst.

    Parameters
    ----------
    name : the name of the choice's column in the records.
    options : the alternatives.
    labels : the display names of the options.
    chosen : the position of the audit's own option.
    """

    name: ChoiceName
    options: tuple[Any, ...]
    labels: tuple[str, ...]
    chosen: int

    @property
    def title(self) -> str:
        """The display name of the choice."""
        return CHOICE_TITLES[self.name]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All choices with their options; a specification takes one option of each choice that affects its metric."""

    window: Choice
    measure: Choice
    inertia: Choice
    unit: Choice
    weight: Choice
    scale: Choice
    distance: Choice
    width: Choice
    min_count: Choice

    @property
    def individual(self) -> tuple[Choice, ...]:
        """The choices that affect individual fairness."""
        return self.window, self.measure, self.inertia, self.unit, self.weight, self.scale, self.distance

    @property
    def group(self) -> tuple[Choice, ...]:
        """The choices that affect the parity of effort bins."""
        return self.window, self.measure, self.inertia, self.unit, self.width, self.min_count


class Choices(Settings):
    """Options for each choice. A list replaces the default list; the audit's own option is always added.

    Examples
    --------
    >>> Choices(weights=[0.5, 0.6577]).weights
    (0.5, 0.6577)
    >>> Choices.parse({"weights": [1.5]}, "[effort.robustness]")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `weights` in [effort.robustness]: each must be between 0 and 1; got 1.5.
    """

    windows: tuple[tuple[str, ...], ...] | None = Field(
        None,
        description="Time steps that enter: pairs of a first and a last step, or lists of consecutive ones; at least 3 "
        "steps each. By default the whole trajectory and each part of at least 3 steps in a row; where these are more "
        "than 10, the parts that leave out 1 to 4 steps at either end.",
    )
    measures: tuple[TrajectoryMeasure, ...] = Field(MEASURES, description="How a trajectory is summed up.")
    inertia: dict[str, dict[str, float] | str] = Field(
        {NONE: NONE}, description="Other inertias by name: rates by group, a column, a published table, or 'none'."
    )
    weights: tuple[float, ...] = Field((0.0, 0.25, 0.5, 0.75, 1.0), description="Weights of effort against aggregate.")
    scales: tuple[float, ...] = Field((0.5, 1.0, 2.0), description="Multiples of the audit's scale.")
    units: tuple[float, ...] = Field((1.0,), description="Multiples of the audit's unit.")
    distances: tuple[Norm, ...] = Field(
        (), description="Other distances than the audit's own: euclidean, manhattan, maximum."
    )
    widths: tuple[float, ...] = Field((0.05, 0.1, 0.2), description="Widths of the effort bins.")
    min_counts: tuple[int, ...] = Field((30,), description="Smallest groups that are compared in a bin.")

    @field_validator("weights", "scales", "units", "widths", "min_counts")
    @classmethod
    def _within_bounds(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        holds, rule = _BOUNDS[str(info.field_name)]
        for number in value:
            if not holds(number):
                raise SettingError("each must be {rule}; got {number:g}", rule=rule, number=number)
        return value

    @field_validator("windows")
    @classmethod
    def _ends(cls, value: tuple[tuple[str, ...], ...] | None) -> tuple[tuple[str, ...], ...] | None:
        for window in value or ():
            if len(window) < 2:
                raise SettingError("each must name a first and a last time step; got {window}", window=list(window))
        return value

    @field_validator("inertia")
    @classmethod
    def _free_names(cls, value: dict[str, dict[str, float] | str]) -> dict[str, dict[str, float] | str]:
        if GIVEN in value:
            raise SettingError("the name {name!r} is kept for the audit's own inertia; choose another", name=GIVEN)
        if value.get(NONE, NONE) != NONE:
            raise SettingError("the name {name!r} is kept for no inertia; choose another", name=NONE)
        for name, option in value.items():
            if isinstance(option, dict) and not option:
                raise SettingError("{name!r} has no rates", name=name)
        return value

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that contain alternative inertias."""
        texts = (option for option in self.inertia.values() if isinstance(option, str))
        return tuple(dict.fromkeys(text for text in texts if text not in (*PUBLISHED_RATES, NONE)))

    def grid(self, spec: EffortSpec, steps: Sequence[str]) -> Grid:
        """Return the options of every choice, for an audit with these time steps.

        Examples
        --------
        >>> from evenhand.audits.effort.spec import EffortSpec
        >>> years = ["x_2019", "x_2020", "x_2021", "x_2022"]
        >>> grid = Choices().grid(EffortSpec(trajectory=years, weights=0.6), years)
        >>> grid.window.labels
        ('2019 to 2022', '2019 to 2021', '2020 to 2022')
        >>> grid.weight.options, grid.weight.chosen
        ((0.0, 0.25, 0.5, 0.6, 0.75, 1.0), 3)
        """
        windows = _default_windows(len(steps)) if self.windows is None else [_window(w, steps) for w in self.windows]
        grid = Grid(
            window=_choice("window", (0, len(steps) - 1), windows, _window_labels(steps)),
            measure=_choice("measure", spec.measure, self.measures, MEASURE_TITLES.__getitem__),
            inertia=self._inertia(spec),
            unit=_numbers("unit", spec.unit, [multiple * spec.unit for multiple in self.units]),
            weight=_numbers("weight", spec.weights[0], [*spec.weights, *self.weights]),
            scale=_numbers("scale", spec.scale, [multiple * spec.scale for multiple in self.scales]),
            distance=_choice("distance", spec.distance.norm, self.distances, str),
            width=_numbers("width", spec.width, self.widths),
            min_count=_numbers("min_count", spec.min_count, self.min_counts),
        )
        size = sum(prod(len(choice.options) for choice in choices) for choices in (grid.individual, grid.group))
        if size > MOST_SPECIFICATIONS:
            raise ConfigError(
                "`robustness` declares {size:,} specifications; at most {most:,} are tried: leave out some options.",
                size=size,
                most=MOST_SPECIFICATIONS,
            )
        return grid

    def _inertia(self, spec: EffortSpec) -> Choice:
        """Return the choice of inertia; the audit's own option is 'given', or 'none' without inertia."""
        others = [NONE if option == NONE else name for name, option in self.inertia.items()]
        return _choice("inertia", NONE if spec.inertia is None else GIVEN, others, str)


def published_rates(name: str) -> dict[str, float]:
    """Return a published table of rates, divided by its largest rate.

    Examples
    --------
    >>> round(published_rates("nces-2012")["White"], 4)
    0.3333
    """
    require_name(name, PUBLISHED_RATES, "`inertia` got {name!r}; {hint}")
    return scaled_rates(PUBLISHED_RATES[name])


def scaled_rates(rates: Mapping[str, float]) -> dict[str, float]:
    """Divide rates by the largest rate, so that inertia is at most 1."""
    if not rates:
        raise ConfigError("`inertia` has no rates; give one for every group, or leave it out.")
    for group, rate in rates.items():
        if not 0 < rate < inf:
            raise ConfigError(
                "`inertia` of the group {group!r} must be above 0 and finite; got {rate:g}.", group=group, rate=rate
            )
    largest = max(rates.values())
    return {group: rate / largest for group, rate in rates.items()}


def as_choices(value: object) -> object:
    """Convert true to the default choices and false to None, for a setting that takes a switch or a table.

    Examples
    --------
    >>> as_choices(True) == Choices(), as_choices(False)
    (True, None)
    """
    return Choices() if value is True else None if value is False else value


def common_start(names: Sequence[str]) -> str:
    """Return the common prefix of all names.

    Examples
    --------
    >>> common_start(["income_2019", "income_2020"])
    'income_20'
    """
    return "".join(letters[0] for letters in takewhile(lambda x: len(set(x)) == 1, zip(*names, strict=False)))


def _choice(name: ChoiceName, chosen: object, others: Iterable[Any], label: Callable[[Any], str]) -> Choice:
    options = tuple(dict.fromkeys([chosen, *others]))
    return Choice(name, options, tuple(label(option) for option in options), 0)


def _numbers(name: ChoiceName, chosen: float, others: Iterable[float]) -> Choice:
    options = tuple(sorted({chosen, *others}))
    return Choice(name, options, tuple(f"{option:,.6g}" for option in options), options.index(chosen))


def _default_windows(steps: int) -> list[Window]:
    """Return all windows of at least 3 consecutive steps, longest first.

    For a long trajectory, return only windows that include its first or last step.
    """
    parts = [(first, first + size - 1) for size in range(steps, SHORTEST - 1, -1) for first in range(steps - size + 1)]
    if len(parts) <= MOST_WINDOWS:
        return parts
    most = min((MOST_WINDOWS - 1) // 2, steps - SHORTEST)
    ends = [(part, steps - 1 - other) for cut in range(1, most + 1) for part, other in ((0, cut), (cut, 0))]
    return [(0, steps - 1), *ends]


def _window(columns: Sequence[str], steps: Sequence[str]) -> Window:
    """Return the positions of a window's first and last step.

    A pair names the two ends; a longer list names every step.
    """
    for column in columns:
        require_name(column, steps, "`windows` names {name!r}, which is no time step; {hint}")
    positions = [steps.index(column) for column in columns]
    first, last = positions[0], positions[-1]
    if last - first + 1 < SHORTEST:
        raise ConfigError(
            "each of `windows` needs at least {least} time steps, earliest first; {first!r} to {last!r} has {steps}.",
            least=SHORTEST,
            first=columns[0],
            last=columns[-1],
            steps=max(last - first + 1, 0),
        )
    if len(columns) > 2 and positions != list(range(first, last + 1)):
        raise ConfigError(
            "each of `windows` must be consecutive time steps, earliest first; got {columns}: name the "
            "first and the last.",
            columns=list(columns),
        )
    return first, last


def _window_labels(steps: Sequence[str]) -> Callable[[Window], str]:
    """Return a function from a window to its name, without the time steps' common prefix up to a separator."""
    shared = len(common_start(steps))
    while shared and (steps[0][shared - 1].isalnum() or min(len(step) for step in steps) <= shared):
        shared -= 1
    return lambda window: f"{steps[window[0]][shared:]} to {steps[window[1]][shared:]}"
