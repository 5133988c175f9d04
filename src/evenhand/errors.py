"""The errors of evenhand, and helpers that raise them.

An error has a message: an English sentence with placeholders, which is its id, and their arguments. It states what
is wrong (with the value), where, and what to do, so that it can be shown to users. A setting is written in backticks,
as in `alpha` or `missing='drop'`. Code that runs an audit for a file or for the command line wraps it in
`error_messages_for`, so that its errors name settings of the file, or flags.
"""

from __future__ import annotations

import difflib
import operator
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Real

from evenhand.messages import Argument, Message, Setting, language
from evenhand.messages.formats import showable
from evenhand.messages.message import Written
from evenhand.messages.settings import FILE, PYTHON, SettingStyle
from evenhand.messages.shared import say

_LONGEST, _MOST_PROBLEMS = 900, 20  # maximum characters per line, and maximum problems, in one message


class EvenhandError(ValueError):
    """Base class of all errors that users can cause and fix; its message can be shown to users.

    Parameters
    ----------
    message : the sentence, with a placeholder for every value; or a `Message`.
    **args : the values of the placeholders. Pass names and values of the data here, never within the sentence.

    Examples
    --------
    >>> raise EvenhandError("`alpha` must be between 0 and 1; got {value!r}.", value=1.3)
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: `alpha` must be between 0 and 1; got 1.3.
    """

    def __init__(self, message: str | Message = "", /, **args: object) -> None:
        self.message = problem(message, **args) if isinstance(message, str) else message
        self.style: SettingStyle = PYTHON
        super().__init__(self.message)

    def __str__(self) -> str:
        text = language().render(self.message, self.style)
        return "\n".join(_shortened(line) for line in showable(text).split("\n"))


def _shortened(line: str) -> str:
    """Return a long line with its middle cut; the start states the problem, the end the remedy."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 3 :]}"


class DataError(EvenhandError):
    """The data do not fit their roles; `problems` lists every reason."""

    def __init__(self, problems: str | Message | Sequence[Message] = (), /, **args: object) -> None:
        if isinstance(problems, str | Message):
            super().__init__(problems, **args)
            self.reasons: tuple[Message, ...] = (self.message,)
        else:
            self.reasons = tuple(problems)
            super().__init__(_as_list(self.reasons))

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons as sentences."""
        return tuple(showable(language().render(reason, self.style)) for reason in self.reasons)


class ConfigError(EvenhandError):
    """A setting, an argument or `audit.toml` is invalid."""


class MissingExtraError(EvenhandError, ImportError):
    """An optional dependency is needed but not installed."""


def problem(sentence: str, /, **args: object) -> Message:
    """Return a problem as a message; `DataError` accepts a sequence of them."""
    return Message(sentence, {name: _argument(value) for name, value in args.items()})


def _argument(value: object) -> Argument:
    """Return a value as an argument of a message; other types become text."""
    if isinstance(value, Message | Setting | str | int | float | None):
        return value
    is_list = isinstance(value, tuple) and any(isinstance(item, str | Message | Setting) for item in value)
    return tuple(map(_argument, value)) if isinstance(value, tuple) and is_list else Written(value)


class SettingError(ValueError):
    """An error raised by validators of settings; `Settings.parse` adds the setting's path to its message.

    Examples
    --------
    >>> str(SettingError("`features` names {column!r} twice", column="age"))
    "`features` names 'age' twice"
    """

    def __init__(self, message: str | Message, /, **args: object) -> None:
        self.message = problem(message, **args) if isinstance(message, str) else message
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message.text


def _as_list(problems: Sequence[Message]) -> Message:
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  - {{problem_{position}}}" for position in range(min(len(problems), _MOST_PROBLEMS)))
    more = "\n  - and {more:count} more." if len(problems) > _MOST_PROBLEMS else ""
    shown: dict[str, Argument] = {f"problem_{index}": reason for index, reason in enumerate(problems[:_MOST_PROBLEMS])}
    counts = {"number": len(problems), "more": len(problems) - _MOST_PROBLEMS}
    return Message("{number:count} problems with the data:" + lines + more, {**shown, **counts})


