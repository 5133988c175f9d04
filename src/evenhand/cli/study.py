"""`evenhand study`: write a study down, run it on a web server, try it out."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import study_data
from evenhand.cli.console import BROKEN, FINE, err, out, print_error, print_line
from evenhand.cli.study_data import STUDY, Database, StudyFile, open_study, start_study
from evenhand.errors import ConfigError, EvenhandError, count, did_you_mean, require_choice

if TYPE_CHECKING:
    from evenhand.study.bots import Walk
    from evenhand.study.schema import Kind
    from evenhand.study.spec import StudySpec

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Ask people: write a study down, run it on a web server, analyse the answers.\n\n"
    "Start with `evenhand study new FOLDER --kind effort`, then `evenhand study serve FOLDER/study.toml`. "
    "While it runs: `status`, `simulate`, `backup`. At the end: `close`, `export`, `analyze`, `bonus`, `erase-ids`.",
)


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(help="Folder of the study; it is made where there is none.")],
    kind: Annotated[
        str, typer.Option(help="effort: people compare pairs. feedback: people judge decisions.", show_default=False)
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Your own sets (effort: a JSON file of design_sets() for each condition; repeat it) or cases "
            "(feedback: one CSV, Parquet or JSON file). By default made-up ones, to try it out."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of --data that identifies a case (feedback).")
    ] = None,
    decision: Annotated[
        str | None, typer.Option(help="Column of --data with what the system decided (feedback).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> int:
    """Write a study.toml and what it shows, so that `evenhand study serve` works at once.

    Then change the texts of study.toml to those of your study, and replace what was made up.
    """
    from evenhand.study.schema import KINDS
    from evenhand.study.template import (
        CASES,
        INSTRUCTIONS,
        made_up_names,
        spread_checks,
        study_template,
        write_made_up,
    )

    require_choice("--kind", kind, KINDS)
    known: Kind = "effort" if kind == "effort" else "feedback"
    given = data or []
    settings = _own_data(known, given, id_column, decision) if given else {}
    if known == "feedback":
        settings["checks"] = spread_checks(settings.get("cases", CASES)["per_critic"])
    names = [path.name for path in given] or list(made_up_names(known))
    _make_folder(folder, ["study.toml", *names], force, [path.resolve() for path in given])
    _write(folder / "study.toml", study_template(known, instructions=INSTRUCTIONS[known], **settings))
    files = [_copy(path, folder / path.name) for path in given] or write_made_up(folder, known)
    print_line(f"Wrote {folder / 'study.toml'} and {', '.join(path.name for path in files)}.")
    ready = _is_ready(folder / "study.toml")
    for line in _to_change(known, bool(given)):
        print_line(f"  {line}")
    if ready:
        print_line(f"Then: evenhand study serve {folder / 'study.toml'}")
    return FINE


def _own_data(kind: Kind, data: Sequence[Path], id_column: str | None, decision: str | None) -> dict[str, Any]:
    """Return what the template is to say of the user's own files."""
    for path in data:
        if not path.is_file():
            raise ConfigError(f"there is no file '{path}'; --data takes the sets or the cases of the study.")
    if kind == "effort":
        from evenhand.study.sets import load_instrument

        for path in data:
            load_instrument(path)
        return {"conditions": {path.stem: path.name for path in data}}
    if len(data) > 1:
        raise ConfigError(f"a feedback study has one file of cases; --data was given {len(data)} times.")
    return {"cases": _columns(data[0], id_column, decision)}


