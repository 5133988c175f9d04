"""The section of the parity audit in the `audit.toml` that `evenhand init` writes."""

from __future__ import annotations

from evenhand.core.capabilities import Proposing, SeenFile

_SECTION = """\
[parity]
# metrics = ["selection_rate", "tpr", "fpr"]    # default: all that the data allows
# within = ["..."]    # a legitimate factor: compare like with like
# reference = "..."    # default: the largest group
# min_count = 10    # smaller groups are listed but left out of gaps
"""


class ParityProposing(Proposing):
    """Proposal of the audit for any table with groups and predictions."""

    def section(self, _seen: SeenFile) -> list[str]:
        """Return the lines of the section, with the settings commented out."""
        return [*_SECTION.splitlines(), ""]


PROPOSE = ParityProposing()
"""The parity audit's proposal."""
