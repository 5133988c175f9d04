"""`evenhand init`: inspect a table, assign roles to its columns, write a commented audit.toml."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evenhand.audits import REGISTRY
from evenhand.cli.audit_toml import audit_toml, seen_file
from evenhand.cli.console import FINE, out, print_line
from evenhand.cli.flags import COMMAND
from evenhand.cli.proposal import Proposal, has_many_numbers, has_role_word, in_unit_range, looks_like_percent, propose
from evenhand.core.files import write_files
from evenhand.errors import ConfigError, count, did_you_mean, error_messages_for, require_name
from evenhand.messages import showable
from evenhand.run.config import open_settings
from evenhand.table.files import FileOptions, dialect
from evenhand.table.labels import label_notes
from evenhand.table.profile import ColumnProfile, Look, look

Many = list[str] | None
T = TypeVar("T")
_HIGHEST_SCORE = 1_000.0
_SIDES = ("selected", "not_selected", "higher", "lower")


def init(
    *,
    data: Annotated[
        str,
        typer.Argument(help="A data file: CSV, Parquet or JSON (a glob in quotes), Excel, Stata, SPSS, Feather, R."),
    ],
    path: Annotated[Path, typer.Option("--out", "-o", help="Where to write the audit.toml.")] = Path("audit.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: write what is certain and leave the rest blank.")
    ] = False,
    outcome: Annotated[str | None, typer.Option(help="Column of what really happened.")] = None,
    groups: Annotated[
        Many, typer.Option(help="Group columns: race,sex; race+sex is an intersection; can be repeated.")
    ] = None,
    decisions: Annotated[Many, typer.Option(help="Decision columns, separated by commas; can be repeated.")] = None,
    scores: Annotated[Many, typer.Option(help="Score columns, separated by commas; can be repeated.")] = None,
    numbers: Annotated[
        Many,
        typer.Option(help="Columns of numbers to compare, such as a salary; can be repeated."),
    ] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column that identifies a person.")] = None,
    favourable: Annotated[
        str | None,
        typer.Option(
            help="Which side is good for a person: selected (a loan) or not_selected (a risk flag); of numbers higher "
            "or lower."
        ),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Drop rows without outcome or prediction, and count them.")
    ] = False,
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of a CSV file: '.' or ',' (default: detected).")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a CSV file: utf-8, latin-1 or utf-16 (default: guessed).")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Field separator of a CSV file (default: guessed from the first line).")
    ] = None,
    missing_values: Annotated[
        Many, typer.Option(help="A code for a missing value in a CSV file, such as NA or -9; can be repeated.")
    ] = None,
) -> int:
    """Inspect a table, work out what its columns mean, and write a commented audit.toml.

    On a terminal it asks, with its best guesses first. Otherwise, or with --yes, it fills in only what is certain: what
    an option says, and columns whose name and values fit exactly one role. The rest is blank in the file, and
    `evenhand audit` refuses to run until you fill it in. Only you know what the columns mean.
    """
    if path.exists() and not force:
        raise ConfigError(
            "'{path}' exists already; give --force to overwrite it, or another name with --out.", path=path
        )
    words = ("", *missing_values) if missing_values else None
    reading = {"decimal": decimal, "encoding": encoding, "delimiter": delimiter, "missing_values": words}
    with error_messages_for(COMMAND):
        seen, options, remarks = _read(data, {name: value for name, value in reading.items() if value is not None})
    listed = {"--groups": groups, "--decisions": decisions, "--scores": scores, "--numbers": numbers}
    stated = _stated_roles(seen, listed, outcome=outcome, id=id_column)
    stated.favourable, stated.drop_missing = _known_side(favourable), drop_missing
    values = {"groups": stated.groups, "predictions": stated.predictions, "outcome": stated.outcome}
    answered = {role for role, value in values.items() if value}
    roles = propose(seen, stated)
    _show_columns(seen)
    for remark in (*remarks, *_remarks(roles, seen)):
        print_line(remark)
    if not yes and _is_terminal():
        _Dialogue(seen, roles, answered).run()
    text = audit_toml(Path(os.path.relpath(data, path.parent)).as_posix(), options, roles, seen)
    write_files(path.parent, {path.name: text})
    print_line(f"Wrote {path}")
    for role, value in _summary(roles, seen):
        print_line(f"  {role:<12}{value}")
    print_line(f"{_to_do(text)}, then: evenhand audit {path}")
    return FINE


def _to_do(text: str) -> str:
    """Return the user's next step with an `audit.toml`."""
    left = open_settings(tomllib.loads(text))
    return f"Fill in what is open ({', '.join(left)})" if left else "Check these roles"


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