def _columns(path: Path, id_column: str | None, decision: str | None) -> dict[str, Any]:
    """Find out what the columns of a file of cases mean: as told, by the template's names, or by a guess."""
    from evenhand.cli.init import propose
    from evenhand.table.files import FileOptions
    from evenhand.table.profile import profile

    columns = profile(str(path), FileOptions())
    found, names = propose(columns), [column.name for column in columns]
    for option, given in (("--id", id_column), ("--decision", decision)):
        if given is not None and given not in names:
            raise ConfigError(f"{option} got {given!r}; {did_you_mean(given, names)}")
    guesses = [column.name for column in (*found.decisions, found.outcome) if column is not None]
    case = next((name for name in (id_column, "case", found.id) if name in names), None)
    decided = next((name for name in (decision, "label", "decision", *guesses) if name in names), None)
    if case is None or decided is None:
        lacking, option = (
            ("identifies a case", "--id") if case is None else ("is what the system decided", "--decision")
        )
        raise ConfigError(f"no column of '{path}' says by its name that it {lacking}; name it with {option} COLUMN.")
    from evenhand.study.responses import read_columns
    from evenhand.study.schema import as_text

    cells, _ = read_columns(path)
    labels = sorted({str(label) for label in as_text(cells[decided]) if label is not None})
    groups = [column.name for column in found.groups if column.name not in (case, decided)][:1]
    hidden = {case, decided, *groups}
    return {
        "cases": path.name,
        "id": case,
        "decision": decided,
        "labels": labels,
        "groups": groups,
        "shown": [column.name for column in columns if column.name not in hidden] or [decided],
        "per_critic": min(50, len(cells[case])),
    }


def _make_folder(folder: Path, names: Sequence[str], force: bool, given: Sequence[Path]) -> None:
    there = [name for name in names if (folder / name).exists() and (folder / name).resolve() not in given]
    if there and not force:
        raise ConfigError(
            f"'{folder / there[0]}' exists already; give --force to overwrite it, or name another folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder '{folder}' cannot be made: {error.strerror or error}.") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def _copy(source: Path, target: Path) -> Path:
    try:
        if source.resolve() != target.resolve():
            shutil.copyfile(source, target)
    except OSError as error:
        raise ConfigError(f"'{source}' cannot be copied to '{target}': {error.strerror or error}.") from error
    return target


def _is_ready(path: Path) -> bool:
    """Tell whether the study could be served as it is; say what is in the way if not."""
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study

    try:
        load_design(read_study(path))
    except EvenhandError as error:
        print_line(f"Not ready yet: {error}")
        return False
    return True


def _to_change(kind: Kind, own: bool) -> list[str]:
    lines = ["Change in study.toml: name, title, consent, instructions, payment, and the texts that people read."]
    if own:
        what = "what each condition is about" if kind == "effort" else "what the columns of [feedback] mean: a guess"
        return [*lines, f"Check {what}."]
    what = "The sets are of made-up people" if kind == "effort" else "The cases are made up"
    return [*lines, f"{what}: replace them before you ask anybody."]


@app.command()
def serve(
    study: StudyFile = STUDY,
    database: Database = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
    https: Annotated[
        bool, typer.Option("--https", help="People reach it over https, through a proxy: secure cookies only.")
    ] = False,
    proxy: Annotated[
        str | None, typer.Option(help="Address of the proxy in front, whose word on visitors' addresses is taken.")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests a second that one address may send; 0 is any number.")
    ] = 50.0,
    accept: Annotated[
        bool, typer.Option("--accept", help="Go on with a study.toml that shows something else than it did.")
    ] = False,
) -> int:
    """Run the study until Ctrl-C: pages for participants, and a dashboard for you behind a password.

    The first start prints the password of the dashboard, once. A restart goes on where everybody was.

    On the open internet put a proxy with https in front, and give --https and --proxy.
    """
    from evenhand.cli.study_server import Serving, serve_study

    opened, design = start_study(study, database, accept=accept)
    limit = rate or float("inf")
    serving = Serving(str(study), opened.url, host, port, workers, https=https, proxy=proxy, rate=limit)
    with opened:
        return serve_study(opened, design, serving)


