"""The errors evenhand raises, and the few sentence forms they share.

Every message says what was wrong (with the value), where, and what to do, so that it can be
shown to a user as it is. It is written for Python: ``missing='drop'`` is an argument with a value, a name in backticks
an argument. Whoever runs an audit for a file or for the command line says so with `speaking`, and the errors that leave
it name settings of the file, or flags.
"""

from __future__ import annotations

import ast
import difflib
import json
import operator
import re
import reprlib
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Real
from typing import Any, Literal

_LONGEST, _MOST_PROBLEMS = 900, 20  # characters of a line, and problems, of one message

# Control characters, and what turns or breaks the text around it: overrides, embeddings and isolates of right-to-left
# writing, line separators, lone surrogates. The plain marks U+200E and U+200F belong to Hebrew and Arabic, and stay.
UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]")


def showable(text: str) -> str:
    r"""Return foreign text as a terminal, a page or a file may have it: what would steer it is written out.

    Every name and value that is not our own passes here: labels as they are read, messages of errors, all that the
    command line prints, all that a page holds.

    Examples
    --------
    >>> showable("a\x1b[31mb"), showable("\u202eevil")
    ('a\\x1b[31mb', '\\u202eevil')
    """
    return UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)


class EvenhandError(ValueError):
    """Base of every error that a user can cause and mend; its message can be shown as it is.

    Examples
    --------
    >>> raise EvenhandError("`alpha` must be between 0 and 1; got 1.3.")
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: `alpha` must be between 0 and 1; got 1.3.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(_readable(line) for line in showable(message).split("\n")))


def _readable(line: str) -> str:
    """Return a line that a person can read: what is wrong stands at its beginning, what to do at its end."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 3 :]}"


class DataError(EvenhandError):
    """The data does not fit the roles it was given; `problems` lists every reason found."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(_as_list(self.problems))


class ConfigError(EvenhandError):
    """A setting, an argument or `audit.toml` is wrong."""


class MissingExtraError(EvenhandError, ImportError):
    """An optional dependency is needed and not installed."""


def _as_list(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = [f"  - {problem}" for problem in problems[:_MOST_PROBLEMS]]
    more = [f"  - and {len(problems) - _MOST_PROBLEMS:,} more."] if len(problems) > _MOST_PROBLEMS else []
    return "\n".join([f"{len(problems):,} problems with the data:", *lines, *more])


class _Brief(reprlib.Repr):
    """Shows a few values of what was given, whatever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxdict = self.maxlist = self.maxtuple = self.maxset = 3
        self.maxstring = self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        """Show an array or a frame by its kind and shape, anything else by its first values."""
        shape = getattr(x, "shape", None)
        if not isinstance(shape, tuple):
            return re.sub(" at 0x[0-9a-f]+", "", super().repr1(x, level)).replace("\n", " ")
        return f"{type(x).__name__} of shape {shape}" if shape else repr(x)


brief = _Brief().repr
"""Return a value as a message shows it: a few values at most, an array or a data frame by its shape."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest known names, or the known names when they are few.

    Examples
    --------
    >>> did_you_mean("rcae", ["race", "sex"])
    "did you mean 'race'?"
    >>> did_you_mean("zip", ["race", "sex"])
    "known names: 'race', 'sex'"
    """
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=2, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(repr(folded[match]) for match in near) + "?"
    shown = ", ".join(repr(candidate) for candidate in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"known names: {shown}{more}" if names else "there are none"


def require_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """Raise a `ConfigError` unless `value` is one of the allowed names.

    Examples
    --------
    >>> require_choice("kind", "ratoi", ["difference", "ratio"])
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `kind` got 'ratoi'; did you mean 'ratio'?
    """
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"`{name}` got {brief(value)}; {did_you_mean(value, allowed)}")


def require_at_least(name: str, value: Any, least: int) -> None:
    """Raise a `ConfigError` unless `value` is at least so large.

    Examples
    --------
    >>> require_at_least("resamples", 1, 2)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `resamples` must be at least 2; got 1.
    """
    if not isinstance(value, Real) or not float(value) >= least:
        raise ConfigError(f"`{name}` must be at least {least}; got {brief(value)}.")


