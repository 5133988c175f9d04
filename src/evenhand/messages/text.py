"""Escapes for text that is not evenhand's own."""

from __future__ import annotations

import re

# Control characters, and what turns or breaks the text around it: overrides, embeddings and isolates of right-to-left
# writing, line separators, lone surrogates. The plain marks U+200E and U+200F belong to Hebrew and Arabic, and stay.
UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]")


def showable(text: str) -> str:
    r"""Return text with control characters escaped, so that it cannot steer a terminal or a page.

    Every name and value from outside passes through here: labels as they are read, messages of errors, all that the
    command line prints, all that a page shows.

    Examples
    --------
    >>> showable("a\x1b[31mb"), showable("\u202eevil")
    ('a\\x1b[31mb', '\\u202eevil')
    """
    return UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)
