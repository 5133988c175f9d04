"""Running the web server of a study: what is checked and said before, and the processes."""

from __future__ import annotations

import gc
import json
import os
import secrets
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.console import FINE, print_error, print_line
from evenhand.cli.study_data import Opened, start_study
from evenhand.errors import ConfigError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from evenhand.study.flow.design import Design
    from evenhand.study.store import Study

_SWITCH = 0.001
"""Seconds after which a thread lets others run: five times as soon as usual, for short waits count here."""
_SETTINGS = "EVENHAND_STUDY_SERVING"
RESEARCHER = "researcher"
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Serving:
    """How a study is served; a process of the server gets it through its environment."""

    study: str
    database: str
    host: str
    port: int
    workers: int = 1
    https: bool = False
    proxy: str | None = None
    rate: float = 50.0


def serve_study(opened: Opened, design: Design, serving: Serving) -> int:
    """Say where the study is, and serve it until it is stopped."""
    import uvicorn

    from evenhand.study.server.limits import require_proxies
    from evenhand.study.server.protocol import BoundedProtocol, allow_files, most_connections

    require_proxies(serving.proxy)
    listener = _listen(serving.host, serving.port)
    port = listener.getsockname()[1]
    single = make_app(opened, design, serving) if serving.workers == 1 else None
    _announce(opened, serving, port, first_password(opened.study))
    options: dict[str, Any] = {
        "access_log": False,
        "log_level": "warning",
        "server_header": False,
        "lifespan": "on",
        "proxy_headers": serving.proxy is not None,
        "forwarded_allow_ips": serving.proxy,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 10,
        "backlog": 2048,
        "http": BoundedProtocol,
        "limit_concurrency": most_connections(allow_files()),
    }
    try:
        if single is not None:
            uvicorn.Server(uvicorn.Config(single, **options)).run(sockets=[listener])
        else:
            opened.store.close()
            _serve_processes(serving, listener, options)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
        single = None
        gc.collect()  # what engines hold is let go before Python ends, or they complain
    print_line("Stopped. Everything that was acknowledged is stored.")
    return FINE


def _serve_processes(serving: Serving, listener: socket.socket, options: dict[str, Any]) -> None:
    import uvicorn

    os.environ[_SETTINGS] = json.dumps(asdict(serving))
    uvicorn.run(
        "evenhand.cli.study_server:app_of_environment",
        factory=True,
        workers=serving.workers,
        fd=listener.fileno(),
        **options,
    )


def make_app(opened: Opened, design: Design, serving: Serving) -> FastAPI:
    """Return the web application, with the estimates that its dashboard shows."""
    from evenhand.report.live import live_estimates
    from evenhand.study.server.app import create_app

    estimates = live_estimates(design.spec)

    def close() -> None:
        opened.store.close()
        gc.unfreeze()

    app = create_app(design, opened.study, estimates=estimates, https=serving.https, rate=serving.rate, on_close=close)
    # What is there now stays: the garbage collector need not look through it, which would hold everybody up.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH)
    return app


def app_of_environment() -> FastAPI:
    """Return the web application that the environment describes: one of several processes calls this."""
    from evenhand.study.server.protocol import end_with_parent

    end_with_parent()
    serving = Serving(**json.loads(os.environ[_SETTINGS]))
    opened, design = start_study(Path(serving.study), serving.database)
    return make_app(opened, design, serving)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a port in use is told before anything starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
        listener.set_inheritable(True)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"port {port} of {host} cannot be used: {error.strerror or error}; give another with --port, or stop what "
            "uses it."
        ) from None
    return listener


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
    """Return a password to print: four groups of five letters and digits, about 99 bits."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def first_password(study: Study) -> str | None:
    """Set a new password where there is none yet and return it."""
    if study.researchers():
        return None
    from evenhand.study.server.passwords import hash_password

    word = new_password()
    # Of two servers that start at once, one sets it.
    return word if study.set_first_password(RESEARCHER, hash_password(word)) else None


def set_password(study: Study, name: str, word: str) -> None:
    """Store the hash of a researcher's password."""
    from evenhand.study.server.passwords import hash_password

    study.set_password(name, hash_password(word))
