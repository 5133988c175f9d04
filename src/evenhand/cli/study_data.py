"""The commands of `evenhand study` that read, manage or test a study's answers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from evenhand.cli.console import BROKEN, FINE, err, out, print_error, print_line, print_summary, progress
from evenhand.errors import ConfigError, count, require_choice, require_extra
from evenhand.messages import Argument

if TYPE_CHECKING:
    from evenhand.run.audit import Audit
    from evenhand.study.bots import Visit
    from evenhand.study.bots.visitor import Ending
    from evenhand.study.flow.design import Design
    from evenhand.study.responses import Responses
    from evenhand.study.spec import StudySpec
    from evenhand.study.store import Store, Study

STUDY = Path("study.toml")
StudyFile = Annotated[Path, typer.Argument(help="The study.toml of the study.")]
Database = Annotated[
    str | None,
    typer.Option(
        envvar="EVENHAND_STUDY_DATABASE",
        show_default="study.db beside the study.toml",
        help="Where answers are stored: the path of a SQLite file, or postgresql://USER:PASSWORD@HOST/NAME.",
    ),
]
OutFile = Annotated[Path | None, typer.Option("--out", "-o", help="File to write (default: standard output).")]
_ENDINGS: dict[Ending, str] = {
    "finished": "finished",
    "dropped": "dropped out",
    "withdrew": "withdrew",
    "full": "found the study full",
    "closed": "found it closed",
    "failed": "failed",
}


@dataclass(frozen=True)
class Opened:
    """An open study with its database; `url` is the address of the database."""

    spec: StudySpec
    study: Study
    store: Store
    url: str

    @property
    def shown(self) -> str:
        """The address of the database without a password."""
        return self.store.database.shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def open_study(path: Path, database: str | None) -> Opened:
    """Open the database of a study that has been served, even if its study.toml has changed."""
    _require_server()
    from evenhand.study.spec import read_study
    from evenhand.study.store import open_store

    spec, url = read_study(path), database_of(path, database)
    with _closed_on_failure(open_store(url)) as store:
        return Opened(spec, store.study(spec.name), store, url)


def start_study(path: Path, database: str | None, *, accept: bool = False) -> tuple[Opened, Design]:
    """Load and check a study, and open its database, creating database and study if needed."""
    _require_server()
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study
    from evenhand.study.store import open_store

    design = load_design(read_study(path))
    url = database or str(path.with_suffix(".db"))
    with _closed_on_failure(open_store(url)) as store:
        return Opened(design.spec, store.register(design, accept=accept), store, url), design


@contextmanager
def _closed_on_failure(store: Store) -> Iterator[Store]:
    try:
        yield store
    except BaseException:
        store.close()
        raise


def database_of(path: Path, database: str | None) -> str:
    """Return the address of a study's database; raise if it is a missing file."""
    url = database or str(path.with_suffix(".db"))
    if "://" not in url and not Path(url).exists():
        raise ConfigError("there is no database '{url}' yet; evenhand study serve {path} makes it.", url=url, path=path)
    return url


def _require_server() -> None:
    for module in ("sqlalchemy", "fastapi", "uvicorn"):
        require_extra(module, "study", "a study on a web server")


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (simulate, status, export, analyze, backup, close, reopen):
        app.command(command.__name__.replace("_", "-"))(command)


