"""Power analysis of a planned study by simulation."""

from __future__ import annotations

import os

from evenhand.core.power import PowerLine
from evenhand.errors import ConfigError
from evenhand.messages.shared import say
from evenhand.settings import read_toml
from evenhand.study.simulate import power as simulated_power
from evenhand.study.spec import read_study

_STUDIES = 200
"""The number of simulated studies in each step of the search."""


def is_study(path: str | os.PathLike[str]) -> bool:
    """Return whether a settings file is a `study.toml` rather than an `audit.toml`."""
    return "consent" in read_toml(os.fspath(path), "write one with: evenhand init DATA")


def plan_study(
    path: str | os.PathLike[str], people: int | None = None, *, power: float | None = None, seed: int = 0
) -> PowerLine:
    """Return the smallest deviation of the weight of trajectory from one half that a study would detect.

    Parameters
    ----------
    path : the `study.toml` of an effort study.
    people : planned number of people in one condition.
    power : the required power; by default 0.8.
    seed : the same seed gives the same answer.
    """
    spec, wanted = read_study(path), 0.8 if power is None else power
    if people is None:
        raise ConfigError("the number of planned people is missing; give --rows, the people in one condition.")
    if spec.kind != "effort":
        raise ConfigError(
            "'{name}' is a study of kind {kind!r}, whose bounds have no power of their own; plan its audit, "
            "an audit.toml with [disagreement], with a pilot.",
            name=path,
            kind=spec.kind,
        )

    def chance(weight: float) -> float:
        values = {"weight": weight}
        return simulated_power(people, values, sets=spec.sets_per_person, studies=_STUDIES, seed=seed).value

    below, above = 0.5, 1.0
    reached = chance(above) >= wanted
    for _ in range(6 if reached else 0):
        middle = (below + above) / 2
        below, above = (below, middle) if chance(middle) >= wanted else (middle, above)
    return PowerLine(
        audit="study",
        metric="weight of trajectory beyond 0.5",
        kind="difference",
        gap=above - 0.5 if reached else None,
        n=people,
        how=say("studies_simulated", studies=_STUDIES),
    )