# The properties of the file -------------------------------------------------------------------------------


def _read(data: str, answered: Mapping[str, Any]) -> tuple[Look, FileOptions, list[str]]:
    """Read the data, a second time with decimal commas or missing-value words if numbers need them."""
    options = FileOptions.parse(answered, "the options of the file")
    seen = look(data, options)
    remarks = [note.text for note in seen.notes]
    delimiter = options.delimiter or dialect(data)
    is_odd = delimiter not in (None, ",")
    if is_odd:
        remarks.append(f"Columns are separated by {delimiter!r}.")
    changes = list(_needed_options(seen, options, commas_possible=is_odd and "decimal" not in answered))
    remarks += [remark for _, _, remark in changes]
    if changes and delimiter is not None:
        options = options.model_copy(update={option: value for option, value, _ in changes})
        seen = look(data, options)
    return seen, options, remarks


def _needed_options(seen: Look, options: FileOptions, *, commas_possible: bool) -> Iterator[tuple[str, Any, str]]:
    """Yield the file options that make numbers readable, with their values and remarks."""
    commas = [c.name for c in seen.columns.values() if c.decimal_commas]
    if commas and commas_possible:
        yield (
            "decimal",
            ",",
            f"Numbers have decimal commas ({_first(commas, 3)}): read and written with decimal = ','.",
        )
    missing_words = {c.name: c.missing_words for c in seen.columns.values() if c.missing_words}
    if missing_words:
        words = sorted(set(chain.from_iterable(missing_words.values())))
        listed = ", ".join(map(repr, words))
        missing_values = tuple(dict.fromkeys((*options.missing_values, *words)))
        yield (
            "missing_values",
            missing_values,
            f"{listed} among numbers ({_first(list(missing_words), 3)}) is read as missing.",
        )


def _first(names: Sequence[str], most: int) -> str:
    """Return the first few names, with an ellipsis if there are more."""
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


