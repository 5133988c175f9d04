"""Write the commented audit.toml of `evenhand init`, with blanks for open settings.

A blank is an empty text. `evenhand audit` rejects it and names its setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from evenhand.audits import REGISTRY
from evenhand.cli.proposal import Proposal, cut_points, in_unit_range, looks_like_percent
from evenhand.core.capabilities import SeenFile, quoted, toml_list
from evenhand.table.files import FileOptions
from evenhand.table.profile import ColumnProfile, Look

_GUESSES = 6
_SIDES_OF_DECISIONS = '"selected" (a loan) or "not_selected" (a risk flag)'
_CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f]")
"""Characters not allowed in a TOML comment; in quoted names they are already escaped."""

_FURTHER_SETTINGS = """\
# Thresholds are yours. With --check, a broken one makes the command fail.
# [[thresholds]]
# metric = "selection_rate"
# min = 0.8    # smallest ratio between two groups; or max = 0.1 for the largest difference
"""

_REPORT = """\

# [report]
# title = "Fairness audit"
# system = "..."
# auditor = "..."
# names = { age_group = "age", "Black × Female" = "Black women" }    # names for readers; data keep their own
"""


def audit_toml(source: str, options: FileOptions, roles: Proposal, seen: Look) -> str:
    """Return the text of an audit.toml for the proposed roles."""
    lines = _Writer(source, options, roles, seen).lines()
    return "\n".join(_CONTROL.sub("?", line) for line in lines) + "\n"


def seen_file(source: str, roles: Proposal, seen: Look) -> SeenFile:
    """Return the description of the file from which audits propose their sections."""
    person = roles.long[0] if roles.long else ""
    numbers = [c.name for c in seen.columns.values() if c.is_number and c.distinct > 20 and c.name != person]
    numbers.sort(key=roles.used.__contains__)  # columns without a role come first
    return SeenFile(source=source, long=roles.long, panel=roles.panel, numbers=numbers)


class _Writer:
    """Writes the audit.toml, section by section."""

    def __init__(self, source: str, options: FileOptions, roles: Proposal, seen: Look) -> None:
        self.source, self.options, self.roles, self.seen = source, options, roles, seen

    def lines(self) -> Iterator[str]:
        yield "# Written by evenhand init. Check every role: only you know what the columns mean."
        yield "# What is open is blank, with the best guesses beside it. Then: evenhand audit FILE."
        yield ""
        yield "[data]"
        yield from self._file()
        yield from self._person_and_outcome()
        yield from self._groups()
        yield from self._rest()
        yield ""
        yield from self._predictions()
        file = seen_file(self.source, self.roles, self.seen)
        proposing = [audit.propose for audit in REGISTRY.values() if audit.propose is not None]
        yield from chain.from_iterable(audit.section(file) for audit in proposing)
        yield from _FURTHER_SETTINGS.splitlines()
        yield from self._report()
        yield from chain.from_iterable(audit.offer(file) for audit in proposing)
        unused = [name for name in self.seen.columns if name not in self.roles.used]
        if unused:
            yield ""
            yield "# Columns without a role:"
            yield from _wrapped(unused)

    def _report(self) -> Iterator[str]:
        """Yield the report section, with the given names for readers or with an example."""
        if not self.roles.names:
            yield from _REPORT.splitlines()
            return
        named = ", ".join(f"{quoted(name)} = {quoted(shown)}" for name, shown in self.roles.names.items())
        yield from ("", "[report]", f"names = {{ {named} }}    # names for readers; data keep their own")
        yield from ('# title = "Fairness audit"', '# system = "..."', '# auditor = "..."')

    def _file(self) -> Iterator[str]:
        if self.roles.long:
            person, time = self.roles.long
            yield f'source = ""    # open: a table with one row a person; {self.source} has one a {time}'
            yield "# To compare its rows themselves: name it here, remove `id` and [effort.history], and write"
            yield f"# cluster = {quoted(person)}    # rows of one {person} belong together"
        else:
            yield f"source = {quoted(self.source)}    # a file or a glob, seen from this file's folder"
        if self.options.delimiter:
            yield f"delimiter = {quoted(self.options.delimiter)}"
        if self.options.decimal != ".":
            yield f"decimal = {quoted(self.options.decimal)}    # decimal commas"
        if self.options.encoding:
            yield f"encoding = {quoted(self.options.encoding)}"
        if self.options.missing_values != ("",):
            yield f"missing_values = {toml_list(self.options.missing_values)}    # these words are among numbers"

    def _person_and_outcome(self) -> Iterator[str]:
        roles = self.roles
        person = roles.long[0] if roles.long else roles.id
        if roles.repeated:
            many = f"{self.seen.columns[roles.repeated].distinct:,} values in {self.seen.rows:,} rows"
            yield f"# {roles.repeated} repeats ({many}): it cannot be the `id` of a row."
            yield f"# cluster = {quoted(roles.repeated)}    # if rows of one {roles.repeated} belong together"
        elif person:
            yield f"id = {quoted(person)}    # identifies a person; must not repeat"
        guesses = self._listed("outcome")
        if roles.outcome:
            yield f"outcome = {quoted(roles.outcome)}    # what really happened"
            if roles.numbers:
                yield 'outcome_kind = "number"    # and so are the predictions'
            else:
                yield from self._value("positive", roles.positive, roles.outcome)
        elif "outcome" in roles.open:
            yield f'outcome = ""    # open: what really happened{guesses}; or remove the line'
        else:
            yield f'# outcome = "..."    # what really happened: error rates and calibration need it{guesses}'

    def _value(self, setting: str, positive: str | None, column: str) -> Iterator[str]:
        """Yield the positive value of a column, unless it is obvious."""
        profile = self.seen.columns[column]
        if positive is not None and (not profile.values or positive in map(str, profile.values)):
            yield f"{setting} = {positive if profile.is_number else quoted(positive)}    # the value that counts"
        elif not profile.two_valued:
            shown = ", ".join(quoted(value) for value in profile.values[:_GUESSES]) or "many values"
            yield f'{setting} = ""    # open: the value of {column} that counts; it holds {shown}'

    def _groups(self) -> Iterator[str]:
        roles = self.roles
        if not roles.groups:
            yield f'groups = [""]    # open: the columns to compare people by{self._listed("groups")}'
            return
        parts = [self._parts(group) for group in roles.groups]
        listed = ", ".join(quoted(columns[0]) if len(columns) == 1 else toml_list(columns) for columns in parts)
        yield f'groups = [{listed}]    # a list inside the list is an intersection, as ["race", "sex"]'
        if roles.one_hot:
            families = ", ".join(f"{quoted(name)} = {toml_list(members)}" for name, members in roles.one_hot.items())
            yield f"one_hot = {{ {families} }}    # these columns of 0 and 1 are one grouping"
        columns = (self.seen.columns.get(name) for name in dict.fromkeys(chain.from_iterable(parts)))
        numbers = [column for column in columns if column and column.is_number]
        yield from self._cuts(numbers)
        yield from self._labels(numbers)

    def _parts(self, group: str) -> list[str]:
        return [group] if group in self.seen.columns else group.split("+")

    def _cuts(self, numbers: Sequence[ColumnProfile]) -> Iterator[str]:
        cuts = {c.name: cut_points(c) if "age" in c.name.lower() else None for c in numbers if c.distinct > 20}
        if cuts:
            inner = ", ".join(f"{quoted(name)} = {points or chr(34) * 2}" for name, points in cuts.items())
            note = "proposed" if all(cuts.values()) else "open where blank"
            yield f"cuts = {{ {inner} }}    # {note}; choose cut points before you see results"

    def _labels(self, numbers: Sequence[ColumnProfile]) -> Iterator[str]:
        name = next((c.name for c in numbers if c.two_valued), None)
        if name is not None:
            yield (
                f'# labels = {{ {quoted(name)} = {{ 0 = "...", 1 = "..." }} }}    '
                f'# names of groups; without them "{name} = 1"'
            )

    def _rest(self) -> Iterator[str]:
        roles = self.roles
        yield from self._optional(
            "weight", roles.weight, "survey weight", '# weight = "..."    # survey weight, if any'
        )
        if guessed := roles.guesses.get("count"):
            meaning = "how many people a row stands for"
            yield from self._optional("count", roles.count, meaning, f"# count = {quoted(guessed[0])}    # {meaning}")
        sides = '"higher" (a salary) or "lower" (a price)' if roles.numbers else _SIDES_OF_DECISIONS
        open_side = f'# favourable = "..."    # good for a person: {sides}'
        yield from self._optional("favourable", roles.favourable, "the side that is good for a person", open_side)
        meaning = "what the system does to a person it selects"
        open_verb = f'# selected_word = "..."    # {meaning}: "hires", "flags"'
        if not roles.numbers:
            yield from self._optional("selected_word", roles.verb, meaning, open_verb)
        open_noun = '# people = "..."    # what the people are called: "applicants", "households"'
        yield from self._optional("people", roles.people, "what the people are called", open_noun)
        lacking = roles.lacking(self.seen)
        if roles.drop_missing:
            yield 'missing = "drop"    # rows without outcome or prediction are dropped and counted'
        else:
            lacking_note = f"; some rows lack {', '.join(lacking)}" if lacking else ""
            yield f'# missing = "drop"    # drops rows without outcome or prediction, and counts them{lacking_note}'
        if "predictions" in roles.open and not roles.predictions:
            yield f'predictions = ""    # open: the column of a decision or a score{self._listed("predictions")}'

    @staticmethod
    def _optional(setting: str, value: str | None, meaning: str, without: str) -> Iterator[str]:
        """Yield a setting with its meaning, or `without` if the setting is open."""
        yield without if value is None else f"{setting} = {quoted(value)}    # {meaning}"

    def _predictions(self) -> Iterator[str]:
        roles = self.roles
        for name in roles.scores:
            yield from (f"[data.predictions.{quoted(name)}]", f"column = {quoted(name)}", 'kind = "score"')
            yield from self._score(self.seen.columns[name])
            yield ""
        for name in roles.decisions:
            yield from (f"[data.predictions.{quoted(name)}]", f"column = {quoted(name)}", 'kind = "decision"')
            yield from self._value("selected", roles.selected, name)
            yield ""
        for name in roles.numbers:
            yield from (f"[data.predictions.{quoted(name)}]", f"column = {quoted(name)}")
            yield f'kind = "number"    # compared as it is: mean, median, quantiles (seen: {self._ends(name)})'
            yield ""
        yield from self._possible_number()
        for name in self._percent():
            yield f"# {name} runs from {self._ends(name)}. If it is a score in percent, remove the # of these lines."
            yield from (f"# [data.predictions.{quoted(name)}]", f"# column = {quoted(name)}", '# kind = "score"')
            yield from ("# range = [0, 100]", "# threshold = 50    # selected when the score is above it", "")
        if "decisions" in roles.open:
            others = [name for name in roles.guesses["predictions"] if name not in roles.predictions]
            yield f"# Decisions too? {', '.join(others[:_GUESSES])}: each has a section like the ones above."
            yield ""

    def _possible_number(self) -> Iterator[str]:
        """Yield the lines for a column such as a salary, if no prediction is certain."""
        guessed = self.roles.guesses.get("numbers", [])
        if guessed and not self.roles.predictions and "predictions" in self.roles.open:
            yield f"# To compare {guessed[0]} itself, remove the # of these lines, and the blank `predictions` above."
            yield f"# [data.predictions.{quoted(guessed[0])}]"
            yield from (f"# column = {quoted(guessed[0])}", '# kind = "number"', "")

    def _percent(self) -> list[str]:
        """Return the columns that may be scores in percent, if there are certain predictions."""
        guesses = self.roles.guesses.get("predictions", []) if self.roles.predictions else []
        return [name for name in guesses if looks_like_percent(self.seen.columns[name])]

    def _ends(self, name: str) -> str:
        column = self.seen.columns[name]
        return f"{number(column.low or 0.0)} to {number(column.high or 0.0)}"

    def _score(self, column: ColumnProfile) -> Iterator[str]:
        seen = f"seen: {self._ends(column.name)}"
        wide = not in_unit_range(column)
        if self.roles.range and wide:
            low, high = self.roles.range
            yield f"range = [{number(low)}, {number(high)}]    # lowest and highest possible score"
        elif looks_like_percent(column):
            yield f"range = [0, 100]    # proposed, in percent: lowest and highest possible score ({seen})"
        elif wide:
            yield f'range = ""    # open: lowest and highest possible score, as [1, 10] ({seen})'
        if self.roles.threshold is not None and wide:
            yield f"threshold = {number(self.roles.threshold)}    # selected when the score is above it"
        elif not wide:
            yield "# threshold = 0.5    # selected when the score is above it; 0.5 unless you say otherwise"
        else:
            yield 'threshold = ""    # open: selected when the score is above it'

    def _listed(self, role: str) -> str:
        names = self.roles.guesses.get(role, [])
        return f": {', '.join(names[:_GUESSES])}{' ...' if len(names) > _GUESSES else ''}?" if names else ""


def _wrapped(names: Sequence[str]) -> Iterator[str]:
    line = "#"
    for name in names:
        if len(line) + len(name) > 110:
            yield line
            line = "#"
        line += f" {quoted(name)}"
    yield line


def number(value: float) -> str:
    """Return a number in full precision, so that a range includes every score in the file."""
    return str(int(value)) if value.is_integer() else repr(value)
