"""Sentences on why a linear search found no classifier."""

from __future__ import annotations

from evenhand.messages import Catalogue

_NEAREST = (
    "no linear classifier among {directions:set} directions is at least as accurate as asked; the nearest reaches "
    "{reached:commas}"
)
_TRY = " Try more directions, a smaller `iota`, more features or fewer constraints."
_CUT = "no cut of {directions:set} directions selects somebody from every group"
_SHARED_SCORES = "; with features of few values many rows share a score, so use finer features or another capacity."

say = Catalogue(
    "linear_search",
    __package__ or "evenhand.stats.linear_search",
    {
        "proved_none": (
            "no linear classifier of these features reaches {asked} under the constraints (proved, up to a margin of "
            "{margin:set}); lower `iota`, use more features or drop a constraint."
        ),
        "none_in_time": (
            "no linear classifier that reaches {asked} was found in {seconds:set} s (HiGHS: {status:name}); allow more "
            "time or more directions, or lower `iota`."
        ),
        "floors": "values of at least {floors:commas}",
        "floors_and_gap": "values of at least {floors:commas} and a gap of at most {gap:.4g}",
        "floor": "{value:.4g} for {group!r:group}",
        "none_among": _NEAREST + "." + _TRY,
        "none_among_gap": _NEAREST + ", gap {gap:.4g} (at most {most:.4g})." + _TRY,
        "reached": "{group!r:group} {value:.4g} (needed {needed:.4g})",
        "no_cut": _CUT + _SHARED_SCORES,
        "no_cut_capacity": _CUT + " and {rows:set} rows in all" + _SHARED_SCORES,
    },
)
"""Makes a message on why nothing was found."""
