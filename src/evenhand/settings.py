"""The base class of all settings: frozen and validated, with evenhand's error messages."""

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

from evenhand.errors import ConfigError, EvenhandError, SettingError, brief, did_you_mean, problem
from evenhand.messages import Message, Setting
from evenhand.messages.message import Place

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOULD_BE = "input should be "
_MOST_SENTENCES = 5  # in one error message


class Settings(BaseModel):
    """A frozen set of options that rejects unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str | Place) -> Self:
        """Return the validated settings, or raise one `ConfigError` that names every wrong setting.

        Examples
        --------
        >>> class Options(Settings):
        ...     confidence: float = 0.95
        >>> Options.parse({"confidnce": 0.9}, "[parity]")
        Traceback (most recent call last):
        evenhand.errors.ConfigError: `confidnce` in [parity]: there is no such setting; did you mean 'confidence'?
        """
        if not isinstance(values, Mapping):
            raise ConfigError(
                "{where} must be settings by name, in a dictionary; got {values}.", where=where, values=brief(values)
            )
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(_explain(error, cls, where)) from None


def read_toml(path: str | os.PathLike[str], advice: str = "check the folder and the name.") -> dict[str, Any]:
    """Read a TOML file; raise a `ConfigError` for any problem, with `advice` if there is no such file."""
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError("'{name}' is a folder; give the path of a .toml file.", name=name)
        if not stat.S_ISREG(mode):
            raise ConfigError("'{name}' is a pipe or a device; give the path of a .toml file.", name=name)
        text = Path(name).read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError("there is no file '{name}'; {advice}", name=name, advice=advice) from None
    except OSError as error:
        raise ConfigError(
            "'{name}' cannot be read: {lower}.", name=name, lower=str(error.strerror or error).lower()
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("'{name}' is not in UTF-8; save it as UTF-8 in your editor.", name=name) from None
    except ConfigError:
        raise
    except ValueError:
        raise ConfigError("no file can be called {name!r}; {advice}", name=name, advice=advice) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("'{name}' is not valid TOML: {error}", name=name, error=error) from None
    except RecursionError:
        raise ConfigError("'{name}' is not valid TOML: its lists or tables are nested too deep.", name=name) from None
    except ValueError:
        raise ConfigError("'{name}' is not valid TOML: it has a number of more than 4,300 digits.", name=name) from None


def read_json(path: str | os.PathLike[str], what: str, error_type: type[EvenhandError] = ConfigError) -> dict[str, Any]:
    """Return the object in a JSON file, or raise an error; `what` describes the expected file."""
    name = os.fspath(path)
    try:
        text = Path(name).read_text(encoding="utf-8")
        read = json.loads(text, parse_constant=_json_number, parse_float=_json_number)
    except OSError as error:
        raise error_type(
            "'{name}' could not be read: {value}; it should be {what}.",
            name=name,
            value=error.strerror or error,
            what=what,
        ) from None
    except (ValueError, RecursionError) as error:
        raise error_type("'{name}' is not {what}: {error}.", name=name, what=what, error=error) from None
    if not isinstance(read, dict):
        raise error_type("'{name}' is not {what}: it holds {read}.", name=name, what=what, read=brief(read))
    return read


def _json_number(text: str) -> float:
    """Parse a JSON number; raise for nan and infinity, which Python accepts."""
    number = float(text)
    if not isfinite(number):
        raise SettingError("it holds {text}, which is not a finite number", text=text)
    return number


def named_once(setting: str, names: tuple[str, ...], noun: str = "the column") -> tuple[str, ...]:
    """Return the names, or raise if a name occurs twice; for use in validators.

    Examples
    --------
    >>> named_once("features", ("a", "b", "a"))
    Traceback (most recent call last):
    evenhand.errors.SettingError: `features` names the column 'a' twice
    """
    for position, name in enumerate(names):
        if name in names[:position]:
            raise SettingError(
                "`{setting}` names {noun}{name!r} twice", setting=setting, noun=f"{noun} " if noun else "", name=name
            )
    return names


def _explain(error: ValidationError, model: type[BaseModel], where: str | Place) -> Message:
    """Return all errors of a set of settings as one message of a few lines."""
    problems: dict[tuple[str, Message], None] = {}
    kinds: dict[str, list[str]] = {}
    for details in error.errors():
        location = [part for part in details["loc"] if not _is_type_tag(part)]
        path = ".".join(map(str, location))
        expected = _expected(details)
        if expected is None:
            problems[path, _message(details, model, location)] = None
            continue
        kinds.setdefault(path, []).append(expected)  # each member of a union reports the type it expects
        for key in [key for key in problems if key[0] == path and key[1].id == _EXPECTED]:
            del problems[key]
        expected_kinds = tuple(dict.fromkeys(kinds[path]))
        problems[path, problem(_EXPECTED, kinds=expected_kinds, value=brief(details["input"]))] = None
    return _lines([_with_place(path, message, where) for path, message in problems])


_EXPECTED = "must be {kinds:name or}; got {value}"


def _with_place(path: str, message: Message, where: str | Place) -> Message:
    repeated = message.id.startswith(f"`{path.rpartition('.')[2]}`")
    return problem(
        "{setting:prefix}{problem}", setting=Setting(name=path, where=where, repeated=repeated), problem=message
    )


def _lines(messages: list[Message]) -> Message:
    """Join messages into lines, the last with a full stop or a question mark."""
    distinct = list(dict.fromkeys(messages))
    if len(distinct) > _MOST_SENTENCES:
        distinct[_MOST_SENTENCES:] = [problem("and {more:,} more like these", more=len(distinct) - _MOST_SENTENCES)]
    return problem("{lines:stop lines}", lines=tuple(distinct))


def _expected(details: ErrorDetails) -> str | None:
    """Return the expected kind of value; None for other errors."""
    kind = _plain_words(details["msg"])
    return kind.removeprefix(_SHOULD_BE) if kind.startswith(_SHOULD_BE) and details["type"] != "value_error" else None


def _message(details: ErrorDetails, model: type[BaseModel], location: list[int | str]) -> Message:
    """Return the error of one setting as a message."""
    if details["type"] == "extra_forbidden":
        hint = did_you_mean(location[-1], _fields_at(model, location[:-1]))
        return problem("there is no such setting; {hint}", hint=hint)
    if details["type"] == "missing":
        return problem("it is required and was not given")
    if details["type"] == "too_short" and details["ctx"]["min_length"] == 1:
        return problem("must not be empty")
    if details["type"] == "value_error":
        cause = details.get("ctx", {}).get("error")
        message = getattr(cause, "message", None)
        return (
            message
            if isinstance(message, Message)
            else problem("{text}", text=details["msg"].removeprefix("Value error, "))
        )
    return problem("{text}; got {value}", text=_plain_words(details["msg"]), value=brief(details["input"]))


def _plain_words(message: str) -> str:
    """Return pydantic's message with "list" and "table" instead of "tuple" and "dictionary"."""
    message = f"{message[:1].lower()}{message[1:]}"
    message = re.sub(r"a valid dictionary( or instance of \w+)?", "a table of settings", message)
    message = re.sub(", unable to parse .*", "", message)
    return message.replace("a valid tuple", "a list").replace("a valid", "a").replace("a integer", "an integer")


def _is_type_tag(part: int | str) -> bool:
    """Return whether a part of pydantic's path names a member of a union rather than a field."""
    return isinstance(part, str) and (part in {"str", "int", "float", "bool"} or "[" in part)


def _fields_at(model: type[BaseModel], location: list[int | str]) -> list[str]:
    """Return the names of the settings at a path such as `predictions.xgboost`."""
    for part in location:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        nested = next(_models_in(annotation), None)
        model = nested or model
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models_in(inner)
