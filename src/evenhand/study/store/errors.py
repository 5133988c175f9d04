"""What can go wrong in the database of a study, as sentences that a server can act on."""

from __future__ import annotations

from evenhand.errors import EvenhandError


class StudyClosed(EvenhandError):  # noqa: N818
    """The study takes nobody new."""


class StudyFull(EvenhandError):  # noqa: N818
    """Every place of the study is taken."""


class StoreError(EvenhandError):
    """The database could not be reached, or refused what was asked."""


class Busy(StoreError):  # noqa: N818
    """Somebody else writes at this moment, and the caller did not want to wait; nothing was done."""
