"""The design of a running study: its settings with the loaded sets or cases, and each person's plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from math import gcd
from typing import Any, Literal

import numpy as np

from evenhand.errors import ConfigError
from evenhand.study.schema import Kind, as_text, read_columns
from evenhand.study.sets import Instrument, SubjectSet
from evenhand.study.spec import StudySpec

SUBJECTS = ("A", "B", "C", "D")
LONGEST_KEY = 200
"""The maximum length of a case's id, which is a key in the database."""
_UNSEEN = ("analysis", "payment", "recruitment", "interface", "contact", "consent", "debrief", "rationales")
"""Sections that may change while a study runs, because they do not affect the questions."""
StepKind = Literal["instructions", "practice", "pair", "case", "check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a participant's plan, shown as one page.

    Parameters
    ----------
    key : the key of the stored answer; unique within a person, and stable across restarts.
    kind : the kind of page.
    item : the set (effort) or the case (disagreement).
    subject : the person of the set who is compared with K: A, B, C or D.
    position : position of the item in the person's order, from 1.
    check : number of the attention check, from 1.
    """

    key: str
    kind: StepKind
    item: str | None = None
    subject: str | None = None
    position: int | None = None
    check: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All pages of one person in order, derived from the study, the condition and the place; never stored."""

    condition: str
    place: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """A study with its sets or cases.

    Parameters
    ----------
    spec : the settings.
    instruments : the sets of each condition (effort).
    critics : the cases of each critic, in order (disagreement).
    cases : the displayed columns of each case and its decision, by id (disagreement).
    fingerprint : SHA-256 of everything that determines the questions.
    parts : a short hash of each setting and file, to identify changes.
    plan : returns the plan of a place in a condition; the same on every call and after every restart.
    """

    spec: StudySpec
    instruments: Mapping[str, Instrument]
    critics: tuple[tuple[str, ...], ...]
    cases: Mapping[str, Mapping[str, str | None]]
    fingerprint: str
    parts: Mapping[str, str]
    plan: Callable[[str, int], Plan] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", lru_cache(maxsize=4_096)(self._plan))

    @property
    def name(self) -> str:
        """The study's short name."""
        return self.spec.name

    @property
    def kind(self) -> Kind:
        """The kind of study: 'effort' or 'disagreement'."""
        return self.spec.kind

    @property
    def seed(self) -> int:
        """The seed of all random choices."""
        return self.spec.seed

    @property
    def conditions(self) -> dict[str, float]:
        """The conditions with their relative shares of people; one unnamed condition if none are named."""
        return {name: condition.share for name, condition in self.spec.conditions.items()} or {"": 1.0}

    @property
    def places(self) -> int | None:
        """The maximum number of people per condition; None for no limit."""
        return len(self.critics) if self.kind == "disagreement" else None

    def _plan(self, condition: str, place: int) -> Plan:
        steps: list[Step] = []
        if self.spec.words(self.spec.instructions).strip():
            steps.append(Step(key="instructions", kind="instructions"))
        if self.kind == "disagreement":
            cases = enumerate(self.critics[place], 1)
            items = [Step(key=f"case:{case}", kind="case", item=case, position=position) for position, case in cases]
        else:
            items = list(self._pairs(condition, place))
        if self.spec.practice and (self.kind == "effort" or self.practice_case(place) is not None):
            steps.append(Step(key="practice", kind="practice"))
        return Plan(condition, place, (*steps, *self._with_checks(items)))

    def _pairs(self, condition: str, place: int) -> Iterator[Step]:
        """Yield the pairs of the person's sets, with sets and pairs in a person-specific random order."""
        number = list(self.spec.conditions).index(condition)
        rng = np.random.default_rng([self.seed, number, place])
        names = [item.name for item in self.instruments[condition].sets]
        seen = rng.permutation(sets_of_place(len(names), self.spec.sets_per_person, place, [self.seed, number]))
        for position, item in enumerate((names[index] for index in seen), 1):
            for role in rng.permutation(len(SUBJECTS)):
                subject = SUBJECTS[role]
                yield Step(key=f"pair:{item}/{subject}", kind="pair", item=item, subject=subject, position=position)

    def _with_checks(self, items: list[Step]) -> Iterator[Step]:
        """Yield the items with the attention checks inserted after their items; late checks come last."""
        last = items[-1].position or 0
        due = [(min(check.after, last), number) for number, check in enumerate(self.spec.attention, 1)]
        yield from (_check(number) for after, number in due if after == 0)
        for step, following in zip_longest(items, items[1:]):
            yield step
            if following is None or following.position != step.position:
                yield from (_check(number) for after, number in due if after == step.position)

    def practice_case(self, place: int) -> str | None:
        """Return a practice case that the critic does not see later; None if there is none."""
        seen = set(self.critics[place])
        return next((case for case in self.cases if case not in seen), None)

    def set_of(self, condition: str, item: str) -> SubjectSet:
        """Return a set of a condition by name."""
        return next(shown for shown in self.instruments[condition].sets if shown.name == item)


def load_design(spec: StudySpec) -> Design:
    """Read and check the sets or cases of a study, and return its design."""
    instruments = spec.instruments()
    critics, cases = _feedback_cases(spec)
    unseen = dict.fromkeys(_UNSEEN, True) | {"disagreement": {"stakeholder"}}
    seen: dict[str, Any] = spec.model_dump(mode="json", exclude=unseen)
    parts = {**_settings_of(seen), "the file of the cases": cases}
    sets = {name: instrument.to_dict() for name, instrument in instruments.items()}
    parts |= {f"the sets of conditions.{name}": shown for name, shown in sets.items()}
    seen |= {"instruments": sets, "critics": critics, "cases": cases}
    short = {name: _hash(part)[:12] for name, part in parts.items()}
    return Design(
        spec=spec, instruments=instruments, critics=critics, cases=cases, fingerprint=_hash(seen), parts=short
    )


def _settings_of(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by name, with the settings of sections as in `questions.overall`."""
    settings: dict[str, Any] = {}
    for name, value in seen.items():
        section = value.items() if name in ("conditions", "disagreement", "questions") and value else ()
        settings |= {f"{name}.{key}": setting for key, setting in section} or {name: value}
    return settings


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def sets_of_place(pool: int, wanted: int, place: int, seed: Sequence[int]) -> list[int]:
    """Return the sets that the person at a place sees, so that all sets of the pool are shown equally often.

    Places come in blocks of `pool`. Within a block, person j sees the `wanted` sets that follow the start
    (j wanted + floor(j gcd / pool)) modulo `pool` in a random order of the pool; the starts of a block are all
    different, so each set is seen by exactly `wanted` people of the block.

    Examples
    --------
    >>> seen = [sets_of_place(6, 4, place, [0]) for place in range(6)]
    >>> [sum(number in sets for sets in seen) for number in range(6)]
    [4, 4, 4, 4, 4, 4]
    """
    block, person = divmod(place, pool)
    order = np.random.default_rng([*seed, block, pool]).permutation(pool)
    start = person * wanted + person * gcd(wanted, pool) // pool
    return [int(order[(start + step) % pool]) for step in range(wanted)]


def _check(number: int) -> Step:
    return Step(key=f"check:{number}", kind="check", check=number)


def _feedback_cases(spec: StudySpec) -> tuple[tuple[tuple[str, ...], ...], dict[str, dict[str, str | None]]]:
    """Return the cases of each critic, and the displayed contents of every case."""
    if spec.disagreement is None:
        return (), {}
    dealt, asked = spec.assignment(), spec.disagreement
    columns, _ = read_columns(spec.folder / asked.cases)
    wanted = (*asked.shown, asked.decision)
    texts = {name: as_text(columns[name]) for name in (asked.id, *wanted)}
    cases = {
        str(texts[asked.id][row]): {name: texts[name][row] for name in wanted} for row in range(len(texts[asked.id]))
    }
    endless = next((case for case in cases if len(case) > LONGEST_KEY), None)
    if endless is not None:
        raise ConfigError(
            "an id in column {id!r} of the cases has {number:,} characters, it begins {endless!r}; give "
            "that case an id of at most {most}.",
            id=asked.id,
            number=len(endless),
            endless=endless[:20],
            most=LONGEST_KEY,
        )
    if not dealt.critics:
        raise ConfigError("no critic gets a case; make `per_critic` in [disagreement.assignment] smaller.")
    return dealt.critics, cases
