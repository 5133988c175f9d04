"""`evenhand adverse-impact`: four-fifths rule, exact tests, shortfall and flip-one test, from counts or rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as RichTable

from evenhand.cli.console import FINE, out, print_line, progress
from evenhand.cli.flags import COMMAND
from evenhand.cli.report import FORMATS_HELP, listed_formats
from evenhand.errors import ConfigError, DataError, error_messages_for, require_name
from evenhand.errors import count as counted
from evenhand.messages.formats import DASH, show

if TYPE_CHECKING:
    from evenhand import Audit, Table
    from evenhand.after.profiles.result import Impact, Pooled
    from evenhand.table.profile import ColumnProfile, Look

Text = str | None

PROFILE = "ugesp-1978"
_WORDS = {
    "selected": "selected hired hires admitted passed promoted accepted approved chosen offered offers",
    "rejected": "rejected refused denied failed declined rejections",
    "total": "total applicants applied candidates pool considered tested n all people",
    "event": "event job department dept year month round position title site location test",
}
"""The words in column names that reveal the role of a column."""

_FLIPS = {"no": "no", "crosses": "crosses 4/5", "overtakes": "overtakes"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table of selections, as numbers of people or as one decision per row."""

    group: str
    event: str | None = None
    selected: str | None = None
    total: str | None = None
    rejected: str | None = None
    decision: str | None = None


