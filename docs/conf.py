"""Sphinx: one command builds the pages (`make docs`), offline, with warnings as errors."""

import re
from typing import Any

from evenhand import __version__

project = "evenhand"
author = "The evenhand team"
project_copyright = "The evenhand team, MIT licence"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_generated"]
default_role = "code"
nitpicky = False
smartquotes = False

myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False  # the types of arrays are longer than what they mean
suppress_warnings = ["ref.python"]  # a word of a type that happens to be an attribute of several classes

html_theme = "furo"
html_title = f"evenhand {version}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": False}

_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<text>\S.*)$")
_SECTION = re.compile(r"^-{3,}$")
_TRAILING = re.compile(r"(?<![`\w])(\w+)_(?=[\"' ,.;)\]])")
_BARS = re.compile(r"(?<![`\\])\|(?=\w+\|)")


def _describe_entries(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Read `name : sentence` in a list of parameters as a description; numpydoc would take it for a type.

    An entry that has an indented description of its own keeps what stands after its colon as the type. A word that
    ends in an underscore is a word, not a link, and one between bars is a size, not a substitution.
    """
    del app, what, name, obj, options
    section = ""
    changed: list[str] = []
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if _SECTION.match(following):
            section = line.strip()
        match = _ENTRY.match(line)
        if match and section in {"Parameters", "Attributes"} and not _has_description(lines, at):
            changed += [match["names"], f"    {match['text']}"]
        else:
            changed.append(line)
    lines[:] = [_BARS.sub(r"\|", _TRAILING.sub(r"\1\\_", line)) for line in changed]


def _has_description(lines: list[str], at: int) -> bool:
    """Tell whether the next line is indented and begins a sentence of its own."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return following.startswith("    ") and following.strip()[:1].isupper()


def _skip_described_fields(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of a named tuple: the list of attributes in its docstring has them already."""
    del app, what, name, skip, options
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: Any) -> None:
    """Connect before napoleon, which turns the sections into fields."""
    app.connect("autodoc-process-docstring", _describe_entries, priority=100)
    app.connect("autodoc-skip-member", _skip_described_fields)
