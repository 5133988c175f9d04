"""Passwords of researchers: hashed with argon2id, and checked with the same work whether or not the name is known."""

from __future__ import annotations

from functools import cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from evenhand.errors import ConfigError

LEAST, MOST = 12, 1_000
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1)
_AT_ONCE = BoundedSemaphore(2)
"""Each check takes 64 MiB; more than two at once wait, so that a flood of logins cannot use up the memory."""


def hash_password(password: str) -> str:
    """Return what is stored of a password.

    Examples
    --------
    >>> hash_password("too short")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: a password needs at least 12 characters; got 9.
    """
    if len(password) < LEAST:
        raise ConfigError(f"a password needs at least {LEAST} characters; got {len(password)}.")
    if len(password) > MOST:
        raise ConfigError(f"a password may have at most {MOST:,} characters; got {len(password):,}.")
    return _HASHER.hash(password)


def is_right(stored: str | None, password: str) -> bool:
    """Tell whether a password is the stored one; for an unknown name (None) the work is the same and the answer no."""
    with _AT_ONCE:
        try:
            _HASHER.verify(stored or _nobody(), password[:MOST])
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


@cache
def _nobody() -> str:
    return _HASHER.hash("the password of nobody")