def simulate(
    *,
    url: Annotated[str, typer.Argument(help="Where the study runs, such as http://127.0.0.1:8000.")],
    people: Annotated[int, typer.Option(min=1, help="Virtual respondents.")] = 20,
    rate: Annotated[float, typer.Option(min=0, help="How many arrive per second; 0 means all at once.")] = 5.0,
    think: Annotated[float, typer.Option(min=0, help="Average seconds per page.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same respondents.")] = 0,
    drop: Annotated[float, typer.Option(min=0, max=1, help="Share who leave before the end.")] = 0.1,
    study: Annotated[
        Path | None,
        typer.Option(help="The study.toml, for the correct answers to its attention checks and the name of the id."),
    ] = None,
) -> int:
    """Send virtual respondents through a running study over HTTP, to test it.

    They answer as simulated people with known weights would. Their answers are stored like all others, so use a
    separate database. The exit code is 1 if the server misbehaved.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from evenhand.study.bots import AnswerModel, Visitors, right_answers, visit_study
    from evenhand.study.spec import read_study

    spec: StudySpec | None = read_study(study) if study is not None else None
    visitors = Visitors(
        people=people,
        rate=rate,
        think=think,
        seed=seed,
        answers=AnswerModel(right=right_answers(spec) if spec else {}),
        drop=drop,
        parameter=spec.recruitment.id_parameter if spec else "PROLIFIC_PID",
    )
    columns = (TextColumn("Virtual respondents"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=people)
        visits = visit_study(url, visitors, lambda _: bar.advance(task))
    return _report(visits)


def _report(visits: Sequence[Visit]) -> int:
    """Print the results of virtual respondents; return the exit code."""
    import numpy as np

    from evenhand.study.bots import count_events

    endings = Counter(visit.ended for visit in visits)
    parts = [f"{endings[name]} {words}" for name, words in _ENDINGS.items() if endings[name]]
    print_line(f"{count(len(visits), 'virtual respondent')}: {', '.join(parts)}.")
    seconds = [second for visit in visits for second in visit.seconds]
    answers = sum(len(visit.acknowledged) for visit in visits)
    if seconds:
        middle, slow = 1_000 * np.percentile(seconds, [50, 99])
        took = f"an answer and the next page took {middle:.0f} ms (median), {slow:.0f} ms at most for 99 of 100"
        print_line(f"{count(answers, 'page')} answered and acknowledged; {took}.")
    events = count_events(visits)
    if events:
        print_line(f"On the way: {', '.join(f'{name} {times:,} times' for name, times in events.most_common())}.")
    return _report_faults([fault for visit in visits for fault in visit.faults])


def _report_faults(faults: Sequence[str]) -> int:
    if not faults:
        out.print("The server did nothing that it should not.")
        return FINE
    for fault in faults[:20]:
        print_error(fault)
    shown = "; the first 20 are shown." if len(faults) > 20 else "."
    print_error(f"{count(len(faults), 'fault')} of the server{shown}")
    return BROKEN


def status(study: StudyFile = STUDY, database: Database = None) -> int:
    """Show how many people came, how far they are, and the results of the attention checks."""
    with open_study(study, database) as opened:
        counts, spec, closed = opened.study.results.counts(), opened.spec, opened.study.closed
    state = "closed: nobody new is taken in" if closed else "open"
    print_line(f"{spec.words(spec.title)} ({spec.name}, {spec.kind} study), {state}")
    head = ("", "enrolled", "active", "away", "dropped out", "finished", "withdrawn")
    rows = [astuple(replace(row, condition=row.condition or "all")) for row in counts.conditions]
    for row in (head, *rows):
        print_line(f"  {row[0]!s:<16}" + "".join(f"{cell!s:>12}" for cell in row[1:]))
    for trait in counts.traits:
        most = "" if trait.most is None else f" (at most {trait.most:,})"
        print_line(
            f"  {trait.question}, {trait.answer}: {trait.taking_part:,} take part{most}, {trait.finished:,} finished"
        )
    for check in counts.checks:
        print_line(f"  Attention check {check.check}: {check.passed:,} passed, {check.failed:,} failed")
    last = f"; the last at {counts.last_answer:%Y-%m-%d %H:%M:%S} UTC" if counts.last_answer else ""
    noun = "pairs" if spec.kind == "effort" else "cases"
    print_line(f"  {count(counts.answers, 'answer')} to {noun}{last}")
    return FINE


def export(
    study: StudyFile = STUDY,
    database: Database = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv, parquet or json (default: the ending of --out, or csv).")
    ] = None,
    out_file: OutFile = None,
    audit: Annotated[
        Path | None, typer.Option(help="Folder for cases.csv, answers.csv and the audit.toml that audits them.")
    ] = None,
) -> int:
    """Write the answers as a tidy table: one row for each pair or case that a person judged.

    People are identified by a random code, not by their recruitment id. In CSV, text that a spreadsheet would run as a
    formula starts with an apostrophe, which `eh.study.read_responses` removes. With --audit, a disagreement study is
    written in the form `evenhand audit` reads, by kind of critic if the study asks for it.
    """
    from evenhand.study.server import researcher as exports

    if form is None:
        ending = "csv" if out_file is None else out_file.suffix.lower().removeprefix(".")
        form = ending if ending in exports.FORMATS else "csv"
    require_choice("--format", form, exports.FORMATS)
    if form == "parquet" and out_file is None:
        raise ConfigError("Parquet is no text; name a file with --out.")
    with open_study(study, database) as opened:
        responses = opened.study.results.responses()
    if audit is not None:
        from evenhand.study.template import save_audit

        files = save_audit(responses, opened.spec, audit)
        print_line(f"Wrote {files[0]}. Then: evenhand audit {files[0]}")
        return FINE
    wanted: exports.Format = "csv" if form == "csv" else "parquet" if form == "parquet" else "json"
    people, answers = len(responses.people["participant"]), len(responses.person)
    summary = f"{count(people, 'person', 'people')}, {count(answers, 'answer')}"
    deliver(exports.export(responses, wanted), out_file, summary)
    return FINE


def analyze(
    *,
    study: StudyFile = STUDY,
    database: Database = None,
    responses: Annotated[Path | None, typer.Option(help="An export to analyse instead of the database.")] = None,
    by: Annotated[
        str | None,
        typer.Option(help="The question that gives the kind of critic (default: `stakeholder`)."),
    ] = None,
    out_folder: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for report.html, results.json and run.json.")
    ] = Path("out"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Analyse the answers as [analysis] in study.toml says: summary on the terminal, report in a folder.

    Effort: whether people's overall judgement follows trajectory or total. Disagreement: the audit of the cases, by
    kind of critic if the study asks for it.
    """
    from evenhand.study.live import audit_study

    answers, spec = _answers(study, database, responses)
    if not len(answers.person):
        raise ConfigError("nobody has answered yet; there is nothing to analyse.")
    with progress(quiet):
        audit = audit_study(answers, spec, by)
        files = audit.save(out_folder)
    if not quiet:
        print_summary(audit)
        for line in _left_out(audit):
            print_line(line)
        print_line("\nReport: ", str(files["report.html"]))
    return FINE


