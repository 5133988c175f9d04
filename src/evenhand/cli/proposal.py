"""Propose roles for the columns of a table: certain ones, open ones, and best guesses.

A role is certain if the user specified it, or if a column's name and values fit exactly one role. Otherwise it is open:
a bare 0/1 column can be an outcome, a decision, a group or none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product

from evenhand.table.counts import COUNT_NAMES
from evenhand.table.profile import ColumnProfile, Look, words

MOST_GROUPS = 20
_OLDEST = 120

# Words in column names, in several languages. A word of a role's first list makes a column certain if its values fit; a
# word of the second list only ranks it higher among the guesses.
_WORDS: dict[str, tuple[str, str]] = {
    "id": (
        "id uuid key household person applicant customer patient defendant case student client borrower nr pid "
        "personid caseid persnr",
        "number no num code",
    ),
    "group": (
        "sex gender female male woman fem race racial ethnicity ethnic black white nonwhite asian latino latina latinx "
        "hisp hispan hispanic indigenous minority caste age married marital widowed divorced disabled disability disab "
        "handicap veteran religion muslim nationality citizenship citizen foreign foreigner foreignborn immigrant "
        "migrant pregnant orientation transgender agegroup agegrp agecat ageband "
        "geschlecht weiblich maennlich mannlich alter herkunft staatsangehoerigkeit nationalitat behinderung "
        "verheiratet familienstand sexe femme homme origine nationalite marie sexo genero mujer hombre edad raza "
        "etnia nacionalidad discapacidad casado casada sesso genere donna uomo eta razza cittadinanza disabilita "
        "mulher homem idade raca cor geslacht vrouw leeftijd kon alder",
        "region country language native born single children kids parent student district county urban rural group",
    ),
    "outcome": (
        "outcome label target truth ytrue actual recid recidivism reoffend reoffended rearrest rearrested defaulted "
        "missed repaid readmitted relapsed",
        "y default died survived event result observed performed employed churned graduated success failed arrested "
        "convicted passed unemployed dropout",
    ),
    "decision": (
        "decision approved approve accepted admitted selected shortlisted hired granted denied rejected reject "
        "flagged offered invited yhat pred predicted prediction",
        "flag offer accept deny admit hire select promoted detained released audit",
    ),
    "score": (
        "risk prob probability proba propensity pred predicted prediction yhat decile score",
        "rating logit pct percent percentage",
    ),
    "number": (
        "salary salaries wage wages earnings compensation remuneration price rent gehalt lohn preis miete salaire "
        "loyer prix salario sueldo precio stipendio prezzo salaris loon",
        "income amount grade gpa premium bonus cost pay fee points days hours",
    ),
    "weight": ("pweight sampleweight surveyweight wgt", "weight weights wt"),
}
_TIMES = frozenset(
    ("year", "time", "wave", "period", "visit", "month", "quarter", "yr", "jahr", "annee", "ano", "jaar")
)
_YEAR_OF = re.compile(r"(.*?)[\W_]*((?:19|20)\d\d|[5-9]\d)")
_PERCENT = frozenset(["pct", "percent", "percentage"])
_AGES = frozenset(["age", "edad", "alter", "eta", "idade", "leeftijd", "alder"])


@dataclass
class Proposal:
    """The proposed roles of the columns of a table.

    Parameters
    ----------
    id, outcome, groups, scores, decisions, numbers, weight : the certain roles.
    count : the column of the number of people per row, if the user confirmed it.
    guesses : for each open role, its possible columns, the best first.
    open : the roles that the user must assign before running an audit.
    one_hot : families of 0/1 columns that form one grouping, by its name.
    panel : columns of one feature over time, earliest first, and their years.
    long : the person column and the time column, if a person has several rows.
    repeated : a column named like an id but with repeated values.
    favourable, positive, selected, threshold, range : the user's settings of outcome and predictions.
    verb, people, names : the verb for selecting, the noun for the people, and the display names that
        replace names of the data.
    drop_missing : whether the user wants rows without outcome or prediction dropped.
    """

    id: str | None = None
    outcome: str | None = None
    groups: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    weight: str | None = None
    count: str | None = None
    guesses: dict[str, list[str]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    one_hot: dict[str, list[str]] = field(default_factory=dict)
    panel: dict[str, int] = field(default_factory=dict)
    long: tuple[str, str] | None = None
    repeated: str | None = None
    favourable: str | None = None
    positive: str | None = None
    selected: str | None = None
    threshold: float | None = None
    range: tuple[float, float] | None = None
    verb: str | None = None
    people: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    drop_missing: bool = False

    @property
    def used(self) -> set[str]:
        """All columns with a role."""
        named = {*self.groups, *self.predictions, *self.panel, *(self.long or ())}
        return (named | {c for c in (self.id, self.outcome, self.weight, self.count) if c}) | {
            member for members in self.one_hot.values() for member in members
        }

    @property
    def predictions(self) -> list[str]:
        """The columns of scores, decisions and numbers."""
        return [*self.scores, *self.decisions, *self.numbers]

    def lacking(self, seen: Look) -> list[str]:
        """Return the outcome and prediction columns with missing values."""
        return [c for c in (self.outcome, *self.predictions) if c and seen.columns[c].missing]


def propose(seen: Look, given: Proposal | None = None) -> Proposal:
    """Return proposed roles for the columns, keeping the `given` ones.

    Examples
    --------
    >>> from evenhand.table.profile import look
    >>> found = propose(look({"female": [1, 0, 1, 0], "approved": [1, 1, 0, 1], "south": [0, 0, 1, 1]}))
    >>> found.groups, found.decisions, found.outcome
    (['female'], ['approved'], None)
    """
    roles = given or Proposal()
    _people(seen, roles, _unassigned(seen, roles))
    if roles.weight is None:
        roles.weight = next((c.name for c in _certain(_unassigned(seen, roles), "weight") if _is_weight(c)), None)
    roles.guesses["count"] = [c.name for c in _unassigned(seen, roles) if _may_count(c)]
    _groups(seen, roles, _unassigned(seen, roles))
    roles.panel = {} if roles.long else _panel(_unassigned(seen, roles))
    _outcome(roles, _unassigned(seen, roles))
    _predictions(roles, _unassigned(seen, roles))
    roles.guesses = {role: [n for n in names if n not in roles.used] for role, names in roles.guesses.items()}
    return roles


def _unassigned(seen: Look, roles: Proposal) -> list[ColumnProfile]:
    """Return the columns without a role and with more than one value."""
    used = roles.used
    return [c for c in seen.columns.values() if c.name not in used and c.distinct > 1]


# Who is in a row ------------------------------------------------------------------------------------------


def _people(seen: Look, roles: Proposal, free: Sequence[ColumnProfile]) -> None:
    """Assign the id, or the person and time columns if a person has several rows."""
    named = _certain(filter(_can_identify, free), "id")
    if roles.id is None:
        roles.id = next((c.name for c in named if c.unique), None)
    if roles.id is not None and seen.columns[roles.id].unique:
        return
    roles.long = _person_and_time(seen, free, [seen.columns[roles.id]] if roles.id else [*named, *free])
    if roles.long is None:
        roles.repeated = roles.id or next((c.name for c in named if c.missing == 0), None)


def _person_and_time(
    seen: Look, free: Sequence[ColumnProfile], persons: Sequence[ColumnProfile]
) -> tuple[str, str] | None:
    """Return the person and time columns if a person has several rows; otherwise None."""
    times = [c for c in free if _is_time(c, seen.rows)]
    for time, person in product(times, persons):
        if person not in times and _is_panel_of(person, time, seen):
            return person.name, time.name
    return None


def _can_identify(column: ColumnProfile) -> bool:
    return column.kind in ("whole", "text") and column.distinct > MOST_GROUPS


def _is_time(column: ColumnProfile, rows: int) -> bool:
    return column.is_number and 3 <= column.distinct <= rows / 2 and bool(_TIMES & set(words(column.name)))


def _is_panel_of(person: ColumnProfile, time: ColumnProfile, seen: Look) -> bool:
    """Return whether a column identifies persons with a row at most times, and at most one row per time."""
    rows = seen.rows
    if person.missing or not _can_identify(person):
        return False
    several = rows / 2 <= person.distinct * time.distinct <= 2 * rows and person.distinct < rows / 2
    return several and seen.unique_together(person.name, time.name)


# Groups ---------------------------------------------------------------------------------------------------


def _groups(seen: Look, roles: Proposal, free: Sequence[ColumnProfile]) -> None:
    if not roles.groups:
        roles.one_hot = _families(seen, free)
        members = set(chain.from_iterable(roles.one_hot.values()))
        named = [c for c in _certain(free, "group") if c.name not in members and can_group(c)]
        roles.groups = [*roles.one_hot, *_each_once(named)]
    if not roles.groups:
        roles.open.add("groups")
        able = [c for c in free if can_group(c)]
        text = [c for c in able if c.kind in ("text", "boolean")]
        roles.guesses["groups"] = list(dict.fromkeys(_names([*_possible(able, "group"), *text, *_two_valued(free)])))


def _each_once(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return the names, without a numeric column such as `age` if the table also has `age_group`."""
    bands = [c for c in columns if not cut_points(c)]
    return [c.name for c in columns if c in bands or not any(_is_banded_name(c, other) for other in bands)]