@app.command()
def password(
    study: StudyFile = STUDY,
    database: Database = None,
    name: Annotated[str, typer.Option(help="Whose password; a new name is a new researcher.")] = "researcher",
    generate: Annotated[bool, typer.Option("--generate", help="Make one up and print it, instead of asking.")] = False,
) -> int:
    """Set a researcher's password for the dashboard; who is logged in by that name has to log in again."""
    from evenhand.cli.study_server import new_password, set_password

    with open_study(study, database) as opened:
        word = new_password() if generate else typer.prompt("New password", hide_input=True, confirmation_prompt=True)
        set_password(opened.study, name, word)
    print_line(f"The password of {name} is now: " if generate else f"The password of {name} is set.", word * generate)
    return FINE


@app.command()
def simulate(
    url: Annotated[str, typer.Argument(help="Where the study runs, such as http://127.0.0.1:8000.")],
    people: Annotated[int, typer.Option(min=1, help="Virtual respondents.")] = 20,
    rate: Annotated[float, typer.Option(min=0, help="How many of them arrive a second; 0 is all at once.")] = 5.0,
    think: Annotated[float, typer.Option(min=0, help="Seconds that a page takes them on average.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same characters.")] = 0,
    straight: Annotated[
        bool, typer.Option("--straight", help="Nobody reloads, goes back, sends twice, leaves or withdraws.")
    ] = False,
    study: Annotated[
        Path | None,
        typer.Option(help="The study.toml, for the right answers of its attention checks and the name of the id."),
    ] = None,
) -> int:
    """Send virtual respondents through a running study, over HTTP, to see whether it holds.

    They answer as simulated people with known weights would, and do what people do: reload, go back and change an
    answer, send a form twice or empty, leave and come back, go on elsewhere, drop out, withdraw. Their answers are
    stored like all others: use a database of its own. The exit code is 1 when the server did what it should not.
    """
    from evenhand.study.bots import STRAIGHT, Answers, Crowd, Manners, right_answers, visit_study
    from evenhand.study.spec import read_study

    spec: StudySpec | None = read_study(study) if study is not None else None
    crowd = Crowd(
        people,
        rate,
        think,
        seed,
        answers=Answers(right=right_answers(spec) if spec else {}),
        manners=STRAIGHT if straight else Manners(),
        parameter=spec.recruitment.id_parameter if spec else "PROLIFIC_PID",
    )
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Virtual respondents"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=people)
        walks = visit_study(url, crowd, lambda _: bar.advance(task))
    return _tell(walks)


def _tell(walks: Sequence[Walk]) -> int:
    """Print what became of a crowd; return the exit code."""
    import numpy as np

    from evenhand.study.bots import count_events

    words = {
        "finished": "finished",
        "dropped": "dropped out",
        "withdrew": "withdrew",
        "full": "found the study full",
        "closed": "found it closed",
        "failed": "failed",
    }
    ended = [walk.ended for walk in walks]
    parts = [f"{ended.count(name)} {said}" for name, said in words.items() if name in ended]
    print_line(f"{count(len(walks), 'virtual respondent')}: {', '.join(parts)}.")
    seconds = [second for walk in walks for second in walk.seconds]
    answers = sum(len(walk.acknowledged) for walk in walks)
    if seconds:
        middle, slow = 1_000 * np.percentile(seconds, [50, 99])
        took = f"an answer and the next page took {middle:.0f} ms (median), {slow:.0f} ms at most for 99 of 100"
        print_line(f"{count(answers, 'page')} answered and acknowledged; {took}.")
    strayed = count_events(walks)
    if strayed:
        print_line(f"On the way: {', '.join(f'{name} {times:,} times' for name, times in strayed.most_common())}.")
    faults = [fault for walk in walks for fault in walk.faults]
    if not faults:
        out.print("The server did nothing that it should not.")
        return FINE
    for fault in faults[:20]:
        print_error(fault)
    print_error(
        f"{count(len(faults), 'fault')} of the server" + ("; the first 20 are shown." if len(faults) > 20 else ".")
    )
    return BROKEN


study_data.add_commands(app)