def _left_out(audit: Audit) -> Iterator[str]:
    """Yield a line on the people excluded from the analysis, by rule."""
    left_out = [
        entry
        for result in audit.results.values()
        for entry in result.left_out
        if entry.reason.id == "responses.people_who"
    ]
    excluded = [_excluded(entry.n, **entry.reason.args) for entry in left_out]
    yield f"Left out: {'; '.join(excluded)}." if excluded else "No exclusion rule left anybody out."


def _excluded(people: int, rule: Argument, limit: Argument, answers: Argument) -> str:
    return f"{count(people, 'person', 'people')} who {limit} ({answers}) (`{rule}`)"


def _answers(study: Path, database: str | None, file: Path | None) -> tuple[Responses, StudySpec]:
    if file is None:
        with open_study(study, database) as opened:
            return opened.study.results.responses(), opened.spec
    from evenhand.study.responses import read_responses
    from evenhand.study.spec import read_study

    spec = read_study(study)
    return read_responses(file, spec.kind, points=len(spec.scale)), spec


def backup(
    target: Annotated[Path, typer.Argument(help="File to write; it must not exist yet.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
) -> int:
    """Copy the database into one file while the server runs: a consistent snapshot.

    The copy contains everything in the database, including recruitment ids and the cookie key: keep it equally safe.
    """
    from evenhand.study.store import backup as copy

    copy(database_of(study, database), target)
    print_line(f"Wrote {target}, {count(target.stat().st_size, 'byte')}.")
    return FINE


def close(study: StudyFile = STUDY, database: Database = None) -> int:
    """Admit no new people; those who have started can finish."""
    with open_study(study, database) as opened:
        opened.study.close()
        note(opened, "closed the study")
    print_line(f"{opened.spec.name} is closed. evenhand study reopen opens it again.")
    return FINE


def reopen(study: StudyFile = STUDY, database: Database = None) -> int:
    """Admit new people again."""
    with open_study(study, database) as opened:
        opened.study.reopen()
        note(opened, "reopened the study")
    print_line(f"{opened.spec.name} is open.")
    return FINE


def note(opened: Opened, action: str, detail: str = "") -> None:
    """Log an action of the command line."""
    opened.study.researchers.log("command line", action, detail)


def deliver(content: bytes, target: Path | None, summary: str) -> None:
    """Write content to a file readable only by its owner, or to standard output."""
    if target is None:
        sys.stdout.write(content.decode())
        return
    try:
        # The content includes answers, and sometimes identities.
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise ConfigError(
            "'{target}' cannot be written: {value}.", target=target, value=error.strerror or error
        ) from error
    print_line(f"Wrote {target}: {summary}.")
