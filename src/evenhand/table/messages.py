"""Remarks on a table for the reader of a result: how it was read, and what is odd about it."""

from __future__ import annotations

from evenhand.messages import Catalogue
from evenhand.messages.catalogue import Sentence

_READING: dict[str, Sentence] = {
    "read_as": "The file is not UTF-8; it was read as {encoding:name}.",
    "disguised": "The file is named as a text file; by its contents it is {ending:name} and was read as that.",
    "first_sheet": "Of the {sheets:count safe} sheets of the file, the first was read: {name:name}.",
    "no_weight": (
        "{n:count} row has a weight of 0 and counts as nobody.",
        "{n:count} rows have a weight of 0 and count as nobody.",
    ),
    "selects_above": (
        "{model:name} selects above {cut:.6g}: percentile {percentile:set} of the scores of {whom} ({people:count})."
    ),
    "everybody": "everybody",
    "people_with": "the people with {column:name} {value!r:name}",
}

_LABELS: dict[str, Sentence] = {
    "always_negative": (
        "The outcome {outcome!r:name} is negative in every row: true positive rates, AUC and calibration say nothing "
        "here. Is it the right column, and is `positive` right?"
    ),
    "always_positive": (
        "The outcome {outcome!r:name} is positive in every row: false positive rates, AUC and calibration say nothing "
        "here. Is it the right column, and is `positive` right?"
    ),
    "counts_as_no": (
        "{column:name}: {words:name} counts as not {yes!r:name}; if it means missing, name it among `missing_values`."
    ),
    "trimmed": "{column:name}: blanks around values were trimmed (such as {examples:name}).",
    "of_column": "{column:name}: {remark}",
    "numbers_as_text": (
        "{numbers:count safe} of {groups:count safe} groups are numbers; {words:name} makes it text without cut points."
    ),
    "spelt_alike": (
        "{labels:name commas} differ only in capitals or spaces; they are {groups:count safe} groups here."
    ),
    "means_missing": "{label!r:name} looks like a word for missing; if it is, name it among `missing_values`.",
}

_MODELS: dict[str, Sentence] = {
    "fitted_here": (
        "The scores of {models:name commas} were fitted here, out of fold: {folds:set} folds of {people:count} people, "
        "features {features:name commas}."
    ),
    "judged_on_split": (
        "Fitted to {share:.0% safe} of the people and judged on the other {people:count}, accuracy and weighted F1 at "
        "a threshold of 0.5 are: {models:semicolons}."
    ),
    "judged_model": "{model:name} {accuracy:.3f} and {f1:.3f}",
}

say = Catalogue("table", __package__ or "evenhand.table", {**_READING, **_LABELS, **_MODELS})
"""Makes a message from a remark on a table."""
