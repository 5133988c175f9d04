"""The base of everything a user can set: frozen, checked, with errors in our own words."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
import typing
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.errors import ConfigError, EvenhandError, brief, did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED = "input should be "
_MOST_SENTENCES = 5  # of what is wrong in one set of options


class Settings(BaseModel):
    """A frozen set of options that refuses unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Self:
        """Build the settings, or raise one `ConfigError` that names every wrong one.

        Examples
        --------
        >>> class Options(Settings):
        ...     confidence: float = 0.95
        >>> Options.parse({"confidnce": 0.9}, "[parity]")
        Traceback (most recent call last):
        evenhand.errors.ConfigError: `confidnce` in [parity]: there is no such setting; did you mean 'confidence'?
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(_explain(error, cls, where)) from None


def read_toml(path: str | os.PathLike[str], advice: str = "check the folder and the name.") -> dict[str, Any]:
    """Read a TOML file; whatever is wrong with it is one `ConfigError`. `advice` is for where there is none."""
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError(f"'{name}' is a folder; give the path of a .toml file.")
        if not stat.S_ISREG(mode):
            raise ConfigError(f"'{name}' is a pipe or a device; give the path of a .toml file.")
        text = Path(name).read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"there is no file '{name}'; {advice}") from None
    except OSError as error:
        raise ConfigError(f"'{name}' cannot be read: {str(error.strerror or error).lower()}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"'{name}' is not in UTF-8; save it as UTF-8 in your editor.") from None
    except ConfigError:
        raise
    except ValueError:
        raise ConfigError(f"no file can be called {name!r}; {advice}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"'{name}' is not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"'{name}' is not valid TOML: its lists or tables are nested too deep.") from None
    except ValueError:
        raise ConfigError(f"'{name}' is not valid TOML: it has a number of more than 4,300 digits.") from None


def read_json(path: str | os.PathLike[str], what: str, refused: type[EvenhandError] = ConfigError) -> dict[str, Any]:
    """Return the object that a JSON file holds; anything else is one error, which says `what` the file should be."""
    name = os.fspath(path)
    try:
        text = Path(name).read_text(encoding="utf-8")
        read = json.loads(text, parse_constant=_json_number, parse_float=_json_number)
    except OSError as error:
        raise refused(f"'{name}' could not be read: {error.strerror or error}; it should be {what}.") from None
    except (ValueError, RecursionError) as error:
        raise refused(f"'{name}' is not {what}: {error}.") from None
    if not isinstance(read, dict):
        raise refused(f"'{name}' is not {what}: it holds {brief(read)}.")
    return read


def _json_number(text: str) -> float:
    """Return a number of a JSON file; Python would also read nan, and take 1e999 for infinity."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"it holds {text}, which is not a finite number")
    return number


def named_once(setting: str, names: tuple[str, ...], noun: str = "the column") -> tuple[str, ...]:
    """Return the names that a setting lists, or refuse one that is named twice; for validators.

    Examples
    --------
    >>> named_once("features", ("a", "b", "a"))
    Traceback (most recent call last):
    ValueError: `features` names the column 'a' twice
    """
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValueError(f"`{setting}` names {f'{noun} ' if noun else ''}{name!r} twice")
    return names


def _explain(error: ValidationError, model: type[BaseModel], where: str) -> str:
    sentences: list[str] = []
    choices: dict[str, list[str]] = {}
    for problem in error.errors():
        place = [part for part in problem["loc"] if not _is_type_tag(part)]
        path = ".".join(map(str, place))
        message = _message(problem, model, place)
        if message.startswith(_EXPECTED):
            kinds = choices.setdefault(path, [])  # of a union, every member says what it would have taken
            kinds.append(message.removeprefix(_EXPECTED))
            if len(kinds) > 1:
                sentences.pop()
            message = f"{_EXPECTED}{_either(kinds)}; got {brief(problem['input'])}"
        sentences.append(f"`{path}` in {where}: {message}" if path else f"{where}: {message}")
    distinct = list(dict.fromkeys(sentences))
    if len(distinct) > _MOST_SENTENCES:
        distinct[_MOST_SENTENCES:] = [f"and {len(distinct) - _MOST_SENTENCES:,} more like these"]
    joined = "\n".join(distinct)
    return joined if joined.endswith(("?", ".")) else joined + "."


def _message(problem: ErrorDetails, model: type[BaseModel], place: list[int | str]) -> str:
    """Return what is wrong with one setting; where another kind of value was expected, without the value given."""
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"there is no such setting; {did_you_mean(place[-1], _fields_at(model, place[:-1]))}"
    if problem["type"] == "missing":
        return "it is required and was not given"
    if problem["type"] == "value_error":
        return message
    plain = _plain_words(message)
    return plain if plain.startswith(_EXPECTED) else f"{plain}; got {brief(problem['input'])}"


def _either(kinds: list[str]) -> str:
    """Return what would be taken, in one phrase."""
    *first, last = dict.fromkeys(kinds)
    return f"{', '.join(first)} or {last}" if first else last


def _plain_words(message: str) -> str:
    """Return pydantic's sentence in words of this place: lists and tables, not tuples and dictionaries."""
    message = f"{message[:1].lower()}{message[1:]}"
    message = re.sub(r"a valid dictionary( or instance of \w+)?", "a table of settings", message)
    message = re.sub(", unable to parse .*", "", message)
    return message.replace("a valid tuple", "a list").replace("a valid", "a").replace("a integer", "an integer")


def _is_type_tag(part: int | str) -> bool:
    """Tell whether a step of pydantic's path names a member of a union rather than a field."""
    return isinstance(part, str) and (part in {"str", "int", "float", "bool"} or "[" in part)


def _fields_at(model: type[BaseModel], place: list[int | str]) -> list[str]:
    """Return the names of the settings at a path such as `predictions.xgboost`."""
    for part in place:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        nested = next(_models_in(annotation), None)
        model = nested or model
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models_in(inner)