@contextmanager
def error_messages_for(style: SettingStyle = FILE) -> Iterator[None]:
    """Make errors raised in the `with` block name settings in this style.

    Examples
    --------
    >>> with error_messages_for(FILE):
    ...     raise EvenhandError("column {column!r} is missing in 3 rows; drop them with `missing='drop'`.", column="y")
    Traceback (most recent call last):
    evenhand.errors.EvenhandError: column 'y' is missing in 3 rows; drop them with `missing = "drop"` in [data].
    """
    try:
        yield
    except EvenhandError as error:
        error.style = style
        raise


class _Brief(reprlib.Repr):
    """Shortens the repr of a value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxdict = self.maxlist = self.maxtuple = self.maxset = 3
        self.maxstring = self.maxother = 80

    def repr1(self, x: object, level: int) -> str:
        """Return an array or a data frame by type and shape, anything else by its first values."""
        shape = getattr(x, "shape", None)
        if not isinstance(shape, tuple):
            return re.sub(" at 0x[0-9a-f]+", "", super().repr1(x, level)).replace("\n", " ")
        return f"{type(x).__name__} of shape {shape}" if shape else repr(x)


brief = _Brief().repr
"""Return a short text of a value: at most a few items, or the shape of an array or a data frame."""


def did_you_mean(name: object, known: Iterable[str]) -> Message:
    """Return a hint with the names most similar to `name`, or all known names if they are few.

    Examples
    --------
    >>> did_you_mean("rcae", ["race", "sex"]).text
    "did you mean 'race'?"
    >>> did_you_mean("zip", ["race", "sex"]).text
    "known names: 'race', 'sex'"
    """
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    matches = difflib.get_close_matches(str(name).casefold(), folded, n=2, cutoff=0.6)
    if matches:
        return say("did_you_mean", names=tuple(repr(folded[match]) for match in matches))
    if not names:
        return say("no_names")
    shown = tuple(repr(candidate) for candidate in names[:12])
    return (
        say("known_names_and_more", names=shown, n=len(names) - 12)
        if len(names) > 12
        else say("known_names", names=shown)
    )


def require_name(
    name: object,
    known: Collection[str],
    sentence: str,
    error: type[ConfigError] | type[SettingError] = ConfigError,
    /,
    **args: object,
) -> None:
    """Raise an error unless a name is known; its sentence contains `{name}` and `{hint}`.

    Examples
    --------
    >>> require_name("rcae", ["race", "sex"], "there is no column {name!r}; {hint}")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: there is no column 'rcae'; did you mean 'race'?
    """
    if name not in known:
        raise error(sentence, name=name, hint=did_you_mean(name, known), **args)


def require_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """Raise a `ConfigError` unless `value` is one of the allowed names.

    Examples
    --------
    >>> require_choice("kind", "ratoi", ["difference", "ratio"])
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `kind` got 'ratoi'; did you mean 'ratio'?
    """
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(
            "`{name}` got {value}; {hint}", name=name, value=brief(value), hint=did_you_mean(value, allowed)
        )


def require_at_least(name: str, value: object, least: int) -> None:
    """Raise a `ConfigError` unless `value` is at least `least`.

    Examples
    --------
    >>> require_at_least("resamples", 1, 2)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `resamples` must be at least 2; got 1.
    """
    if not isinstance(value, Real) or not float(value) >= least:
        raise ConfigError("`{name}` must be at least {least}; got {value}.", name=name, least=least, value=brief(value))


def require_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as an integer; raise a `ConfigError` if it is not an integer from `least` to `most`.

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
        sentence = "`{name}` must be an integer of at least {least}; got {value}."
        raise ConfigError(sentence, name=name, least=least, value=brief(value))
    if most is not None and number > most:
        raise ConfigError("`{name}` must be at most {most:,}; got {value}.", name=name, most=most, value=brief(value))
    return number


def require_share(name: str, value: object) -> None:
    """Raise a `ConfigError` unless `value` lies strictly between 0 and 1.

    Examples
    --------
    >>> require_share("alpha", 1.0)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `alpha` must be between 0 and 1; got 1.0.
    """
    if not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise ConfigError("`{name}` must be between 0 and 1; got {value}.", name=name, value=brief(value))


def require_extra(module: str, extra: str, purpose: str) -> None:
    """Raise a `MissingExtraError` with the pip command if `module` is not installed."""
    if find_spec(module) is None:
        raise MissingExtraError(
            "{purpose} needs the package '{module}', which is not installed; "
            "install it with: pip install 'evenhand[{extra}]'",
            purpose=purpose,
            module=module,
            extra=extra,
        )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, as in '1 row' or '1,200 rows'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