def _show_columns(seen: Look) -> None:
    """Print the name of every column, in as many columns as fit the terminal."""
    print_line(f"{count(len(seen.columns), 'column')}, {count(seen.rows, 'row')} looked at:")
    names = [showable(name) for name in seen.columns]
    width = max(cell_len(name) for name in names) + 2
    lines = ceil(len(names) / max(1, out.width // width))
    for first in range(lines):
        print_line("".join(set_cell_size(name, width) for name in names[first::lines]).rstrip())


def _remarks(roles: Proposal, seen: Look) -> Iterator[str]:
    """Yield remarks to read before assigning roles."""
    if roles.repeated:
        n = seen.columns[roles.repeated].distinct
        repeats = f"{roles.repeated} repeats ({n:,} values in {seen.rows:,} rows)"
        yield f"{repeats}: it is no id of a row; as `cluster` it says which rows belong together."
    file = seen_file("", roles, seen)
    for audit in REGISTRY.values():
        yield from audit.propose.remarks(file) if audit.propose is not None else ()
    for members in roles.one_hot.values():
        yield f"Columns of 0 and 1 that are one grouping: {', '.join(members)}."
    yield from chain.from_iterable(
        map(_oddities, seen.columns.values(), (name in roles.groups for name in seen.columns))
    )
    for column in (seen.columns[name] for name in roles.scores or roles.guesses.get("predictions", [])):
        if looks_like_percent(column):
            yield f"{column.name} runs from {column.low:g} to {column.high:g}: percent? Its range would be [0, 100]."


def _oddities(column: ColumnProfile, is_group: bool) -> Iterator[str]:
    """Yield remarks on oddities of a column: labels that differ in blanks, a single value, percent signs."""
    if is_group:
        labels = list(dict.fromkeys(str(value).strip() for value in column.values))
        yield from (note.text for note in label_notes(column.name, column.kind, column.values, labels))
    if column.distinct < 2 and any(has_role_word(column.name, role) for role in ("group", "outcome", "decision")):
        description = f"is {column.values[0]!r} in every row" if column.values else "has no values"
        yield f"{column.name} {description}: there is nothing to compare in it."
    elif column.percent_signs:
        yield f"{column.name} is text, with percent signs: to use it as a score, write the numbers without them."


# Options --------------------------------------------------------------------------------------------------


def _stated_roles(
    seen: Look,
    options: Mapping[str, Many],
    *,
    outcome: str | None,
    id: str | None,  # noqa: A002
) -> Proposal:
    """Return the roles given by options; raise if a column is not in the data."""
    listed = {
        option: list(dict.fromkeys(part for text in texts or () for part in _columns_of(option, text, seen)))
        for option, texts in options.items()
    }
    for option, name in {"--outcome": outcome, "--id": id}.items():
        if name is not None:
            _require(option, name, seen)
    if outcome is not None and seen.columns[outcome].distinct < 2:
        values = seen.columns[outcome].values
        description = f"is {values[0]!r} in every row" if values else "has no values"
        raise ConfigError(
            "--outcome {outcome!r} {held}; an outcome has two values: name another column.",
            outcome=outcome,
            held=description,
        )
    for option in ("--scores", "--numbers"):
        _require_numbers(option, listed, seen)
    return Proposal(
        id=id,
        outcome=outcome,
        groups=listed["--groups"],
        decisions=listed["--decisions"],
        scores=listed["--scores"],
        numbers=listed["--numbers"],
    )


def _require_numbers(option: str, listed: Mapping[str, Sequence[str]], seen: Look) -> None:
    for name in listed[option]:
        for other in ("--decisions", "--scores"):
            if other != option and name in listed[other]:
                raise ConfigError(
                    "{option} {name!r} is among {other}, too; name it once.", option=option, name=name, other=other
                )
        if not seen.columns[name].is_number:
            raise ConfigError(
                "{option} {name!r} holds no numbers; give it as --decisions, or convert it.", option=option, name=name
            )


def _known_side(favourable: str | None) -> str | None:
    if favourable is not None:
        require_name(favourable, _SIDES, "--favourable got {name!r}; {hint}")
    return favourable


def _columns_of(option: str, text: str, seen: Look) -> list[str]:
    """Return the columns that a text names: a single column, or comma-separated names."""
    names = [text] if text in seen.columns else [part.strip() for part in text.split(",")]
    for name in names:
        for part in [name] if name in seen.columns or option != "--groups" else name.split("+"):
            _require(option, part, seen)
    return names


def _require(option: str, name: str, seen: Look) -> None:
    require_name(name, seen.columns, "{option} got {name!r}, which is not in the data; {hint}", option=option)


# Assigned roles -------------------------------------------------------------------------------------------


def _summary(roles: Proposal, seen: Look) -> Iterator[tuple[str, str]]:
    """Yield each role with its columns, or with guesses if it is open."""
    yield "groups", ", ".join(roles.groups) or _unsettled(roles, "groups", "none")
    yield from _number_summary(roles)
    yield from _prediction_summary(roles, seen) if roles.scores or roles.decisions or not roles.numbers else ()
    yield "outcome", roles.outcome or _unsettled(roles, "outcome", "none found: error rates need one")
    yield "id", (roles.long[0] if roles.long else roles.id) or "none found"
    if roles.weight:
        yield "weight", roles.weight
    guessed = roles.guesses.get("count", [])
    if roles.count or guessed:
        yield "count", roles.count or f"open ({_first(guessed, 6)}?): how many people does a row stand for?"
    yield from _default_remarks(roles, seen)


def _number_summary(roles: Proposal) -> Iterator[tuple[str, str]]:
    if roles.numbers:
        yield "numbers", ", ".join(roles.numbers)


def _prediction_summary(roles: Proposal, seen: Look) -> Iterator[tuple[str, str]]:
    """Yield scores and decisions, or the possible columns if they are open."""
    guesses = [] if roles.predictions else roles.guesses.get("predictions", [])
    numbers = [name for name in guesses if has_many_numbers(seen.columns[name])]

    def guessed(names: Sequence[str], nothing: str) -> str:
        return f"open ({_first(names, 6)}?)" if names else nothing

    if roles.scores or not roles.decisions:
        yield "scores", ", ".join(roles.scores) or guessed(numbers, "none found")
    nothing = "open" if "predictions" in roles.open and not numbers else "none found"
    yield "decisions", ", ".join(roles.decisions) or guessed([c for c in guesses if c not in numbers], nothing)


def _default_remarks(roles: Proposal, seen: Look) -> Iterator[tuple[str, str]]:
    """Yield the defaults of open settings."""
    lacking = roles.lacking(seen)
    if lacking and not roles.drop_missing:
        yield "missing", f'some rows lack {", ".join(lacking)}: an audit stops there, unless missing = "drop" is set'
    if not roles.favourable:
        what = "group" if roles.numbers else "side of a gap in selection rates"
        yield "favourable", f"not said: no {what} is called worse off"


def _unsettled(roles: Proposal, role: str, nothing: str) -> str:
    guesses = roles.guesses.get(role, [])
    guess_text = f" ({_first(guesses, 6)}?)" if guesses else ""
    return f"open{guess_text}" if role in roles.open else nothing


class _Dialogue:
    """Asks for the roles on a terminal: one question per line, with the best guesses as defaults."""

    def __init__(self, seen: Look, roles: Proposal, answered: Collection[str]) -> None:
        self.seen, self.roles, self.said = seen, roles, answered

    def run(self) -> None:
        """Ask for every role that no option specified."""
        roles = self.roles
        print_line("Enter takes what is in brackets, - is none; several names go with commas between.")
        several = "Does a person ({}) have several rows, one for each {}?"
        if roles.long and not self._yes(several.format(*roles.long)):
            roles.id = roles.long = None
        self._count()
        self._roles()
        roles_by_kind = {"groups": roles.groups, "predictions": roles.predictions}
        roles.open = {role for role, columns in roles_by_kind.items() if not columns}
        self._values()
        self._side()
        self._words()
        lacking = roles.lacking(self.seen)
        if lacking and not roles.drop_missing:
            roles.drop_missing = self._yes(
                f"Some rows lack {', '.join(lacking)}. Drop them, and count them?", default=False
            )

    def _count(self) -> None:
        """Ask whether a column with a name such as `count` contains numbers of people."""
        for column in self.roles.guesses.get("count", [])[:1]:
            if self._yes(f"Does a row stand for as many people as {column} says?"):
                self.roles.count, self.roles.id = column, None

    def _roles(self) -> None:
        """Ask for the columns of groups, predictions and outcome."""
        roles = self.roles
        roles.groups = self._columns("Groups to compare", roles.groups, "groups")
        roles.one_hot = {name: members for name, members in roles.one_hot.items() if name in roles.groups}
        self._kinds(self._columns("Decisions or scores", roles.predictions, "predictions"))
        outcome = self._columns("Outcome: what really happened", [roles.outcome] if roles.outcome else [], "outcome", 1)
        roles.outcome = outcome[0] if outcome else None

    def _kinds(self, chosen: Sequence[str]) -> None:
        """Classify the chosen prediction columns into decisions, scores and numbers."""
        many = [column for name in chosen if has_many_numbers(column := self.seen.columns[name])]
        self.roles.numbers = [column.name for column in many if self._is_number(column)]
        self.roles.scores = [column.name for column in many if column.name not in self.roles.numbers]
        self.roles.decisions = [name for name in chosen if name not in self.roles.numbers + self.roles.scores]

    def _is_number(self, column: ColumnProfile) -> bool:
        """Ask whether large numbers such as salaries are to be compared directly, unless an option decides it."""
        if column.name in self.roles.numbers and "predictions" in self.said:
            return True
        if not has_role_word(column.name, "number") and (column.high or 0.0) <= _HIGHEST_SCORE:
            return False
        return self._yes(f"Is {column.name} a number to compare as it is, as a salary, and no score?")

    def _guesses(self, role: str) -> list[str]:
        guesses = self.roles.guesses
        amounts = guesses.get("numbers", []) if role == "predictions" else []
        return list(dict.fromkeys([*guesses.get(role, []), *amounts]))

    def _columns(self, question: str, offered: Sequence[str], role: str, most: int | None = None) -> list[str]:
        if role in self.said:
            return list(offered)
        guesses = [name for name in self._guesses(role) if name not in offered]
        if guesses and not offered:
            print_line(f"  could be: {_first(guesses, 8)}")

        def read(answer: str) -> list[str]:
            if answer == "-":
                return []
            names = [answer] if answer in self.seen.columns else [part.strip() for part in answer.split(",")]
            choices = {*self.seen.columns, *self.roles.one_hot}
            for name in names:
                for part in [name] if name in choices or role != "groups" else name.split("+"):
                    require_name(part, choices, "{name!r} is not in the data; {hint}")
            if most is not None and len(names) > most:
                raise ConfigError("name one column.")
            return names

        return _ask(question, ", ".join(offered) or "-", read) if offered else _ask(question, "-", read)

    def _values(self) -> None:
        """Ask for further settings of the outcome and the predictions."""
        roles = self.roles
        self._positive()
        plain = [name for name in roles.decisions if not self.seen.columns[name].two_valued]
        if plain:
            roles.selected = self._value(f"Which value of {plain[0]} means selected?", plain[0])
        wide = [self.seen.columns[name] for name in roles.scores if not in_unit_range(self.seen.columns[name])]
        if wide:
            low, high = wide[0].low or 0.0, wide[0].high or 0.0
            roles.range = _ask(
                f"Lowest and highest possible {wide[0].name} (seen: {low:g} to {high:g})",
                "0, 100" if looks_like_percent(wide[0]) else "",
                _two_numbers,
            )
            roles.threshold = _ask("Above which score is a person selected?", "", _one_number)

    def _positive(self) -> None:
        outcome = None if self.roles.numbers else self.roles.outcome
        if outcome and not self.seen.columns[outcome].two_valued:
            self.roles.positive = self._value("Which value of the outcome counts?", outcome)

    def _value(self, question: str, column: str) -> str | None:
        values = [str(value) for value in self.seen.columns[column].values]
        print_line(f"  it holds: {', '.join(values[:8])}{' ...' if len(values) > 8 else ''}")

        def read(answer: str) -> str | None:
            if answer and values and answer not in values:
                raise ConfigError(
                    "{answer!r} is not among its values; {hint}", answer=answer, hint=did_you_mean(answer, values)
                )
            return answer or None

        return _ask(question, "", read)

    def _side(self) -> None:
        if self.roles.favourable is not None or not self.roles.predictions:
            return
        of_numbers = bool(self.roles.numbers)
        good, bad = ("higher", "lower") if of_numbers else ("selected", "not_selected")
        sides = {"good": good, "bad": bad, "": None}

        def read(answer: str) -> str | None:
            if answer.lower() not in sides:
                raise ConfigError("answer good, bad, or nothing.")
            return sides[answer.lower()]

        what = f"a higher {self.roles.numbers[0]}" if of_numbers else "being selected"
        self.roles.favourable = _ask(f"Is {what} good or bad for a person? Enter leaves it unsaid", "", read)

    def _words(self) -> None:
        """Ask for the verb and the noun of the report's sentences, and for display names."""
        if self.roles.scores or self.roles.decisions:
            verb = "What does the system do to a person it selects, as in hires or flags? Enter: selects"
            self.roles.verb = _ask(verb, "", lambda answer: answer or None)
        noun = "What are the people called, as in applicants or households? Enter leaves it out"
        self.roles.people = _ask(noun, "", lambda answer: answer or None)
        names = f"Names for readers, as in {self._example_of_a_name()}; with semicolons between. Enter keeps the data's"
        self.roles.names = _ask(names, "", _pairs_of_names)

    def _example_of_a_name(self) -> str:
        """Return an example of a display name, for a group with a numeric code if there is one."""
        groups = [self.seen.columns[name] for name in self.roles.groups if name in self.seen.columns]
        coded = next((column.name for column in groups if column.is_number and column.two_valued), None)
        return "age_group: age" if coded is None else f"{coded} = 1: women"

    def _yes(self, question: str, default: bool = True) -> bool:
        def read(answer: str) -> bool:
            if answer.lower() not in ("y", "yes", "n", "no"):
                raise ConfigError("answer y or n.")
            return answer.lower().startswith("y")

        return _ask(question, "y" if default else "n", read)


def _ask(question: str, offered: str, read: Callable[[str], T]) -> T:
    """Ask a question until the answer is valid; return the parsed answer."""
    while True:
        out.print(Text.assemble(question, (f" [{offered}]" if offered else "", "bold"), ": "), end="")
        try:
            return read(input().strip() or offered)
        except EOFError:
            raise typer.Abort from None
        except ConfigError as error:
            print_line(f"  {error}")


def _pairs_of_names(answer: str) -> dict[str, str]:
    """Return display names by name in the data, parsed from text such as "age_group: age; M: men"."""
    pairs = [part.rpartition(":") for part in answer.split(";") if part.strip()]
    if not all(name.strip() and shown.strip() for name, _, shown in pairs):
        raise ConfigError("write a name of the data, a colon and the name for readers, as age_group: age.")
    return {name.strip(): shown.strip() for name, _, shown in pairs}


def _two_numbers(answer: str) -> tuple[float, float] | None:
    if not answer:
        return None
    try:
        low, high = (float(part) for part in answer.replace("to", ",").split(","))
    except ValueError:
        raise ConfigError("write two numbers, as 0, 100.") from None
    return low, high


def _one_number(answer: str) -> float | None:
    try:
        return float(answer) if answer else None
    except ValueError:
        raise ConfigError("write a number, as 50.") from None