def adverse_impact(
    *,
    target: Annotated[
        str, typer.Argument(help="A table of counts or of people: CSV, Excel, Parquet, JSON and others.")
    ],
    group: Annotated[Text, typer.Option(help="Column of the groups, such as race or sex.")] = None,
    selected: Annotated[Text, typer.Option(help="Column with the number of people selected.")] = None,
    total: Annotated[Text, typer.Option(help="Column with the number of all people.")] = None,
    rejected: Annotated[
        Text, typer.Option(help="Column with the number of people not selected, in place of the total.")
    ] = None,
    decision: Annotated[Text, typer.Option(help="Of a table of people: the column of the decision.")] = None,
    chosen: Annotated[
        Text, typer.Option(help="The value of the decision that means selected (default 1, true, yes).")
    ] = None,
    count: Annotated[Text, typer.Option(help="Of a table of people: how many people a row stands for.")] = None,
    event: Annotated[
        Text, typer.Option(help="Column of the events to pool over: the job, the department, the year.")
    ] = None,
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("out"),
    formats: Annotated[str, typer.Option("--format", "-f", help=FORMATS_HELP)] = "html",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Compare selection rates: four fifths, exact test, standard deviations, shortfall and flip-one on one page.

    `evenhand adverse-impact counts.csv` reads columns such as group, selected and total.

    `evenhand adverse-impact people.csv --group sex --decision hired` reads one row per person.

    `--event job` also compares within each job and pools the jobs (Mantel and Haenszel; Breslow and Day).
    """
    named = {"group": group, "selected": selected, "total": total, "rejected": rejected, "decision": decision}
    with progress(quiet), error_messages_for(COMMAND):
        columns = find_columns(target, {**named, "event": event})
        audit = _audit(_table(target, columns, chosen, count), columns)
        files = audit.save(out_folder, listed_formats(formats))
    if not quiet:
        _print(audit)
        print_line("\nReport: ", ", ".join(str(path) for name, path in files.items() if not name.endswith(".json")))
    return FINE


# Columns --------------------------------------------------------------------------------------------------------------


def find_columns(target: str, named: Mapping[str, str | None]) -> Columns:
    """Return the named columns and those inferable from column names; raise if ambiguous."""
    from evenhand.table.profile import look

    seen = look(target)
    given = {option: column for option, column in named.items() if column is not None}
    for option, column in given.items():
        sentence = "--{option} got {name!r}, which is not in the data; {hint}"
        require_name(column, seen.columns, sentence, option=option)
    numbers = {} if "decision" in given else _numbers(seen, given)
    taken = {*given.values(), *numbers.values()}
    event = given.get("event") or _only(seen.columns.values(), "event", taken)
    group = given.get("group") or _group(seen, {*taken, event})
    if "selected" in numbers and len(numbers) > 1:
        return Columns(group=group, event=event, **numbers)
    decision = given.get("decision") or _decision(target, seen, {*taken, event, group})
    return Columns(group=group, event=event, decision=decision)


def _decision(target: str, seen: Look, taken: Collection[str | None]) -> str:
    """Return the only possible decision column; raise if there is none or several."""
    from evenhand.cli.proposal import propose

    proposed = [column for column in propose(seen).decisions if column not in taken]
    if len(proposed) == 1:
        return proposed[0]
    raise ConfigError(
        "{target} has the columns {columns}; say which hold the numbers with --selected and --total, or, in a table of "
        "people, which holds the decision with --decision.",
        target=target,
        columns=tuple(map(repr, seen.columns)),
    )


def _numbers(seen: Look, given: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of numbers of people: selected, with the total or the rejected."""
    whole = [column for column in seen.columns.values() if column.is_number and column.name not in given.values()]
    found = {name: given[name] for name in ("selected", "total", "rejected") if name in given}
    for name in ("selected", "rejected", "total"):
        is_needed = name == "selected" or not {"total", "rejected"} & found.keys()
        if name not in found and is_needed and (column := _only(whole, name, set(found.values()))):
            found[name] = column
    return found


def _only(columns: Collection[ColumnProfile], role: str, taken: Collection[str]) -> str | None:
    """Return the only column with a word of this role in its name; None if there is none or several."""
    from evenhand.table.profile import words

    names = {*_WORDS[role].split()}
    found = [column.name for column in columns if column.name not in taken and names & {*words(column.name)}]
    return found[0] if len(found) == 1 else None


def _group(seen: Look, taken: Collection[str | None]) -> str:
    """Return the only possible group column; raise if there is none or several."""
    from evenhand.cli.proposal import has_role_word

    free = [column for column in seen.columns.values() if column.name not in taken and column.distinct > 1]
    named = [column.name for column in free if has_role_word(column.name, "group")]
    texts = [column.name for column in free if not column.is_number]
    for found in (named, texts):
        if len(found) == 1:
            return found[0]
    raise ConfigError(
        "say which column holds the groups with --group; the data have {columns}.", columns=tuple(seen.columns)
    )


# The audit ------------------------------------------------------------------------------------------------------------


def _table(target: str, columns: Columns, chosen: str | None, count: str | None) -> Table:
    """Return the `Table` of the people in a table of counts or of rows."""
    from evenhand import Table

    prediction: dict[str, Any] = {"favourable": "selected"}
    if columns.decision is not None:
        prediction |= {"column": columns.decision, "kind": "decision", **({"selected": chosen} if chosen else {})}
        return Table(target, groups=columns.group, predictions={columns.decision: prediction}, count=count)
    prediction |= {"column": "decision", "selected": "selected"}
    return Table(_listed(target, columns), groups=columns.group, predictions={"selection": prediction}, count="people")


def _listed(target: str, columns: Columns) -> dict[str, Sequence[Any]]:
    """Return two rows for each row of counts: the selected people, and the rest."""
    from evenhand.table.sources import fetch, open_source

    selected, other = str(columns.selected), str(columns.total or columns.rejected)
    places = [columns.group, *([columns.event] if columns.event else [])]
    rows = fetch(open_source(target, columns=[*places, selected, other]).frame)
    chosen, others = ([_whole(value, name) for value in rows[name]] for name in (selected, other))
    if columns.total is not None:
        others = [_rest(*numbers) for numbers in zip(count_from(1), others, chosen, strict=False)]
    table: dict[str, Sequence[Any]] = {place: rows[place] * 2 for place in places}
    return {**table, "decision": ["selected"] * len(chosen) + ["rejected"] * len(others), "people": chosen + others}


def _rest(row: int, total: int, selected: int) -> int:
    """Return the number of people in a row who were not selected."""
    if selected > total:
        raise DataError(
            "row {row} has more people selected ({selected}) than in all ({total}).",
            row=row,
            selected=selected,
            total=total,
        )
    return total - selected


def _whole(value: Any, column: str) -> int:
    if isinstance(value, int | float) and value == value // 1 and value >= 0:
        return int(value)
    raise DataError("{column!r} must hold numbers of people; got {value!r}.", column=column, value=value)


def _audit(table: Table, columns: Columns) -> Audit:
    from evenhand import audit as run_audit

    parity: Any = {"metrics": ["selection_rate"], "within": [columns.event] if columns.event else []}
    report = {"title": "Adverse impact", "profile": [PROFILE], "profile_groupings": [columns.group]}
    return run_audit(table, report=report, parity=parity)


# The terminal ---------------------------------------------------------------------------------------------------------


def _print(audit: Audit) -> None:
    """Print the indicators of every group, and the indicators pooled over events."""
    tables = next(profile.tables for profile in audit.profiles if profile.name == PROFILE)
    impact: Sequence[Impact] = tables["impact"]
    pooled: Sequence[Pooled] = tables.get("pooled", ())
    if not impact:
        print_line("Nothing to compare: no group has people.")
        return
    people = sum(row.n for row in impact)
    print_line(f"Adverse impact by {impact[0].grouping}: {counted(people, 'person', 'people')}")
    _print_table(
        ("Group", "n", "Selected", "Rate", "Ratio", "SD", "Fisher p", "Short", "Flip-one"), map(_cells, impact)
    )
    print_line("\n", " ".join(_summary(impact)))
    if pooled:
        within = ", ".join(getattr(audit.results["parity"].spec, "within", ()))
        print_line(f"\nPooled within {within}:")
        heads = ("Group", "Events", "Selected", "Expected", "Ratio", "SD", "Exact p", "p of consistency")
        _print_table(heads, map(_pooled_cells, pooled))
        print_line("\n", " ".join(_pooled_summary(pooled)))


def _print_table(heads: Sequence[str], rows: Iterator[tuple[str, ...]]) -> None:
    table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def _cells(row: Impact) -> tuple[str, ...]:
    rate = f"{row.rate:.1%}"
    if row.group == row.highest:
        return row.group, f"{row.n:,}", f"{row.selected:,}", rate, "highest", *[""] * 4
    shortfall = DASH if row.shortfall is None else f"{row.shortfall:.1f}"
    deviations = DASH if row.standard_deviations is None else f"{row.standard_deviations:+.2f}"
    ratio = DASH if row.ratio is None else f"{row.ratio:.3f}"
    flip = _FLIPS[row.flip_one]
    return (
        row.group,
        f"{row.n:,}",
        f"{row.selected:,}",
        rate,
        ratio,
        deviations,
        show(row.p_value, "p"),
        shortfall,
        flip,
    )


def _pooled_cells(row: Pooled) -> tuple[str, ...]:
    ratio = DASH if row.ratio is None else f"{row.ratio:.3f}"
    deviations = DASH if row.standard_deviations is None else f"{row.standard_deviations:+.2f}"
    numbers = f"{row.selected:,}", f"{row.expected:,.1f}", ratio, deviations
    return row.group, f"{row.events:,}", *numbers, show(row.p_value, "p"), show(row.consistency, "p")


def _pooled_summary(pooled: Sequence[Pooled]) -> Iterator[str]:
    """Yield the groups two standard deviations below equal rates within events, and groups with differing events."""
    far = [row.group for row in pooled if row.standard_deviations is not None and row.standard_deviations <= -2]
    yield f"Two standard deviations or more below equal rates within each event: {', '.join(far) or 'nobody'}."
    differing = [row.group for row in pooled if row.consistency is not None and row.consistency < 0.05]
    if differing:
        yield f"The events differ for {', '.join(differing)}: look at each of them."


def _summary(impact: Sequence[Impact]) -> Iterator[str]:
    """Yield the groups below four fifths, and the groups two standard deviations below the highest rate."""
    below = [row.group for row in impact if row.below_four_fifths]
    far = [row.group for row in impact if row.is_far]
    yield f"Below four fifths of the highest rate: {', '.join(below) or 'nobody'}."
    yield f"Two standard deviations or more below it: {', '.join(far) or 'nobody'}."
    highest = next((row.rate for row in impact if row.group == row.highest), 1.0)
    if outdone := [row.group for row in impact if row.rate > highest]:
        yield f"Too small to be compared, with a higher rate: {', '.join(outdone)}."