def _is_banded_name(number: ColumnProfile, bands: ColumnProfile) -> bool:
    """Return whether a column of bands is named after a numeric column."""
    return any(word.startswith(tuple(words(number.name))) for word in words(bands.name))


def _families(seen: Look, free: Sequence[ColumnProfile]) -> dict[str, list[str]]:
    """Return families of exclusive 0/1 columns with a common prefix, such as `race_black` and `race_white`."""
    families: dict[str, list[str]] = {}
    for column in free:
        family, mark, rest = column.name.rpartition("_")
        if mark and rest and column.two_valued and has_role_word(family, "group"):
            families.setdefault(family, []).append(column.name)
    return {
        family: members
        for family, members in families.items()
        if len(members) > 1 and family not in seen.columns and seen.exclusive(members)
    }


def can_group(column: ColumnProfile) -> bool:
    """Return whether the values of a column can define groups of people."""
    if column.distinct < 2 or column.kind in ("other", "date", "datetime") or column.unique:
        return False
    if _AGES & set(words(column.name)) and column.is_number:
        return column.low is not None and column.high is not None and column.low >= 0 and column.high <= _OLDEST
    return column.distinct <= MOST_GROUPS and (column.kind != "real" or column.two_valued)


def cut_points(column: ColumnProfile) -> list[int] | None:
    """Return the usual cut points for a column of ages with many values; otherwise None."""
    if not column.is_number or column.distinct <= MOST_GROUPS or column.low is None or column.high is None:
        return None
    return [cut for cut in (25, 45, 65) if column.low < cut <= column.high] or None


