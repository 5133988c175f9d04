"""The instrument of an effort study: sets of five people, the quality of each set, and their settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from evenhand.errors import DataError, SettingError, count
from evenhand.messages import Message
from evenhand.settings import Settings, read_json
from evenhand.stats.effort import TrajectoryMeasure
from evenhand.study.schema import save_text
from evenhand.table.frames import build_frame


class SetSettings(Settings):
    """Settings for choosing sets; limits are in standard deviations of the table, comparable over features.

    Examples
    --------
    >>> SetSettings(sets=6).similar_trajectory
    0.25
    """

    sets: int = Field(3, ge=1, description="How many sets to make.")
    measure: TrajectoryMeasure = Field("slope", description="How a trajectory is summarised.")
    similar_trajectory: float = Field(0.25, gt=0, description="Trajectories nearer than this are similar.")
    different_trajectory: float = Field(1.0, gt=0, description="Trajectories farther apart than this are different.")
    similar_aggregate: float = Field(0.25, gt=0, description="Totals nearer than this are similar.")
    different_aggregate: float = Field(1.0, gt=0, description="Totals farther apart than this are different.")
    opposite: bool = Field(True, description="Whether different trajectories must also run in opposite directions.")
    perturb: float = Field(0.05, gt=0, le=0.5, description="By which share A's first time step differs from K's.")
    step: float = Field(1.0, gt=0, description="Values come in multiples of this: $100, 1 arrest.")
    draws: int = Field(20, ge=1, le=1_000, description="Draws of B, C and D for each K; the best crossed is kept.")
    times: tuple[float, ...] | None = Field(None, description="Time stamps of the columns; by default 0, 1, 2 ...")
    seed: int = Field(0, ge=0, description="The same seed gives the same sets.")

    @model_validator(mode="after")
    def _apart(self) -> Self:
        for what in ("trajectory", "aggregate"):
            similar, different = getattr(self, f"similar_{what}"), getattr(self, f"different_{what}")
            if similar >= different:
                raise SettingError(
                    "`similar_{what}` must be below `different_{what}`; got {similar:g} and {different:g}",
                    what=what,
                    similar=similar,
                    different=different,
                )
        return self


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One of the five people of a set: role, id in the table, group, values over time, and the score shown for K.

    `trajectory` and `aggregate` are the measure and the total in standard deviations of the table.
    """

    role: str
    id: str
    group: str | None
    values: tuple[float, ...]
    perturbed: bool
    trajectory: float
    aggregate: float
    score: float | None


@dataclass(frozen=True, kw_only=True)
class SetQuality:
    """The separation of the two distances in a set, in standard deviations of the table.

    Parameters
    ----------
    similar_trajectory, different_trajectory : largest trajectory distance from K that should be small, and
        smallest that should be large.
    similar_aggregate, different_aggregate : the corresponding distances of totals.
    margin : smallest distance of the eight from their limits, as a share of the limit.
    crossing : correlation of the two distances over the four pairs; 0 is best, because it separates their effects.
    """

    similar_trajectory: float
    different_trajectory: float
    similar_aggregate: float
    different_aggregate: float
    margin: float
    crossing: float | None


@dataclass(frozen=True)
class SubjectSet:
    """A set of five people, K first."""

    name: str
    subjects: tuple[Subject, ...]
    quality: SetQuality


@dataclass(frozen=True, repr=False, kw_only=True)
class Instrument:
    """The sets of a study with the settings that produced them.

    Parameters
    ----------
    sets : the sets.
    settings : the limits and the seed.
    trajectory : the columns of the values.
    unit_trajectory, unit_aggregate : the standard deviations that are the units of distances.
    notes : remarks on people left out.
    """

    sets: tuple[SubjectSet, ...]
    settings: SetSettings
    trajectory: tuple[str, ...]
    unit_trajectory: float
    unit_aggregate: float
    notes: tuple[Message, ...]

    @property
    def balance(self) -> dict[str, int]:
        """The number of real people of each group in the sets."""
        groups = [s.group for one in self.sets for s in one.subjects if s.group is not None and not s.perturbed]
        return {group: groups.count(group) for group in sorted(set(groups))}

    def to_dict(self) -> dict[str, Any]:
        """Return the contents as plain values for JSON."""
        return {
            "settings": self.settings.model_dump(mode="json"),
            "trajectory": list(self.trajectory),
            "unit_trajectory": self.unit_trajectory,
            "unit_aggregate": self.unit_aggregate,
            "notes": [note.to_dict() for note in self.notes],
            "sets": [asdict(one) for one in self.sets],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Instrument:
        """Return the instrument from the output of `to_dict`."""
        try:
            sets = tuple(map(_subject_set, values["sets"]))
            settings = SetSettings.parse(values["settings"], "the instrument")
            return cls(
                sets=sets,
                settings=settings,
                trajectory=tuple(values["trajectory"]),
                unit_trajectory=float(values["unit_trajectory"]),
                unit_aggregate=float(values["unit_aggregate"]),
                notes=tuple(map(Message.from_dict, values["notes"])),
            )
        except (KeyError, TypeError) as error:
            raise DataError(
                "this is no instrument that design_sets() made: {error} is missing or wrong.", error=error
            ) from None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the instrument to a JSON file."""
        return save_text(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a row per subject: the set, the role, the values and the set's quality."""
        rows = [(one, subject) for one in self.sets for subject in one.subjects]
        columns: dict[str, list[Any]] = {"set": [one.name for one, _ in rows]}
        for name in ("role", "id", "group", "perturbed", "score", "trajectory", "aggregate"):
            columns[name] = [getattr(subject, name) for _, subject in rows]
        for position, column in enumerate(self.trajectory):
            columns[column] = [subject.values[position] for _, subject in rows]
        columns["margin"] = [one.quality.margin for one, _ in rows]
        columns["crossing"] = [one.quality.crossing for one, _ in rows]
        return build_frame(columns, backend)

    def __repr__(self) -> str:
        return f"<Instrument: {count(len(self.sets), 'set')} of five over {', '.join(self.trajectory)}>"


def _subject_set(values: Mapping[str, Any]) -> SubjectSet:
    subjects = (Subject(**{**subject, "values": tuple(subject["values"])}) for subject in values["subjects"])
    return SubjectSet(values["name"], tuple(subjects), SetQuality(**values["quality"]))


def load_instrument(path: str | os.PathLike[str]) -> Instrument:
    """Read an instrument from a JSON file written by `Instrument.save`."""
    return Instrument.from_dict(read_json(path, "an instrument of design_sets()", DataError))
