"""One random stream for each named part of an audit, whatever the order in which the parts are computed."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import Generator


def named_rng(seed: int, *names: str) -> Generator:
    """Return the random generator of a part of an audit: a function of the seed and of the part's names alone.

    A group or model more, or another order of them, leaves the numbers of all others as they are. The entropy is the
    seed followed by the eight words of the SHA-256 of the names, joined by the ASCII unit separator.

    Parameters
    ----------
    seed
        The seed of the audit, not negative.
    names
        What the part is called, from the general to the particular: the model, the grouping, the stratum.

    Examples
    --------
    >>> named_rng(0, "model", "race").integers(100, size=3)
    array([36, 20, 43])
    >>> named_rng(0, "model", "sex").integers(100, size=3)
    array([ 9, 15, 57])
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