# Outcome and predictions ----------------------------------------------------------------------------------


def _outcome(roles: Proposal, free: Sequence[ColumnProfile]) -> None:
    if roles.outcome is not None:
        return
    binary = _two_valued(free)
    strong, weak = _names(_certain(binary, "outcome")), _names(_possible(binary, "outcome"))
    if len(strong) == 1 and not weak and not has_role_word(strong[0], "decision"):
        roles.outcome = strong[0]
    elif strong or weak:
        roles.open.add("outcome")
    roles.guesses["outcome"] = [*strong, *weak]


def _predictions(roles: Proposal, free: Sequence[ColumnProfile]) -> None:
    if roles.predictions:
        return
    binary = _two_valued(free)
    strong, weak = _names(_certain(binary, "decision")), _names(_possible(binary, "decision"))
    numbers = list(filter(has_many_numbers, free))
    if len(strong) == 1 and not has_role_word(strong[0], "outcome"):
        roles.decisions = strong
    roles.scores = _scores(_certain(numbers, "score"), beside=roles.decisions)
    if not roles.predictions:
        roles.open.add("predictions")
    elif len(strong) > 1:
        roles.open.add("decisions")
    texts = [c for c in _certain(free, "decision") if c.kind == "text" and c.distinct <= 5]
    roles.guesses["predictions"] = [*strong, *_names(texts), *_names(_strong_or_weak(numbers, "score")), *weak]
    amounts = [c for c in numbers if c.distinct > MOST_GROUPS]
    roles.guesses["numbers"] = _names([*_certain(amounts, "number"), *_possible(amounts, "number")])


