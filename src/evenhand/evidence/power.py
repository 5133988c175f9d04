"""Power before data: what a plan, an `audit.toml`, could show with so many rows.

Each audit answers for itself (`power` of its descriptor). What a pilot tells of the others is in `evidence/pilot.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from evenhand.audits import REGISTRY
from evenhand.core.power import PowerLine, PowerPlan, PowerSettings
from evenhand.errors import ConfigError
from evenhand.evidence.pilot import pilot_lines
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.run.config import make_table, read_config
from evenhand.table.roles import TIMES, Roles


def plan_power(
    path: str | os.PathLike[str],
    rows: int | None = None,
    *,
    pilot: str | os.PathLike[str] | None = None,
    power: float | None = None,
    seed: int = 0,
    allow_code: bool = False,
) -> list[PowerLine]:
    """Return what every threshold and test of a plan could show.

    Parameters
    ----------
    path : an `audit.toml`.
    rows : rows of the data planned; by default those of `[power]`.
    pilot : a file with the columns of `[data]`, whose groups and rates are expected; by default `[power]` says them.
    power : the required power; by default that of `[power]`, 0.8.
    seed : the same seed gives the same answer.
    allow_code : whether the file may import the Python functions that it names.
    """
    name = os.fspath(path)
    config, arguments = read_config(name, allow_code=allow_code)
    settings = config.power or PowerSettings()
    if pilot is None and not settings.rates:
        raise ConfigError(
            "'{name}' says nothing of the rates to expect; add `rates` and `groups` to its [power], or give "
            "a file of like data with --pilot.",
            name=name,
        )
    planned = rows or settings.rows
    if planned is None:
        raise ConfigError(
            "the number of planned rows is missing; give --rows, or `rows` in [power] of '{name}'.", name=name
        )
    table = None if pilot is None else make_table({**arguments, "data": os.fspath(pilot)})
    if table is not None and table.roles.cluster is not None:
        raise ConfigError(
            "rows are drawn from the pilot one by one, and those of one cluster ({cluster!r}) belong together; keep "
            "one row of each cluster, and read the result as clusters.",
            cluster=table.roles.cluster,
        )
    roles = Roles.parse({"groups": arguments.get("groups", ())}, "[data]")
    plan = PowerPlan(
        specs=config.audits,
        settings=settings,
        rows=planned,
        power=power or settings.power,
        seed=seed,
        groupings=tuple(TIMES.join(columns) for columns in roles.groups),
        pilot=table,
    )
    return list(chain(_own_lines(plan), pilot_lines(plan)))


def _own_lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield what audits say themselves of the plan; one that can say nothing is named."""
    for name in plan.specs:
        power = REGISTRY[name].power
        if power is None:
            yield PowerLine(audit=name, metric="", how=shared("no_power", audit=name))
        elif power.lines is not None:
            yield from power.lines(plan)


def lines_as_dicts(lines: Sequence[PowerLine]) -> list[dict[str, Any]]:
    """Return the lines as JSON-safe records."""
    return [{name: _plain(getattr(line, name)) for name in line.__dataclass_fields__} for line in lines]


def _plain(value: object) -> object:
    return value.text if isinstance(value, Message) else value
