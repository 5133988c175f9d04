"""The commands of `evenhand study` about people: who was recruited, whom to pay, and who wants to be forgotten."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.console import BROKEN, FINE, print_error, print_line
from evenhand.cli.study_data import STUDY, Database, OutFile, StudyFile, deliver, note, open_study
from evenhand.errors import ConfigError, count

if TYPE_CHECKING:
    from evenhand.study.people import RecruitCheck

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]
_MOST_IDS = 10


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (recruits, bonus, withdraw, erase_ids):
        app.command(command.__name__.replace("_", "-"))(command)


def recruits(
    export: Annotated[Path, typer.Argument(help="The recruiter's export, such as Prolific's CSV of demographic data.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV to write: everybody by every filter.")
    ] = None,
) -> int:
    """Check the people of a study against `filters` of [recruitment], in the recruiter's export.

    It says who breaks which filter, of whom the recruiter does not tell, who is in one list but not in the other, and
    which filters cannot be checked. The exit code is 1 when somebody breaks a filter.
    """
    from evenhand.study.people import RecruitRecord, check_recruits
    from evenhand.study.schema import write_csv

    with open_study(study, database) as opened:
        found = check_recruits(export, opened.study.participants.recruits(), opened.spec.recruitment)
    meets, broken, unknown = (found.people(status) for status in ("meets", "breaks", "unknown"))
    checked = count(len(broken) + len(unknown) + len(meets), "person", "people")
    print_line(
        f"{checked} checked: {len(meets):,} meet every filter, {len(broken):,} break one, of {len(unknown):,} the "
        "recruiter does not tell."
    )
    for one in found.records:
        if one.status == "breaks":
            print_line(f"  {one.recruitment_id} ({one.participant}): {one.column} is {one.value!r}, not {one.asked}")
    _tell_unmatched(found)
    if out_file is not None:
        rows = [asdict(one) for one in found.records]
        names = [field.name for field in fields(RecruitRecord)]
        deliver(write_csv({name: [row[name] for row in rows] for name in names}).encode(), out_file, "the check")
    return BROKEN if broken else FINE


def _tell_unmatched(found: RecruitCheck) -> None:
    """Say who is in one list but not in the other, and what could not be checked."""
    lists = {
        "in the study, but not in the export": found.unmatched,
        "in the export, but not in the study": found.absent,
        "in the export with different values in several rows": found.repeated,
        "in the study without an id": found.without_id,
    }
    for words, ids in lists.items():
        if ids:
            more = ", ..." if len(ids) > _MOST_IDS else ""
            print_line(f"  {count(len(ids), 'person', 'people')} {words}: {', '.join(ids[:_MOST_IDS])}{more}")
    for sentence in found.unchecked:
        print_error(f"Not checked: {sentence}")


def bonus(study: StudyFile = STUDY, database: Database = None, out_file: OutFile = None) -> int:
    """Write whom to pay which bonus, by recruitment id, as CSV; only truth-serum bonuses follow from the answers."""
    from evenhand.study.schema import write_csv
    from evenhand.study.server.researcher import bonus_list

    with open_study(study, database) as opened:
        rows = opened.study.participants.bonus_rows()
        paid = bonus_list(opened.study.results.responses(), rows, opened.spec)
    summary = (
        f"{count(len(paid['participant']), 'bonus', 'bonuses')} for {count(len(rows), 'person', 'people')} who finished"
    )
    deliver(write_csv(paid).encode(), out_file, summary)
    if any(name is None for name in paid["recruitment_id"]):
        print_error("Some of them have no recruitment id: they came without one, or the ids were erased.")
    if any(bonus.by == "reasons" for bonus in opened.spec.payment.bonuses):
        print_error("Bonuses for the best reasons are not in it: somebody has to rate the reasons first.")
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
        person = opened.study.participants.by_recruitment_id(who)
        code = who if person is None else person.code
        if not opened.study.participants.withdraw(code):
            raise ConfigError(f"there is no participant {who!r} in {opened.spec.name}.")
        note(opened, "deleted the answers of a person", code)
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
        erased = opened.study.participants.erase_recruitment_ids()
        note(opened, "erased the recruitment ids", f"{erased:,}")
        clean = opened.study.participants.empty_log()
    print_line(f"{count(erased, 'recruitment id')} deleted.")
    if not clean:
        print_error("A reading that is still under way keeps them in the log of the database; they go when it is over.")
    return FINE
