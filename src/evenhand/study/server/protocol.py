"""How the server listens: connections that send too much or dawdle are closed, and workers end with their parent.

With a proxy in front these limits are its task; without one they keep anybody from using up memory or connections.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.errors import ConfigError

MOST_HEADER_BYTES = 64 * 1024
PATIENCE = 20.0
_SPARE_FILES = 256
"""Open files that are kept for the database, the log and the static files."""
_MOST_CONNECTIONS = 8_192
_LAST_SECONDS = 15.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """A connection that takes at most `most_header_bytes` of headers, and waits `patience` seconds for a request.

    The clock runs from the connection, or from the first byte of a further request, until the last byte of its body.
    """

    most_header_bytes = MOST_HEADER_BYTES
    patience = PATIENCE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._complete, self._in_headers, self._too_large = True, False, False
        self._header_bytes, self._raw_bytes = 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; close where the headers are too long already, and see whether the clock has to run."""
        began_before = self._complete or self._in_headers
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_headers:
            # One endless header is held back by the parser, so what arrived is counted too.
            self._raw_bytes += len(data) if began_before else 0
            if self._raw_bytes > self.most_header_bytes:
                self._refuse_headers()
                return
        if self._complete and self._is_answering():
            self._stop_clock()
        else:
            self._start_clock()

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        super().on_message_begin()
        self._complete, self._in_headers = False, True
        self._header_bytes, self._raw_bytes = 0, 0

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the address as headers."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that the body follows."""
        self._in_headers = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the request is there."""
        self._complete = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one with too long headers."""
        if self._too_large:
            self._refuse_headers()
        else:
            super().send_400_response(msg)

    def _count(self, arrived: int) -> None:
        self._header_bytes += arrived
        if self._header_bytes > self.most_header_bytes:
            self._too_large = True
            raise ValueError("the headers are too long")

    def _refuse_headers(self) -> None:
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _start_clock(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self._give_up)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not (self._complete and self._is_answering()):
            self.transport.close()


def allow_files() -> int:
    """Raise the number of files that this process may open as far as it goes; return it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 1_024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return soft if soft != resource.RLIM_INFINITY else 2**20


def most_connections(files: int) -> int:
    """Return how many connections one process holds at most, so that it never runs out of files.

    Examples
    --------
    >>> most_connections(1_024), most_connections(1_000_000)
    (768, 8192)
    """
    return max(64, min(_MOST_CONNECTIONS, files - _SPARE_FILES))


def end_with_parent() -> None:
    """End this process when the one that started it is gone, however it went; call it in a worker."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LAST_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def listen(host: str, port: int) -> socket.socket:
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


def server_options(proxy: str | None) -> dict[str, Any]:
    """Return how uvicorn serves a study: our limits, no log of its own, and a proxy whose word is taken, if any."""
    return {
        "access_log": False,
        "log_level": "warning",
        "server_header": False,
        "lifespan": "on",
        "proxy_headers": proxy is not None,
        "forwarded_allow_ips": proxy,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 10,
        "backlog": 2048,
        "http": BoundedProtocol,
        "limit_concurrency": most_connections(allow_files()),
    }
