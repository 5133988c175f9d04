"""The commands of `evenhand study` that look at a study's answers or take care of them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from evenhand.cli.console import FINE, out, print_error, print_line, progress
from evenhand.errors import ConfigError, count, require_choice, require_extra

if TYPE_CHECKING:
    from evenhand.report.audit import Audit
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
        help="Where answers are: the path of a SQLite file, or postgresql://USER:PASSWORD@HOST/NAME.",
    ),
]
OutFile = Annotated[Path | None, typer.Option("--out", "-o", help="File to write; by default standard output.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]


@dataclass(frozen=True)
class Opened:
    """A study with its database: `url` is where it is, `shown` the same without a password."""

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
    """Open the database of a study that has been served before, whatever its study.toml says by now."""
    _require_server()
    from evenhand.study.spec import read_study
    from evenhand.study.store import open_store

    spec, url = read_study(path), database_of(path, database)
    store = open_store(url)
    try:
        return Opened(spec, store.study(spec.name), store, url)
    except BaseException:
        store.close()
        raise


def start_study(path: Path, database: str | None, *, accept: bool = False) -> tuple[Opened, Design]:
    """Check a study with its sets or cases, and open its database; both are made where there are none."""
    _require_server()
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study
    from evenhand.study.store import open_store

    design = load_design(read_study(path))
    url = database or str(path.with_suffix(".db"))
    store = open_store(url)
    try:
        return Opened(design.spec, store.register(design, accept=accept), store, url), design
    except BaseException:
        store.close()
        raise


def database_of(path: Path, database: str | None) -> str:
    """Return where the answers of a study are; a file must be there."""
    url = database or str(path.with_suffix(".db"))
    if "://" not in url and not Path(url).exists():
        raise ConfigError(f"there is no database '{url}' yet; evenhand study serve {path} makes it.")
    return url


def _require_server() -> None:
    for module in ("sqlalchemy", "fastapi", "uvicorn"):
        require_extra(module, "study", "a study on a web server")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for name, command in (
        ("status", status),
        ("export", export),
        ("analyze", analyze),
        ("bonus", bonus),
        ("backup", backup),
        ("close", close),
        ("reopen", reopen),
        ("withdraw", withdraw),
        ("erase-ids", erase_ids),
    ):
        app.command(name)(command)


def status(study: StudyFile = STUDY, database: Database = None) -> int:
    """Show how many people came, how far they are, and how the attention checks went."""
    with open_study(study, database) as opened:
        found, spec, closed = opened.study.counts(), opened.spec, opened.study.closed
    state = "closed: nobody new is taken in" if closed else "open"
    print_line(f"{spec.words(spec.title)} ({spec.name}, {spec.kind} study), {state}")
    head = ("", "enrolled", "active", "away", "dropped out", "finished", "withdrawn")
    rows = [
        (one.condition or "all", one.enrolled, one.active, one.away, one.abandoned, one.finished, one.withdrawn)
        for one in found.conditions
    ]
    for row in (head, *rows):
        print_line(f"  {row[0]!s:<16}" + "".join(f"{cell!s:>12}" for cell in row[1:]))
    for check in found.checks:
        print_line(f"  Attention check {check.check}: {check.passed:,} passed, {check.failed:,} failed")
    last = f"; the last at {found.last_answer:%Y-%m-%d %H:%M:%S} UTC" if found.last_answer else ""
    noun = "pairs" if spec.kind == "effort" else "cases"
    print_line(f"  {count(found.answers, 'answer')} to {noun}{last}")
    return FINE


def export(
    study: StudyFile = STUDY,
    database: Database = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv, parquet or json; by default what --out ends with, else csv.")
    ] = None,
    out_file: OutFile = None,
) -> int:
    """Write the answers as a tidy table: one row for each pair or case that a person judged.

    People are called by a random code; recruitment ids are not in it. In CSV an apostrophe stands before text that a
    spreadsheet would run as a formula; `eh.study.read_responses` takes it away again.
    """
    from evenhand.study.server import exports

    if form is None:
        ending = "csv" if out_file is None else out_file.suffix.lower().removeprefix(".")
        form = ending if ending in exports.FORMATS else "csv"
    require_choice("--format", form, exports.FORMATS)
    if form == "parquet" and out_file is None:
        raise ConfigError("Parquet is no text; name a file with --out.")
    with open_study(study, database) as opened:
        responses = opened.study.responses()
    wanted: exports.Format = "csv" if form == "csv" else "parquet" if form == "parquet" else "json"
    _deliver(exports.export(responses, wanted), out_file, _told(responses))
    return FINE


def analyze(
    study: StudyFile = STUDY,
    database: Database = None,
    responses: Annotated[
        Path | None, typer.Option(help="An export to analyse instead of what is in the database.")
    ] = None,
    out_folder: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for report.html, results.json and run.json.")
    ] = Path("out"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> int:
    """Analyse the answers as [analysis] of study.toml says: summary on the terminal, report in a folder.

    Effort: what people's overall judgement follows, trajectory or total. Feedback: the disagreement audit of the cases.
    """
    from evenhand.report.text import print_summary

    answers, spec = _answers(study, database, responses)
    if not len(answers.person):
        raise ConfigError("nobody has answered yet; there is nothing to analyse.")
    with progress(quiet):
        audit = _analysis(answers, spec)
        files = audit.save(out_folder)
    if not quiet:
        print_summary(audit, out)
        print_line("\nReport: ", str(files["report.html"]))
    return FINE


def _answers(study: Path, database: str | None, file: Path | None) -> tuple[Responses, StudySpec]:
    if file is None:
        with open_study(study, database) as opened:
            return opened.study.responses(), opened.spec
    from evenhand.study.responses import read_responses
    from evenhand.study.spec import read_study

    spec = read_study(study)
    return read_responses(file, spec.kind, points=len(spec.scale)), spec


def _analysis(responses: Responses, spec: StudySpec) -> Audit:
    from evenhand.report.audit import audit

    about = {"title": spec.words(spec.title), "system": f"the study {spec.name}"}
    if spec.feedback is None:
        return audit(responses, study=spec.analysis, report=about)
    from evenhand.study.exclusions import apply_exclusions
    from evenhand.study.responses import read_columns
    from evenhand.table import Table

    asked, kept = spec.feedback, apply_exclusions(responses, spec.analysis.exclusions)
    if not len(kept.person):
        raise ConfigError("[analysis.exclusions] leaves out everybody who answered; there is nothing to analyse.")
    columns, _ = read_columns(spec.folder / asked.cases)
    wanted = {asked.id, asked.decision, *asked.groups}
    table = Table({name: columns[name] for name in wanted}, id=asked.id, groups=list(asked.groups))
    # Where people may also just disagree, an answer has no direction of its own.
    directed = "disagree" not in asked.answers
    answer = [word if directed or word == "agree" else "disagree" for word in kept.answers["answer"]]
    said = {"case": kept.answers["item"], "critic": kept.people["participant"][kept.person], "answer": answer}
    settings = {
        "decision": asked.decision,
        "critic": "critic",
        "answer": "answer",
        "case": "case",
        "answers": {"data": said, "labels": list(asked.labels), "ordered": True if directed else None},
        "seed": spec.analysis.seed,
        "confidence": spec.analysis.confidence,
    }
    return audit(table, disagreement=settings, report=about)


def bonus(study: StudyFile = STUDY, database: Database = None, out_file: OutFile = None) -> int:
    """Write whom to pay which bonus, by recruitment id, as CSV; only truth-serum bonuses follow from the answers."""
    from evenhand.study.responses import write_csv
    from evenhand.study.server.exports import bonus_list

    with open_study(study, database) as opened:
        rows = opened.study.bonus_rows()
        paid = bonus_list(opened.study.responses(), rows, opened.spec)
    told = (
        f"{count(len(paid['participant']), 'bonus', 'bonuses')} for {count(len(rows), 'person', 'people')} who finished"
    )
    _deliver(write_csv(paid).encode(), out_file, told)
    if any(name is None for name in paid["recruitment_id"]):
        print_error("Some of them have no recruitment id: they came without one, or the ids were erased.")
    if any(one.by == "reasons" for one in opened.spec.payment.bonuses):
        print_error("Bonuses for the best reasons are not in it: somebody has to rate the reasons first.")
    return FINE


def backup(
    target: Annotated[Path, typer.Argument(help="File to write; it must not be there yet.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
) -> int:
    """Copy the database into one file while the server runs: the state of one moment, answers and all.

    The copy holds what the database holds, also recruitment ids and the key of the cookies: keep it as safe.
    """
    from evenhand.study.store import backup as copy

    copy(database_of(study, database), target)
    print_line(f"Wrote {target}, {count(target.stat().st_size, 'byte')}.")
    return FINE


def close(study: StudyFile = STUDY, database: Database = None) -> int:
    """Take nobody new in; who is in the middle can finish."""
    with open_study(study, database) as opened:
        opened.study.close()
        _note(opened, "closed the study")
    print_line(f"{opened.spec.name} is closed. evenhand study reopen opens it again.")
    return FINE


def reopen(study: StudyFile = STUDY, database: Database = None) -> int:
    """Take people in again."""
    with open_study(study, database) as opened:
        opened.study.reopen()
        _note(opened, "reopened the study")
    print_line(f"{opened.spec.name} is open.")
    return FINE


def withdraw(
    who: Annotated[str, typer.Argument(help="The participant's code, as exports call them, or recruitment id.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
    yes: Yes = False,
) -> int:
    """Delete all answers of one participant, for good; that they took part and withdrew stays known."""
    with open_study(study, database) as opened:
        if not yes:
            typer.confirm(f"Delete all answers of {who}?", abort=True)
        person = opened.study.person_by_recruitment(who)
        code = who if person is None else person.code
        if not opened.study.withdraw(code):
            raise ConfigError(f"there is no participant {who!r} in {opened.spec.name}.")
        _note(opened, "deleted the answers of a person", code)
    print_line(f"The answers of {who} are deleted.")
    return FINE


def erase_ids(study: StudyFile = STUDY, database: Database = None, yes: Yes = False) -> int:
    """Delete the recruitment ids of everybody, for good: pay people first, for nobody can be paid by id afterwards.

    Answers stay, under their random codes. Backups made before still hold the ids.
    """
    with open_study(study, database) as opened:
        if not opened.study.closed:
            print_error("The study is open: who took part can take part again, unknown, once the ids are gone.")
        if not yes:
            typer.confirm("Delete the recruitment ids of all participants?", abort=True)
        erased = opened.study.erase_recruitment_ids()
        _note(opened, "erased the recruitment ids", f"{erased:,}")
        clean = opened.study.empty_log()
    print_line(f"{count(erased, 'recruitment id')} deleted.")
    if not clean:
        print_error("A reading that is still under way keeps them in the log of the database; they go when it is over.")
    return FINE


def _note(opened: Opened, action: str, detail: str = "") -> None:
    """Write into the log of actions what was done from the command line."""
    opened.study.log("command line", action, detail)


def _told(responses: Responses) -> str:
    people, answers = len(responses.people["participant"]), len(responses.person)
    return f"{count(people, 'person', 'people')}, {count(answers, 'answer')}"


def _deliver(content: bytes, target: Path | None, told: str) -> None:
    if target is None:
        sys.stdout.write(content.decode())
        return
    try:
        # What people said, and sometimes who they are: for nobody else on this machine.
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise ConfigError(f"'{target}' cannot be written: {error.strerror or error}.") from error
    print_line(f"Wrote {target}: {told}.")
