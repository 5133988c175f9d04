"""Connections as strangers may use them, against a real server: endless headers, silence, a parent that is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from evenhand.cli.main import main
from evenhand.study.server.protocol import MOST_HEADER_BYTES, BoundedProtocol, allow_files

PATIENCE = 0.6
LARGE = 32 * 2**20
MOST = 5


class Impatient(BoundedProtocol):
    """The same protocol, for a test that waits less."""

    patience = PATIENCE


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the number of bytes of the body; the address /slow takes longer than the patience."""
    import asyncio

    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message["body"]), message["more_body"]
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * PATIENCE)
    body = b"x" * LARGE if scope["path"] == "/large" else str(length).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server that runs beside the tests."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            echo,
            http=partial(Impatient, per_address=MOST, proxies=(ip_network("127.0.0.9"),)),  # type: ignore[arg-type]
            lifespan="off",
            log_level="critical",
            access_log=False,
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def connect(port: int) -> Iterator[Callable[..., socket.socket]]:
    """Return a function that connects, if asked from another address of this machine."""
    with contextlib.ExitStack() as stack:
        yield lambda own="127.0.0.1": stack.enter_context(
            socket.create_connection(("127.0.0.1", port), timeout=10 * PATIENCE, source_address=(own, 0))
        )
    end = time.monotonic() + 5
    while BoundedProtocol._held and time.monotonic() < end:
        time.sleep(0.01)


def heard(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes; a timeout here is a connection that was left open."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            found += part
    return found


def send_until_closed(connection: socket.socket, part: bytes, most: int) -> int:
    """Send until the server closes; return how many bytes it took."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            connection.sendall(part)
            sent += len(part)
            time.sleep(0.002)
    return sent


class TestHeaders:
    @pytest.mark.parametrize("part", [b"x: " + b"a" * 4_000 + b"\r\n", b"a" * 4_096], ids=["many", "one"])
    def test_without_end_are_cut_off(self, connect: Any, part: bytes) -> None:
        connection = connect()
        connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\ny: ")
        assert send_until_closed(connection, part, 10_000_000) < 1_000_000

    def test_without_end_in_the_address_are_cut_off(self, connect: Any) -> None:
        connection = connect()
        connection.sendall(b"GET /")
        assert send_until_closed(connection, b"a" * 4_096, 10_000_000) < 1_000_000

    def test_within_the_limit_are_read_and_the_next_request_counts_anew(self, connect: Any) -> None:
        connection = connect()
        for _ in range(3):
            connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 40_000 + b"\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")

    def test_do_not_count_the_body(self, connect: Any) -> None:
        connection = connect()
        connection.sendall(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 150000\r\n\r\n" + b"a" * 150_000)
        assert connection.recv(65_536).endswith(b"150000")


class TestPatience:
    @pytest.mark.parametrize(
        "sent",
        [
            b"GET / HT",
            b"GET / HTTP/1.1\r\nhost: a\r\n",
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc",
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ],
        ids=["half a line", "half of the headers", "half a body", "half of the chunks"],
    )
    @pytest.mark.parametrize("after", [0, 1], ids=["first", "after a request"])
    def test_ends_without_a_whole_request(self, connect: Any, sent: bytes, after: int) -> None:
        connection = connect()
        for _ in range(after):
            connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            connection.recv(65_536)
        connection.sendall(sent)
        clock = time.monotonic()
        assert heard(connection) == b""
        assert 0.3 * PATIENCE < time.monotonic() - clock < 8 * PATIENCE

    def test_is_not_needed_for_what_is_no_request(self, connect: Any) -> None:
        connection = connect()
        connection.sendall(b"\r\n")
        clock = time.monotonic()
        assert heard(connection).startswith(b"HTTP/1.1 400 ")
        assert time.monotonic() - clock < PATIENCE

    def test_ends_in_silence(self, connect: Any) -> None:
        clock = time.monotonic()
        assert heard(connect()) == b""
        assert 0.3 * PATIENCE < time.monotonic() - clock < 8 * PATIENCE

    @pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nx: ", b"POST / HTTP/1.1\r\ncontent-length: 999\r\n\r\n"])
    def test_is_not_renewed_by_a_byte_now_and_then(self, connect: Any, start: bytes) -> None:
        connection, clock = connect(), time.monotonic()
        connection.sendall(start)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - clock < 8 * PATIENCE:
                connection.sendall(b"a")
                time.sleep(PATIENCE / 10)
        assert time.monotonic() - clock < 6 * PATIENCE

    def test_does_not_end_while_we_are_the_slow_ones_or_between_requests(self, connect: Any) -> None:
        connection = connect()
        connection.sendall(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        time.sleep(2 * PATIENCE)
        connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_as_many_files_as_possible_may_be_opened() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
        assert allow_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["study", "new", str(tmp_path), "--kind", "disagreement"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "evenhand", "study", "serve", str(tmp_path / "study.toml"), "--workers", "2"]
    with (tmp_path / "log").open("wb") as log:
        parent = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log, start_new_session=True)
    try:
        assert _within(60, lambda: _answers(port)), (tmp_path / "log").read_text()
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        assert _within(25, lambda: not _listens(port)), "the workers serve on"
    finally:
        # The group is the parent's own and its workers', so that a failure leaves none behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


def _within(seconds: float, happened: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.2)
    return False


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        return connection.recv(100).startswith(b"HTTP/1.1 200")
    return False


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def test_an_address_holds_so_many_connections_and_others_are_free(connect: Callable[..., socket.socket]) -> None:
    for _ in range(3):  # closed connections count no more
        held = [connect() for _ in range(MOST)]
        for connection in held:
            connection.sendall(REQUEST.replace(b"connection: close\r\n", b""))
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        refused = heard(connect())
        assert refused.startswith(b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\n")
        other = connect("127.0.0.2")
        other.sendall(REQUEST)
        assert heard(other).startswith(b"HTTP/1.1 200")
        for connection in held:
            connection.close()
        while BoundedProtocol._held:
            time.sleep(0.01)


def test_the_connections_of_a_proxy_are_not_counted(connect: Callable[..., socket.socket]) -> None:
    held = [connect("127.0.0.9") for _ in range(2 * MOST)]
    for connection in held:
        connection.sendall(REQUEST)
        assert heard(connection).startswith(b"HTTP/1.1 200")


def test_who_asks_and_never_reads_is_cut_off(connect: Callable[..., socket.socket]) -> None:
    connection = connect()
    connection.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    end = time.monotonic() + 10 * PATIENCE
    while not BoundedProtocol._held:
        time.sleep(0.01)
    while BoundedProtocol._held and time.monotonic() < end:
        time.sleep(0.05)
    assert not BoundedProtocol._held
    assert len(heard(connection)) < LARGE


def test_who_reads_slowly_gets_it_all(connect: Callable[..., socket.socket]) -> None:
    connection = connect()
    connection.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    got, started = 0, time.monotonic()
    while part := connection.recv(2**20):
        got += len(part)
        if time.monotonic() - started < 1.5:
            time.sleep(PATIENCE / 10)
    assert got > LARGE
