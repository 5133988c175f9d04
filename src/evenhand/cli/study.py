"""`evenhand study`: commands that create and serve a study."""

from __future__ import annotations

import gc
import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import study_data, study_people
from evenhand.cli.console import FINE, print_error, print_line
from evenhand.cli.study_data import STUDY, Database, Opened, StudyFile, open_study, start_study
from evenhand.errors import ConfigError, EvenhandError, require_name

if TYPE_CHECKING:
    from fastapi import FastAPI

    from evenhand.cli.proposal import Proposal
    from evenhand.study.flow.design import Design
    from evenhand.study.schema import Kind
    from evenhand.study.store import Study

_SWITCH = 0.001
"""Thread switch interval in seconds, a fifth of the default, to keep response times short."""
_SETTINGS = "EVENHAND_STUDY_SERVING"
RESEARCHER = "researcher"
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_MOST_SHOWN = 8
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run human studies: write one down, put it on a web server, analyse the answers.\n\n"
    "Start with `evenhand study new FOLDER --kind effort`, then `evenhand study serve FOLDER/study.toml`. "
    "While it runs: `status`, `simulate`, `backup`. At the end: `close`, `export`, `analyze`, `bonus`, `erase-ids`.",
)


@app.command()
def new(
    *,
    folder: Annotated[Path, typer.Argument(help="Folder of the study; created if it does not exist.")],
    kind: Annotated[
        str,
        typer.Option(help="effort: people compare pairs. disagreement: people judge decisions.", show_default=False),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Your own sets (effort: a JSON file of design_sets() for each condition; can be repeated) or cases "
            "(disagreement: one CSV, Parquet or JSON file). The default is synthetic ones, to try it out."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of --data that identifies a case (disagreement).")
    ] = None,
    decision: Annotated[
        str | None, typer.Option(help="Column of --data with what the system decided (disagreement).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> int:
    """Write a study.toml and its materials, ready for `evenhand study serve`.

    Then edit the texts in study.toml, and replace the synthetic sets or cases.
    """
    from evenhand.study import template
    from evenhand.study.schema import kind_of, save_text

    study_kind, files = kind_of(kind, "--kind"), data or []
    settings, unseen = _own_data(study_kind, files, id_column, decision) if files else ({}, [])
    if study_kind == "disagreement":
        settings["checks"] = template.spread_checks(settings.get("cases", template.CASES)["per_critic"])
    names = [path.name for path in files] or list(template.made_up_names(study_kind))
    _make_folder(folder, ["study.toml", *names], force, [path.resolve() for path in files])
    text = template.study_template(study_kind, instructions=template.INSTRUCTIONS[study_kind], **settings)
    save_text(folder / "study.toml", text)
    for path in files:
        _copy(path, folder / path.name)
    if not files:
        template.write_made_up(folder, study_kind)
    print_line(f"Wrote {folder / 'study.toml'} and {', '.join(names)}.")
    ready = _is_ready(folder / "study.toml")
    for line in (*unseen, *_to_change(study_kind, bool(files))):
        print_line(f"  {line}")
    if ready:
        print_line(f"Then: evenhand study serve {folder / 'study.toml'}")
    return FINE


def _own_data(
    kind: Kind, data: Sequence[Path], id_column: str | None, decision: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the template's settings for the user's files, and remarks on hidden columns."""
    for path in data:
        if not path.is_file():
            raise ConfigError("there is no file '{path}'; --data takes the sets or the cases of the study.", path=path)
    if kind == "effort":
        from evenhand.study.sets import load_instrument

        for path in data:
            if path.suffix.lower() != ".json":
                raise ConfigError(
                    "--data of an effort study takes sets of people as JSON, and '{path}' is a table; make the sets "
                    "in Python: eh.study.design_sets(...).save('{stem}.json').",
                    path=path,
                    stem=path.stem,
                )
            load_instrument(path)
        return {"conditions": {path.stem: path.name for path in data}}, []
    if len(data) > 1:
        raise ConfigError(
            "a disagreement study has one file of cases; --data was given {number} times.", number=len(data)
        )
    columns, unseen = _columns(data[0], id_column, decision)
    return {"cases": columns}, unseen


def _columns(path: Path, id_column: str | None, decision: str | None) -> tuple[dict[str, Any], list[str]]:
    """Return the roles of a file's columns and remarks, from options, the template's names or guesses."""
    from evenhand.cli.proposal import propose
    from evenhand.study.schema import as_text, read_columns
    from evenhand.table.files import FileOptions
    from evenhand.table.profile import look

    seen = look(str(path), FileOptions())
    proposal, names = propose(seen), list(seen.columns)
    guesses = [*proposal.decisions, proposal.outcome]
    case = _column(path, names, ("--id", id_column), ["case", proposal.id], "identifies a case")
    decided = _column(
        path, names, ("--decision", decision), ["label", "decision", *guesses], "is what the system decided"
    )
    cells, _ = read_columns(path)
    labels = {str(label) for label in as_text(cells[decided]) if label is not None}
    groups = [name for name in proposal.groups if name in names and name not in (case, decided)][:1]
    free = [name for name in names if name not in (case, decided)]
    seen_by, unseen = _shown_columns(
        free, proposal, [name for name in free if _is_same_partition(cells[name], cells[decided])]
    )
    meaning = {
        "cases": path.name,
        "id": case,
        "decision": decided,
        "labels": sorted(labels),
        "groups": groups,
        "shown": seen_by or [decided],
        "per_critic": min(50, len(cells[case])),
    }
    return meaning, unseen


def _shown_columns(free: Sequence[str], proposal: Proposal, copies: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of a case that participants see, and remarks on the hidden columns.

    Protected groups are hidden, so that critics judge the decision and not the group; so are columns that repeat the
    decision or give the outcome of the case.
    """
    from evenhand.cli.proposal import has_role_word
    from evenhand.table.keys import shown

    groups = {*proposal.groups, *chain.from_iterable(proposal.one_hot.values())}
    reasons: dict[str, Collection[str | None]] = {
        "a protected group by its name": {*groups, *(name for name in free if has_role_word(name, "group"))},
        "the decision in other words": copies,
        "a score, a decision or an outcome": {*proposal.predictions, proposal.outcome, proposal.weight},
    }
    left, hidden = list(free), dict[str, list[str]]()
    for reason, names in reasons.items():
        hidden[reason] = [name for name in left if name in names]
        left = [name for name in left if name not in names]
    hidden[f"more than {_MOST_SHOWN} columns, which are much to read"] = left[_MOST_SHOWN:]
    lines = [f"Not shown to people ({reason}): {shown(names, 8)}." for reason, names in hidden.items() if names]
    return left[:_MOST_SHOWN], lines


def _is_same_partition(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return whether two columns partition the rows in the same way, up to renaming."""
    from evenhand.study.schema import as_text

    a, b = as_text(first), as_text(second)
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b)) > 1


def _column(
    path: Path, names: Sequence[str], option: tuple[str, str | None], guesses: Sequence[str | None], role: str
) -> str:
    """Return the column named by an option, or else the first available guess."""
    flag, value = option
    if value is not None:
        require_name(value, names, "{flag} got {name!r}; {hint}", flag=flag)
    for name in (value, *guesses):
        if name is not None and name in names:
            return name
    raise ConfigError(
        "no column of '{path}' says by its name that it {role}; name it with {flag} COLUMN.",
        path=path,
        role=role,
        flag=flag,
    )


def _make_folder(folder: Path, names: Sequence[str], force: bool, sources: Sequence[Path]) -> None:
    existing = [name for name in names if (folder / name).exists() and (folder / name).resolve() not in sources]
    if existing and not force:
        raise ConfigError(
            "'{value}' exists already; give --force to overwrite it, or name another folder.",
            value=folder / existing[0],
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "the folder '{folder}' cannot be made: {value}.", folder=folder, value=error.strerror or error
        ) from error


def _copy(source: Path, target: Path) -> None:
    try:
        if source.resolve() != target.resolve():
            shutil.copyfile(source, target)
    except OSError as error:
        raise ConfigError(
            "'{source}' cannot be copied to '{target}': {value}.",
            source=source,
            target=target,
            value=error.strerror or error,
        ) from error


def _is_ready(path: Path) -> bool:
    """Return whether the study could be served now; print the problem if not."""
    from evenhand.study.flow.design import load_design
    from evenhand.study.spec import read_study

    try:
        load_design(read_study(path))
    except EvenhandError as error:
        print_line(f"Not ready yet: {error}")
        return False
    return True


def _to_change(kind: Kind, own_data: bool) -> list[str]:
    lines = ["Change in study.toml: name, title, consent, instructions, payment, and the texts that people read."]
    if own_data:
        what = (
            "what each condition is about"
            if kind == "effort"
            else "what the columns of [disagreement] mean, and which are shown: a guess"
        )
        return [*lines, f"Check {what}."]
    what = "The sets are of made-up people" if kind == "effort" else "The cases are made up"
    return [*lines, f"{what}: replace them before you ask anybody."]


@app.command()
def serve(
    *,
    study: StudyFile = STUDY,
    database: Database = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
    https: Annotated[
        bool, typer.Option("--https", help="Visitors connect over https through a proxy; use secure cookies only.")
    ] = False,
    proxy: Annotated[
        str | None, typer.Option(help="Address of the proxy that is trusted to report visitors' addresses.")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests per second allowed from one address; 0 means no limit.")
    ] = 50.0,
    connections: Annotated[
        int, typer.Option(min=0, help="Connections allowed from one address, except the proxy; 0 means no limit.")
    ] = 256,
    enrolments: Annotated[
        int, typer.Option(min=0, help="New people per hour allowed from one address; 0 means no limit.")
    ] = 300,
    accept: Annotated[
        bool, typer.Option("--accept", help="Continue although study.toml now shows something different.")
    ] = False,
) -> int:
    """Run the study until Ctrl-C: pages for participants, and a dashboard for you behind a password.

    The first start prints the dashboard password once. After a restart, everybody continues where they were.

    On the internet, put a proxy with https in front, and use --https and --proxy.
    """
    opened, design = start_study(study, database, accept=accept)
    serving = Serving(str(study), opened.url, host, port, workers, https=https, proxy=proxy, connections=connections)
    serving = replace(serving, rate=rate or math.inf, enrolments=enrolments or math.inf)
    with opened:
        return serve_study(opened, design, serving)


@app.command()
def password(
    study: StudyFile = STUDY,
    database: Database = None,
    name: Annotated[str, typer.Option(help="Name of the researcher; a new name adds one.")] = "researcher",
    generate: Annotated[
        bool, typer.Option("--generate", help="Generate a password and print it, instead of asking.")
    ] = False,
) -> int:
    """Set a researcher's password for the dashboard; open sessions under that name end."""
    with open_study(study, database) as opened:
        from evenhand.study.server.security import hash_password

        word = new_password() if generate else typer.prompt("New password", hide_input=True, confirmation_prompt=True)
        opened.study.researchers.set_password(name, hash_password(word))
    print_line(f"The password of {name} is now: " if generate else f"The password of {name} is set.", word * generate)
    return FINE


@dataclass(frozen=True)
class Serving:
    """The settings of a server; worker processes read them from an environment variable."""

    study: str
    database: str
    host: str
    port: int
    workers: int = 1
    https: bool = False
    proxy: str | None = None
    rate: float = 50.0
    connections: int = 256
    enrolments: float = 300.0


def serve_study(opened: Opened, design: Design, serving: Serving) -> int:
    """Print the study's address, and serve it until interrupted."""
    import uvicorn

    from evenhand.study.server.middleware import require_proxies
    from evenhand.study.server.protocol import listen, server_options

    require_proxies(serving.proxy)
    listener, options = listen(serving.host, serving.port), server_options(serving.proxy, serving.connections)
    single = make_app(opened, design, serving) if serving.workers == 1 else None
    _announce(opened, serving, listener.getsockname()[1], first_password(opened.study))
    try:
        if single is not None:
            uvicorn.Server(uvicorn.Config(single, **options)).run(sockets=[listener])
        else:
            opened.store.close()
            os.environ[_SETTINGS] = json.dumps(asdict(serving))
            factory = "evenhand.cli.study:app_of_environment"
            uvicorn.run(factory, factory=True, workers=serving.workers, fd=listener.fileno(), **options)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
        single = None
        gc.collect()  # engines must release their resources before Python exits
    print_line("Stopped. Everything that was acknowledged is stored.")
    return FINE


def make_app(opened: Opened, design: Design, serving: Serving) -> FastAPI:
    """Return the web application, with live estimates for its dashboard."""
    from evenhand.study.live import live_estimates
    from evenhand.study.server.app import create_app

    estimates = live_estimates(design.spec)

    def close() -> None:
        opened.store.close()
        gc.unfreeze()

    app = create_app(
        design,
        opened.study,
        estimates=estimates,
        https=serving.https,
        rate=serving.rate,
        enrolments=serving.enrolments,
        on_close=close,
    )
    # Exempt current objects from garbage collection, which would block all requests.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH)
    return app


def app_of_environment() -> FastAPI:
    """Return the web application of a worker process, from the settings in the environment."""
    from evenhand.study.server.protocol import end_with_parent

    end_with_parent()
    serving = Serving(**json.loads(os.environ[_SETTINGS]))
    opened, design = start_study(Path(serving.study), serving.database)
    return make_app(opened, design, serving)


def _announce(opened: Opened, serving: Serving, port: int, fresh: str | None) -> None:
    spec = opened.spec
    shown = f"[{serving.host}]" if ":" in serving.host else serving.host
    base = f"http://{'127.0.0.1' if shown == '0.0.0.0' else shown}:{port}"  # noqa: S104
    print_line(f"{spec.words(spec.title)} ({spec.name}, {spec.kind} study)")
    print_line("  Participants  ", f"{base}/?{spec.recruitment.id_parameter}=ID")
    print_line("  Dashboard     ", f"{base}/researcher")
    print_line("  Answers       ", opened.shown)
    print_line("  Code at end   ", opened.study.completion_code)
    if fresh is not None:
        print_line("  Log in as     ", RESEARCHER)
        print_line("  Password      ", fresh)
        print_line("  The password is shown this once; evenhand study password sets another.")
    if serving.https:
        print_line("  People reach both under the https address of your proxy, not under the one above.")
    elif serving.host not in _LOOPBACK:
        print_error("Warning: without https everybody on the way can read and change what people send; use --https.")
    print_line("Press Ctrl-C to stop; start it again with the same command.")


def new_password() -> str:
    """Return a new password: four groups of five letters and digits, about 99 bits."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def first_password(study: Study) -> str | None:
    """Set and return a new password if there is no password yet; otherwise return None."""
    if study.researchers.names():
        return None
    from evenhand.study.server.security import hash_password

    word = new_password()
    # If two servers start at once, only one of them sets it.
    return word if study.researchers.set_first_password(RESEARCHER, hash_password(word)) else None


study_data.add_commands(app)
study_people.add_commands(app)
