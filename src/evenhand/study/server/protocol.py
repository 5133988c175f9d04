"""How the server listens: who sends too much, dawdles, never reads or holds too many connections is cut off.

With a proxy in front these limits are its task; without one they keep anybody from using up memory or connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import Counter
from functools import partial
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.errors import ConfigError
from evenhand.study.server.security import address_of

MOST_HEADER_BYTES = 64 * 1024
PATIENCE = 20.0
_SPARE_FILES = 256
"""Open files that are kept for the database, the log and the static files."""
_MOST_CONNECTIONS = 8_192
_LAST_SECONDS = 15.0
_REFUSED = "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = _REFUSED.format("431 Request Header Fields Too Large").encode()
_TOO_MANY = _REFUSED.format("429 Too Many Requests\r\nretry-after: 30").encode()
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


class BoundedProtocol(HttpToolsProtocol):
    """A connection that takes at most `most_header_bytes` of headers, and waits `patience` seconds for a request.

    The clock runs from the connection, or from the first byte of a further request, until the last byte of its body.
    What is sent must be taken too: a connection whose waiting bytes do not become fewer for `patience` seconds is cut.

    Parameters
    ----------
    per_address : how many connections one address may hold in this process; 0 is any number.
    proxies : networks of the proxies in front, whose connections are many people's and are not counted.
    """

    most_header_bytes = MOST_HEADER_BYTES
    patience = PATIENCE
    _held: ClassVar[Counter[str]] = Counter()

    def __init__(self, *given: Any, per_address: int = 0, proxies: Networks = (), **named: Any) -> None:
        super().__init__(*given, **named)
        self._per_address, self._proxies = per_address, proxies
        self._address: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._complete, self._in_headers, self._too_large = True, False, False
        self._header_bytes, self._raw_bytes = 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request, unless the address holds too many connections already."""
        super().connection_made(transport)
        self._start_clock()
        if not self._per_address or self._is_proxy():
            return
        self._address = address_of(self.client)
        self._held[self._address] += 1
        if self._held[self._address] > self._per_address:
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks, and count the connection no more."""
        self._stop_clock()
        self._stop_watch()
        if self._address is not None:
            self._held[self._address] -= 1
            if not self._held[self._address]:
                del self._held[self._address]
        super().connection_lost(exc)

    def _is_proxy(self) -> bool:
        try:
            peer = ipaddress.ip_address(self.client[0] if self.client else "")
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)

    def pause_writing(self) -> None:
        """See whether a client that has much to read reads at all."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self._stop_watch()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """See whether the rest of the answer is read."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._watch()

    def _watch(self) -> None:
        if self._unread is None:
            size = self.transport.get_write_buffer_size()
            self._unread = self.loop.call_later(self.patience, self._cut_unless_fewer, size)

    def _cut_unless_fewer(self, before: int) -> None:
        self._unread, size = None, self.transport.get_write_buffer_size()
        if size >= before > 0:
            self.transport.abort()  # `close` would wait for the client to read
        elif size:
            self._watch()

    def _stop_watch(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

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
            "port {port} of {host} cannot be used: {why}; give another with --port, or stop what uses it.",
            port=port,
            host=host,
            why=error.strerror or error,
        ) from None
    return listener


def server_options(proxy: str | None, connections: int = 0) -> dict[str, Any]:
    """Return how uvicorn serves a study: our limits, no log of its own, and a proxy whose word is taken, if any.

    Parameters
    ----------
    proxy : addresses or networks of the proxies in front, with commas between them; None without one.
    connections : how many connections one address may hold in a process; 0 is any number.
    """
    proxies = tuple(ipaddress.ip_network(part.strip()) for part in (proxy or "").split(",") if part.strip())
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
        "http": partial(BoundedProtocol, per_address=connections, proxies=proxies),
        "limit_concurrency": most_connections(allow_files()),
    }
