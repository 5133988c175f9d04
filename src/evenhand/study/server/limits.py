"""How much anybody may send: requests a second, bytes of a body, fields of a form, and which characters."""

from __future__ import annotations

import ipaddress
import json
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from evenhand.errors import ConfigError

MOST_BYTES = 64 * 1024
MOST_FIELDS = 100
_MOST_ADDRESSES = 20_000
_BURST = 4.0
"""How many seconds' worth of requests may come at once."""


class Rates:
    """A token bucket for each address: `rate` requests a second, and four seconds' worth at once.

    Addresses that were heard of longest ago are forgotten first, so that memory is bounded.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    >>> rates = Rates(1.0, lambda: next(clock))
    >>> [round(rates.wait("a"), 1) for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._most, self._clock = rate, max(1.0, rate * _BURST), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Take one request of an address; return how many seconds it has to wait, 0 if none."""
        now = self._clock()
        left, since = self._buckets.pop(address, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        taken = left >= 1
        self._buckets[address] = (left - 1 if taken else left, now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / self._rate


def address_of(client: tuple[str, int] | None) -> str:
    """Return the address that limits are counted for: an IPv4 address, or the /64 network of an IPv6 address.

    Examples
    --------
    >>> address_of(("2001:db8::1", 4711)) == address_of(("2001:db8::2", 4712))
    True
    """
    host = client[0] if client else ""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


def require_proxies(given: str | None) -> None:
    """Refuse proxies that are not named by address: whoever is taken for one can claim any address for himself.

    Examples
    --------
    >>> require_proxies("192.0.2.1, 10.0.0.0/8")
    >>> require_proxies("*")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: --proxy must be the IP address or network of your proxy; got '*'.
    """
    for part in [] if given is None else given.split(","):
        try:
            network = ipaddress.ip_network(part.strip())
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            raise ConfigError(f"--proxy must be the IP address or network of your proxy; got {part.strip()!r}.")


def limited(receive: Receive, most: int = MOST_BYTES) -> Receive:
    """Return a `receive` that refuses a body over the limit, also one sent in chunks without a length."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413)
        return message

    return receive_limited


async def read_fields(request: Request) -> dict[str, str | list[str]]:
    """Return the fields of a submitted form; a field sent more than once holds a list.

    Only application/x-www-form-urlencoded is read (415 otherwise); too many fields, bytes that are not UTF-8 and NUL
    characters, which PostgreSQL does not store, are answered with 422.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        text = (await request.body()).decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(422) from None
    fields: dict[str, str | list[str]] = {}
    for name, value in pairs:
        if not (is_plain(name) and is_plain(value)):
            raise HTTPException(422)
        held = fields.get(name)
        fields[name] = value if held is None else [*held, value] if isinstance(held, list) else [held, value]
    return fields


async def read_json(request: Request) -> Any:
    """Return a JSON body; 415 for another type, 422 for what is no JSON or holds text that cannot be stored."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415)
    try:
        body = json.loads(await request.body(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise HTTPException(422) from None
    if not _all_plain(body):
        raise HTTPException(422)
    return body


def is_plain(text: str) -> bool:
    """Tell whether every database stores a text: no NUL, no half of a surrogate pair.

    Examples
    --------
    >>> [is_plain(text) for text in ("é", "a" + chr(0), chr(0xD800))]
    [True, False, False]
    """
    if "\x00" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _all_plain(value: Any) -> bool:
    """Tell whether all texts within a JSON value are plain, however deep it is nested."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not is_plain(one):
                return False
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
    return True


def _no_constant(name: str) -> None:
    raise ValueError(name)