def require_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as a whole number, or raise a `ConfigError` unless it is one within these limits.

    Examples
    --------
    >>> require_whole("people", 2.5, 1)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `people` must be an integer of at least 1; got 2.5.
    """
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigError(f"`{name}` must be an integer of at least {least}; got {brief(value)}.")
    if most is not None and number > most:
        raise ConfigError(f"`{name}` must be at most {most:,}; got {brief(value)}.")
    return number


def require_share(name: str, value: Any) -> None:
    """Raise a `ConfigError` unless `value` lies between 0 and 1, the ends left out.

    Examples
    --------
    >>> require_share("alpha", 1.0)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `alpha` must be between 0 and 1; got 1.0.
    """
    if not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise ConfigError(f"`{name}` must be between 0 and 1; got {brief(value)}.")


def require_extra(module: str, extra: str, purpose: str) -> None:
    """Raise a `MissingExtraError` with the pip line when `module` is not installed."""
    if find_spec(module) is None:
        raise MissingExtraError(
            f"{purpose} needs the package '{module}', which is not installed; "
            f"install it with: pip install 'evenhand[{extra}]'"
        )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, as in '1 row' or '1,200 rows'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def all_of(number: int, nouns: str) -> str:
    """Return all of several things, as in 'both groups' or 'all 3 groups'."""
    return f"both {nouns}" if number == 2 else f"all {number:,} {nouns}"


# In the language of the place -----------------------------------------------------------------------------------

Place = Literal["file", "command"]

FLAGS = frozenset(
    (
        *("outcome", "positive", "groups", "cuts", "weight", "id", "scores", "decisions", "threshold", "range"),
        *("selected", "favourable", "within", "metrics", "seed", "decimal", "encoding", "delimiter", "missing_values"),
        *("labels", "one_hot", "people", "memory_limit"),
    )
)
"""The arguments that are flags of `evenhand audit DATA`."""

_VALUE = r"'[^']*'|\([^()]*\)|\[[^\[\]]*\]|\{(?:[^{}\[\]]|\[[^\[\]]*\])*\}|-?\d[\d._e+-]*\d|\d|True|False"
_GIVEN = re.compile(rf"\b([a-z_]+)=({_VALUE})(?: in eh\.Table)?")
_NAMED = re.compile(r"`([a-z_]+)`")
_DATA_WHERE = "the roles of the table|the options of the file"
_WHERE = re.compile(rf"`([^`]+)` in (?:{_DATA_WHERE}|\[parity\] of the arguments of audit\(\))(: )?")
_IN_DATA = re.compile(f"in (?:{_DATA_WHERE})")


class _Words(str):
    """Words that stand for a value."""

    __slots__ = ()


@contextmanager
def speaking(place: Place) -> Iterator[None]:
    """Let errors that leave the block name what there is to change in this place.

    Examples
    --------
    >>> with speaking("command"):
    ...     raise EvenhandError("column 'y' is missing in 3 rows; drop them with missing='drop'.")
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: column 'y' is missing in 3 rows; drop them with --drop-missing.
    """
    try:
        yield
    except EvenhandError as error:
        error.args = (translated(str(error), place),)
        if isinstance(error, DataError):
            error.problems = tuple(translated(problem, place) for problem in error.problems)
        raise


def translated(message: str, place: Place) -> str:
    """Return a message with Python's arguments as settings of a file, or as flags.

    Examples
    --------
    >>> translated("give range=(0, 100) and threshold=50", "file"), translated("give range=(0, 100)", "command")
    ('give `range = [0, 100]` and `threshold = 50`', 'give --range 0,100')
    """
    if place == "file":
        return _GIVEN.sub(_setting, _IN_DATA.sub("in [data]", message))
    message = _WHERE.sub(_place_of_flag, message)
    message = _GIVEN.sub(lambda match: _flag(match) or match[0], message)
    message = re.sub(r"(--range \S+ and )threshold\b", r"\1--threshold", message)
    message = _NAMED.sub(lambda match: _named(match[1]) or match[0], message)
    return re.sub(r"(--[a-z-]+): \1\b", r"\1", message)


def _value(text: str) -> Any:
    """Return the value that a message shows, or the words where it only describes one."""
    try:
        return ast.literal_eval(text.replace(", ...", ""))
    except (SyntaxError, ValueError):
        return [_Words(word) for word in text.strip("()[]{}").split(", ")]


def _setting(match: re.Match[str]) -> str:
    value = _value(match[2])
    here = " in [data]" if match[1] == "missing" and value == "drop" else ""
    return f"`{match[1]} = {_toml(value)}`{here}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return value if isinstance(value, _Words) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _flag(match: re.Match[str]) -> str | None:
    name, value = match[1], _value(match[2])
    if name == "missing":
        return "--drop-missing" if value == "drop" else None
    if name == "kind":
        return f"--{value}s"
    if name == "tables":
        return "--old-settings OLD.toml --new-settings NEW.toml"
    if name == "predictions":
        return "--scores COLUMN or --decisions COLUMN"
    flag = _named(name)
    if flag is None:
        return None
    repeated = value if name == "missing_values" and isinstance(value, list) else [value]
    return " ".join(f"{flag} {_word(one)}" for one in repeated)


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{shlex.quote(str(name))}={_word(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(_word, value))
    text = str(value)
    return shlex.quote(text) if any(letter.isalnum() for letter in text) else f"'{text}'"


def _named(name: str) -> str | None:
    return f"--{name.replace('_', '-')}" if name in FLAGS or name == "key" else None  # `key` is one of `compare`


def _place_of_flag(match: re.Match[str]) -> str:
    """Return the flag that a setting such as `predictions.risk.threshold` comes from; of a whole model, nothing."""
    parts = [part for part in match[1].split(".") if not part.isdigit()]
    flag = "--require" if parts[0] == "thresholds" else _named(parts[-1])
    if flag is None:
        return "" if parts[0] == "predictions" and match[2] else match[0]
    return flag + (match[2] or "")
