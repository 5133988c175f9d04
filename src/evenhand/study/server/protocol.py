"""Connection limits of the study server: timeouts, header sizes and connections per client.

A proxy in front of the server would enforce such limits itself; without a proxy they protect memory and connections.
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
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from evenhand.errors import ConfigError
from evenhand.study.server.security import address_of

MOST_HEADER_BYTES = 64 * 1024
PATIENCE = 20.0
_SPARE_FILES = 256
"""Open files reserved for the database, the log and the static files."""
_MOST_CONNECTIONS = 8_192
_BACKLOG = 2_048
_LAST_SECONDS = 15.0
_TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


class BoundedProtocol(H11Protocol):
    """A connection that times out after `patience` seconds of waiting for a full request or for a reader.

    uvicorn limits headers, idle connections and the total of connections, but has no such timeouts. The timer of a
    request runs from the connection, or from the first byte of a further request, until the last byte of its body.

    Parameters
    ----------
    per_address : maximum number of open connections per address in this process; 0 for no limit.
    proxies : networks of the trusted proxies, whose connections serve many people and are not counted.
    """

    patience = PATIENCE
    _held: ClassVar[Counter[str]] = Counter()

    def __init__(self, *given: Any, per_address: int = 0, proxies: Networks = (), **named: Any) -> None:
        super().__init__(*given, **named)
        self._per_address, self._proxies = per_address, proxies
        self._address: str | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request; reject the connection if its address has too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that `pause_writing` is called whenever the client has to read
        self._wait_for_request()
        if not self._per_address or self._is_proxy():
            return
        self._address = address_of(self.client)
        self._held[self._address] += 1
        if self._held[self._address] > self._per_address:
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and decrement the connection count of the address."""
        for name in tuple(self._timers):
            self._stop_timer(name)
        if self._address is not None:
            self._held[self._address] -= 1
            if not self._held[self._address]:
                del self._held[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process data, and start the timer if the request is still incomplete."""
        super().data_received(data)
        self._wait_for_request()

    def pause_writing(self) -> None:
        """Start the timer of a client with unread data."""
        super().pause_writing()
        self._start_timer("reader", self._cut_unless_fewer, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the timer of a client that has read everything."""
        self._stop_timer("reader")
        super().resume_writing()

    def _is_proxy(self) -> bool:
        try:
            peer = ipaddress.ip_address(self.client[0] if self.client else "")
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)

    def _is_answering(self) -> bool:
        """Return whether the request is complete and its response is not."""
        return bool(self.cycle) and not self.cycle.more_body and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        if self._is_answering():
            self._stop_timer("request")
        elif "request" not in self._timers and not self.transport.is_closing():
            self._start_timer("request", self._give_up)

    def _give_up(self) -> None:
        self._stop_timer("request")
        if not self._is_answering():
            self.transport.close()

    def _cut_unless_fewer(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting < before:
            self._start_timer("reader", self._cut_unless_fewer, waiting)
        else:
            self.transport.abort()  # `close` would wait for the client to read

    def _start_timer(self, name: str, act: Callable[..., None], *values: int) -> None:
        self._timers[name] = self.loop.call_later(self.patience, act, *values)

    def _stop_timer(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()


def allow_files() -> int:
    """Raise this process's limit on open files to the hard limit; return the new limit."""
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
    """Return the maximum number of connections of one process, so that it never runs out of files.

    Examples
    --------
    >>> most_connections(1_024), most_connections(1_000_000)
    (768, 8192)
    """
    return max(64, min(_MOST_CONNECTIONS, files - _SPARE_FILES))


def end_with_parent() -> None:
    """Terminate this worker process when its parent process ends for any reason."""
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
    """Return a listening socket, so that a port in use is reported before anything starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            "port {port} of {host} cannot be used: {why}; give another with --port, or stop what uses it.",
            port=port,
            host=host,
            why=(error.strerror or str(error)).partition(" (")[0],
        ) from None
    listener.set_inheritable(True)
    return listener


def server_options(proxy: str | None, connections: int = 0) -> dict[str, Any]:
    """Return the uvicorn options of a study: our limits, no access log, and trusted proxies if any.

    Parameters
    ----------
    proxy : comma-separated addresses or networks of the trusted proxies; None if there is no proxy.
    connections : maximum number of open connections per address and process; 0 for no limit.
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
        "backlog": _BACKLOG,
        "ws": "none",
        "h11_max_incomplete_event_size": MOST_HEADER_BYTES,
        "http": partial(BoundedProtocol, per_address=connections, proxies=proxies),
        "limit_concurrency": most_connections(allow_files()),
    }
