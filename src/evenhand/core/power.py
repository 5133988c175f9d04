"""Power before data exist: the plan, and the power of an audit's tests under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from evenhand.errors import brief
from evenhand.messages import Message
from evenhand.settings import Settings

if TYPE_CHECKING:
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table


class PowerSettings(Settings):
    """The `[power]` section: expectations before data exist, for `evenhand power`."""

    rows: int | None = Field(None, ge=10, le=1_000_000_000, description="Rows that are planned.")
    groups: dict[str, dict[str, float]] = Field(
        {}, description="Shares of the groups by grouping, as in `{ race = { White = 0.7, Black = 0.3 } }`."
    )
    rates: dict[str, float] = Field(
        {}, description="Expected values of rates, by metric, as in `{ selection_rate = 0.4, base_rate = 0.3 }`."
    )
    power: float = Field(0.8, gt=0, lt=1, description="The power required.")
    samples: int = Field(400, ge=50, le=100_000, description="Samples to simulate.")

    @field_validator("groups")
    @classmethod
    def _whole(cls, value: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for grouping, shares in value.items():
            if len(shares) < 2 or min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 0.01:
                raise ValueError(
                    f"the groups of {grouping!r} must be two or more, with shares that add up to 1; got {brief(shares)}"
                )
        return value

    @field_validator("rates")
    @classmethod
    def _possible(cls, value: dict[str, float]) -> dict[str, float]:
        for metric, rate in value.items():
            if not 0 < rate < 1:
                raise ValueError(f"the rate of {metric!r} must be between 0 and 1; got {rate:g}")
        return value


@dataclass(frozen=True, kw_only=True)
class PowerLine:
    """The power of one test or threshold of a plan.

    Parameters
    ----------
    audit, metric, model, grouping : the coordinates of the test.
    threshold : the limit; None for a test of no difference.
    kind : difference or ratio; None for other gaps.
    group, n : the group that differs, and its number of people that count.
    gap : the smallest true gap detected with the required power (for ratios, the largest ratio), or None.
    meets : the probability of showing that a threshold is met if there is no gap.
    chance, rows : the probability of detecting a planned improvement, and the rows needed for the required power.
    points : whether the gap is in percentage points.
    how : the method, or why there is no number.
    """

    audit: str
    metric: str
    how: Message
    model: str | None = None
    grouping: str | None = None
    threshold: Message | None = None
    kind: str | None = None
    group: str | None = None
    n: int | None = None
    gap: float | None = None
    meets: float | None = None
    chance: float | None = None
    rows: int | None = None
    points: bool = False


@dataclass(frozen=True, kw_only=True)
class PowerPlan:
    """A planned audit: an `audit.toml` with a number of rows, and a pilot or None.

    Parameters
    ----------
    specs : the settings of the audits by name.
    settings : the `[power]` section.
    rows, power, seed : the planned number of rows, the required power, and the seed of simulations.
    groupings : the names of the groupings of `[data]`, as in a report.
    pilot : data similar to the planned data, or None.
    """

    specs: Mapping[str, Spec]
    settings: PowerSettings
    rows: int
    power: float
    seed: int
    groupings: tuple[str, ...] = ()
    pilot: Table | None = None


@dataclass(frozen=True, kw_only=True)
class Power:
    """An audit's way to compute the power of a plan.

    Parameters
    ----------
    lines : the audit's own computation; None if a pilot is used.
    crossed : whether rows are crossed, such as critics with cases. Then larger tables cannot be drawn from a pilot,
        and the pilot's intervals are scaled by the square root of the number of rows.
    """

    lines: Callable[[PowerPlan], Iterable[PowerLine]] | None = None
    crossed: bool = False


DRAWN = Power()
"""Power from tables of the planned size that are drawn from a pilot and audited."""

SCALED = Power(crossed=True)
"""Power from the scaled intervals of a pilot."""