def _scores(named: Sequence[ColumnProfile], beside: Sequence[str]) -> list[str]:
    """Return the columns that can only be scores; without such columns or decisions, the possible percent scores."""
    certain = _names(filter(_is_score, named))
    return certain if certain or beside else _names(filter(_is_percent_score, named))


def _is_score(column: ColumnProfile) -> bool:
    """Return whether a column named like a score can only be a score: from 0 to 1, or deciles."""
    if column.kind == "real":
        return in_unit_range(column)
    low, high = column.low, column.high
    deciles = column.kind == "whole" and "decile" in words(column.name)
    return deciles and low is not None and high is not None and low >= 0 and high <= 10


def _is_percent_score(column: ColumnProfile) -> bool:
    """Return whether a percent column is named like a model's score; a plain "score" may be an exam result."""
    return looks_like_percent(column) and bool(((_SETS["score"][0] | _PERCENT) - {"score"}) & {*words(column.name)})


def in_unit_range(column: ColumnProfile) -> bool:
    """Return whether all numbers lie between 0 and 1."""
    return column.low is not None and column.high is not None and column.low >= 0 and column.high <= 1


def looks_like_percent(column: ColumnProfile) -> bool:
    """Return whether numbers are nonnegative with a maximum above 10 and at most 100."""
    return has_many_numbers(column) and (column.low or 0) >= 0 and 10 < (column.high or 0) <= 100


def _is_weight(column: ColumnProfile) -> bool:
    return has_many_numbers(column) and (column.low or 0) >= 0


def _may_count(column: ColumnProfile) -> bool:
    """Return whether a column is named like a number of people and contains nonnegative whole numbers."""
    numbers = column.kind == "whole" and not column.missing and (column.low or 0) >= 0 and (column.high or 0) > 1
    return numbers and column.name.lower() in COUNT_NAMES


def has_many_numbers(column: ColumnProfile) -> bool:
    """Return whether a column contains more than two different numbers."""
    return column.is_number and column.distinct > 2


# One feature over time ------------------------------------------------------------------------------------


def _panel(free: Iterable[ColumnProfile]) -> dict[str, int]:
    """Return the columns of the first feature recorded in three or more years, in order, with their years."""
    stems: dict[str, dict[str, int]] = {}
    for column in free:
        match = _YEAR_OF.fullmatch(column.name)
        if match and match[1] and has_many_numbers(column):
            year = int(match[2])
            stems.setdefault(match[1], {})[column.name] = year if year > 100 else 1900 + year
    for years in stems.values():
        if len(years) >= 3 and len(set(years.values())) == len(years):
            return dict(sorted(years.items(), key=lambda item: item[1]))
    return {}


# Names ----------------------------------------------------------------------------------------------------


def has_role_word(name: str, role: str) -> bool:
    """Return whether a name contains a word that indicates a role."""
    parts = words(name)
    return bool({*parts, "".join(parts)} & _SETS[role][0])


def _certain(columns: Iterable[ColumnProfile], role: str) -> list[ColumnProfile]:
    return [c for c in columns if has_role_word(c.name, role)]


def _possible(columns: Iterable[ColumnProfile], role: str) -> list[ColumnProfile]:
    """Return the columns whose names weakly suggest a role."""
    return [c for c in _strong_or_weak(columns, role) if not has_role_word(c.name, role)]


def _strong_or_weak(columns: Iterable[ColumnProfile], role: str) -> list[ColumnProfile]:
    return [c for c in columns if has_role_word(c.name, role) or set(words(c.name)) & _SETS[role][1]]


def _two_valued(columns: Iterable[ColumnProfile]) -> list[ColumnProfile]:
    return [c for c in columns if c.two_valued]


def _names(columns: Iterable[ColumnProfile]) -> list[str]:
    return [c.name for c in columns]


_SETS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    role: (frozenset(strong.split()), frozenset(weak.split())) for role, (strong, weak) in _WORDS.items()
}
