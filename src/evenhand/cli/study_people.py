"""The commands of `evenhand study` on people: recruits, bonuses, ratings, withdrawals."""

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

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
_MOST_IDS = 10


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (recruits, ratings, bonus, withdraw, erase_ids):
        app.command(command.__name__.replace("_", "-"))(command)


def recruits(
    export: Annotated[Path, typer.Argument(help="The recruiter's export, such as Prolific's CSV of demographic data.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV to write: every person by every filter.")
    ] = None,
) -> int:
    """Check a study's participants against the `filters` in [recruitment], using the recruiter's export.

    It lists who breaks which filter, who has missing data, who is in one list but not in the other, and which filters
    cannot be checked. The exit code is 1 if somebody breaks a filter.
    """
    from evenhand.core.csv_text import write_csv
    from evenhand.study.people import RecruitRecord, check_recruits

    with open_study(study, database) as opened:
        check = check_recruits(export, opened.study.participants.recruits(), opened.spec.recruitment)
    meets, broken, unknown = (check.people(status) for status in ("meets", "breaks", "unknown"))
    checked = count(len(broken) + len(unknown) + len(meets), "person", "people")
    print_line(
        f"{checked} checked: {len(meets):,} meet every filter, {len(broken):,} break one; about "
        f"{len(unknown):,} the recruiter does not say."
    )
    for record in check.records:
        if record.status == "breaks":
            who = f"{record.recruitment_id} ({record.participant})"
            print_line(f"  {who}: {record.column} is {record.value!r}, not {record.asked}")
    _print_unmatched(check)
    if out_file is not None:
        rows = [asdict(record) for record in check.records]
        names = [field.name for field in fields(RecruitRecord)]
        deliver(write_csv({name: [row[name] for row in rows] for name in names}).encode(), out_file, "the check")
    return BROKEN if broken else FINE


def _print_unmatched(check: RecruitCheck) -> None:
    """Print the ids in only one of the lists, and the filters that could not be checked."""
    lists = {
        "in the study, but not in the export": check.unmatched,
        "in the export, but not in the study": check.absent,
        "in the export with different values in several rows": check.repeated,
        "in the study without an id": check.without_id,
    }
    for words, ids in lists.items():
        if ids:
            more = ", ..." if len(ids) > _MOST_IDS else ""
            print_line(f"  {count(len(ids), 'person', 'people')} {words}: {', '.join(ids[:_MOST_IDS])}{more}")
    for sentence in check.unchecked:
        print_error(f"Not checked: {sentence}")


def bonus(study: StudyFile = STUDY, database: Database = None, out_file: OutFile = None) -> int:
    """Write which bonus to pay to whom, by recruitment id, as CSV.

    Truth-serum bonuses follow from the answers, and those for the best reasons from the points of two raters.
    """
    from evenhand.core.csv_text import write_csv
    from evenhand.study.ratings import RatedReasons
    from evenhand.study.server.bonuses import bonus_list, bonus_problem

    with open_study(study, database) as opened:
        rows, responses = opened.study.participants.bonus_rows(), opened.study.results.responses()
        ratings, spec = opened.study.ratings.all(), opened.spec
    paid, rated = bonus_list(responses, rows, spec, ratings), RatedReasons.of(responses, ratings, spec.rationales)
    summary = (
        f"{count(len(paid['participant']), 'bonus', 'bonuses')} for {count(len(rows), 'person', 'people')} who finished"
    )
    deliver(write_csv(paid).encode(), out_file, summary)
    if any(name is None for name in paid["recruitment_id"]):
        print_error("Some of them have no recruitment id: they came without one, or the ids were erased.")
    for bonus in spec.payment.bonuses:
        why = bonus_problem(bonus, rated) if bonus.by == "reasons" else None
        if why is not None:
            print_error(f"Bonuses for the best reasons are not in it: {why}.")
    return FINE


def ratings(study: StudyFile = STUDY, database: Database = None, out_file: OutFile = None) -> int:
    """Show how far the raters of reasons are and how well they agree; with --out, write the ratings as CSV.

    A row is one rating: `reason`, `rater`, `rating`, `left_out`. `eh.agreement` reads it.
    """
    from evenhand.core.csv_text import write_csv
    from evenhand.study.ratings import RatedReasons

    with open_study(study, database) as opened:
        responses, ratings, spec = opened.study.results.responses(), opened.study.ratings.all(), opened.spec
    if not spec.rationales.raters:
        raise ConfigError("nobody rates the reasons of this study; name two `raters` in [rationales].")
    rated = RatedReasons.of(responses, ratings, spec.rationales)
    print_line(f"{count(len(rated.reasons), 'reason')} of people who finished; {rated.by_both:,} rated by both raters.")
    for row in rated.agreement:
        shown = row.status if row.value is None else f"{row.value:.3f}"
        ends = "" if row.low is None or row.high is None else f" ({row.low:.3f} to {row.high:.3f})"
        print_line(f"  {row.what}: {row.title}: {shown}{ends}, {count(row.n, 'reason')}")
    if out_file is not None:
        content = write_csv(rated.columns()).encode()
        deliver(content, out_file, count(len(ratings), "rating"))
    return FINE


def withdraw(
    who: Annotated[str, typer.Argument(help="The participant's code in exports, or their recruitment id.")],
    study: Annotated[Path, typer.Option(help="The study.toml of the study.")] = STUDY,
    database: Database = None,
    yes: Yes = False,
) -> int:
    """Permanently delete all answers of one participant; a record that they withdrew remains."""
    with open_study(study, database) as opened:
        if not yes:
            typer.confirm(f"Delete all answers of {who}?", abort=True)
        person = opened.study.participants.by_recruitment_id(who)
        code = who if person is None else person.code
        if not opened.study.participants.withdraw(code):
            raise ConfigError("there is no participant {who!r} in {name}.", who=who, name=opened.spec.name)
        note(opened, "deleted the answers of a person", code)
    print_line(f"The answers of {who} are deleted.")
    return FINE


def erase_ids(study: StudyFile = STUDY, database: Database = None, yes: Yes = False) -> int:
    """Permanently delete all recruitment ids. Pay people first: nobody can be paid by id afterwards.

    Answers stay, under their random codes. Earlier backups still contain the ids.
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
