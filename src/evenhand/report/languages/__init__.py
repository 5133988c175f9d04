"""The front page in a reader's language: one file of words for each, beside this one.

English sentences stand in the code, where each audit keeps its own. A translation gives each of them by its
`sentence_id`, with the same placeholders; what is composed, such as the place of a finding, it composes from the
finding's columns. Statistical detail stays English and is marked so.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Self

from evenhand.core.display import Section, listed
from evenhand.core.findings import Finding
from evenhand.core.formats import DASH, show, show_interval
from evenhand.core.records import OVERALL, STANDARDISED, limits_to_judge
from evenhand.errors import ConfigError, did_you_mean
from evenhand.table.roles import UNNAMED

LANGUAGES = ("en", "de")
_MONTHS = "January February March April May June July August September October November December"
_USUAL_VERB = "selects"


@cache
def language(code: str = "en") -> Language:
    """Return a language by its code.

    Examples
    --------
    >>> language("de").date("2026-11-16T12:00:00"), language("de").count(12345)
    ('16. November 2026', '12.345')
    """
    if code not in LANGUAGES:
        raise ConfigError(f"there is no language {code!r}; {did_you_mean(code, LANGUAGES)}")
    text = files(__package__).joinpath(f"{code}.toml").read_text(encoding="utf-8")
    return Language(code, tomllib.loads(text))


@dataclass(frozen=True, eq=False)
class Language:
    """The words of one language, and how it writes numbers and dates."""

    code: str
    words: dict[str, Any]

    def say(self, key: str, part: str = "page", **values: Any) -> str:
        """Return a text of the page."""
        text: str = self.words[part][key]
        return text.format(**values)

    # Numbers and dates

    def number(self, text: str) -> str:
        """Return a written number as this language writes it."""
        signs = self.words.get("language")
        if signs is None:
            return text
        turned = text.translate(str.maketrans({",": signs["thousands"], ".": signs["decimal"]}))
        return turned.replace("%", signs["percent"])

    def count(self, value: int) -> str:
        """Return a whole number."""
        return self.number(f"{value:,}")

    def date(self, moment: str) -> str:
        """Return the day of an ISO time."""
        year, month, day = moment[:10].split("-")
        signs = self.words.get("language", {"months": _MONTHS.split(), "date": "{day} {month} {year}"})
        written: str = signs["date"].format(day=int(day), month=signs["months"][int(month) - 1], year=year)
        return written

    def amount(self, finding: Finding) -> str:
        """Return the number of a finding, with its unit."""
        text = self.number(show(finding.value, finding.style))
        return self.say("points", amount=text) if finding.style == "points" and finding.value is not None else text

    def interval(self, finding: Finding) -> str:
        """Return the interval that a verdict rests on."""
        low, high = limits_to_judge(finding)
        ends = [self.number(show_interval(end, end, finding.style).partition(" ")[0]) for end in (low, high)]
        if low is None and high is None:
            return DASH
        if low is None:
            return self.say("at_most", number=ends[1])
        return self.say("at_least", number=ends[0]) if high is None else self.say("range", low=ends[0], high=ends[1])

    def limit(self, finding: Finding) -> str:
        """Return the threshold of a finding, as in 'at most 10 points'."""
        if self.code == "en" or finding.threshold is None or finding.limit is None:
            return finding.threshold or ""
        points = finding.threshold.endswith("points")
        number = self.number(f"{100 * finding.limit if points else finding.limit:g}")
        word = "at_least" if finding.threshold.startswith("at least") else "at_most"
        return self.say(word, number=self.say("points", amount=number) if points else number)

    def section(self, name: str, section: Section) -> dict[str, str]:
        """Return title and question of a section, and the language that they are in."""
        known: dict[str, str] | None = self.words.get("sections", {}).get(name)
        return (
            {**known, "lang": self.code}
            if known
            else {"title": section.title, "question": section.question, "lang": "en"}
        )

    # Sentences

    def sentence(self, audit: str, sentence_id: str) -> str | None:
        """Return a sentence of an audit with its placeholders; None where there is no translation."""
        known = self.words.get("sentences", {})
        for table in (known.get(audit, {}), known.get("core", {})):
            if sentence_id in table:
                found: str = table[sentence_id]
                return found
        base, _, ending = sentence_id.rpartition("_")
        if ending in self.words.get("endings", {}) and (whole := self.sentence(audit, base)) is not None:
            return whole.removesuffix(".") + str(self.words["endings"][ending])
        return None

    def headline(self, finding: Finding) -> str:
        """Return the headline of a finding."""
        template = self.sentence(finding.audit, finding.sentence_id)
        if template is None:
            return finding.headline
        clause = self.sentence(finding.audit, f"clause_{finding.metric}") or self.sentence("core", "clause")
        return _Filled(self, finding).vformat(template.replace("{clause}", str(clause)), (), self._arguments(finding))

    def speaks(self, finding: Finding) -> bool:
        """Tell whether a headline is in this language."""
        return self.code == "en" or self.sentence(finding.audit, finding.sentence_id) is not None

    def _arguments(self, finding: Finding) -> dict[str, Any]:
        """Return what a sentence is filled with; what is composed in English is composed anew."""
        words = self.words["words"]
        arguments = {
            name: words.get(value, value) if isinstance(value, str) else value
            for name, value in finding.arguments.items()
        }
        for name in ("group", "reference", "model", "worse_off", "lower", "higher", "label"):
            if name in arguments:
                arguments[name] = self.label(finding.arguments[name])
        stakeholder = finding.coordinates.get("stakeholder")
        verb = str(arguments.get("selects", _USUAL_VERB))
        own = self.words["selects"]
        return arguments | {
            "where": self._place(finding, model=True),
            "place": self._place(finding, model=False),
            "title": self.words["titles"].get(finding.metric, arguments.get("title", finding.metric)),
            "who": words["critics"] if stakeholder is None else words["critics_of"].format(stakeholder=stakeholder),
            "people": f", {people}" if (people := str(arguments.get("people", "")).strip()) else "",
            "selects": _Verb(**own)
            if verb == _USUAL_VERB
            else _Verb.of(verb, self.words["verbs"]["particles"].split()),
            "scope": arguments.get("scope", "")
            if finding.grouping is None
            else words["scope_groups"].format(grouping=finding.grouping),
        }

    def label(self, group: Any) -> Any:
        """Return the label of a group; those that evenhand gives in this language, all others as the data have them."""
        return self.words.get("words", {}).get(group, group) if group in _OWN_LABELS else group

    def note(self, text: str) -> str | None:
        """Return a remark of a section; None where it is not translated."""
        return text if self.code == "en" else self._turned(text, "notes")

    def _place(self, finding: Finding, *, model: bool) -> str:
        named = self.words["place"]
        if finding.audit == "study":
            return str(finding.coordinates.get("condition") or self.words["words"]["All people"])
        parts = [named["model"].format(model=finding.model)] if model and finding.model else []
        if finding.grouping:
            parts.append(named["grouping"].format(grouping=finding.grouping))
        if finding.stratum:
            standardised = finding.stratum == STANDARDISED
            parts.append(named["standardised" if standardised else "stratum"].format(stratum=finding.stratum))
        if ", noise " in str(finding.arguments.get("where", "")):
            parts.append(named["setting"].format(setting=finding.coordinates.get("setting")))
        text = ", ".join(parts) or str(named["everybody"])
        return text if model and finding.model else f"{text[:1].upper()}{text[1:]}"

    def reason(self, finding: Finding) -> str | None:
        """Return why there is no verdict; None where it is not translated."""
        if self.code == "en":
            return finding.reason
        told = [self._turned(text, "reasons") for text in _SENTENCE_END.split(finding.reason)]
        known = [sentence for sentence in told if sentence is not None]
        return " ".join(known) if len(known) == len(told) else self._turned(finding.reason, "reasons")

    def family(self, sentence: str) -> str | None:
        """Return what p-values and verdicts hold for together; None where it is not translated."""
        return sentence if self.code == "en" else self._turned(sentence, "families")

    def _turned(self, text: str, part: str) -> str | None:
        """Return an English text of the catalogue in this language; None where it is not in there."""
        for name, pattern in _patterns(part).items():
            if found := pattern.fullmatch(text):
                values = {key: self._word(key, value) for key, value in found.groupdict().items()}
                told = self.say(name, part, **values)
                return f"{told[:1].upper()}{told[1:]}"
        return None

    def _word(self, key: str, text: str) -> str:
        """Return a word or number that stands within a sentence; names stay as they are."""
        words = self.words["words"]
        if key.startswith("name"):
            return text
        if splits := re.fullmatch(r"(\d+) splits?", text):
            return str(words["splits"].format(number=splits[1]))
        if key == "family" and (family := _FAMILY.fullmatch(text)):
            audits = [self.words["sections"].get(name, {}).get("title", name) for name in _AND.split(family["audits"])]
            key = f"{'one' if family['number'] == '1' else 'several'}_{family['what'].removesuffix('s')}"
            key += "" if family["number"] == "1" else "s"
            told = listed(audits, self.say("and", "short"))
            return str(words[key].format(number=self.number(family["number"]), audits=told))
        amount, points, _ = text.partition(" points")
        return str(words.get(text) or (f"{self.number(amount)} {words['points']}" if points else self.number(text)))


_OWN_LABELS = (*UNNAMED, OVERALL)
_SENTENCE_END = re.compile(r"(?<=[.?]) (?=[A-Z])")
_FAMILY = re.compile(r"(?P<number>[\d,]+) (?:tested )?(?P<what>verdicts?|findings?) of (?P<audits>.+?)(?: alone)?")
_AND = re.compile(r", | and ")


@cache
def _patterns(part: str) -> dict[str, re.Pattern[str]]:
    """Return English texts as patterns, the longest first."""
    templates = sorted(language().words[part].items(), key=lambda item: -len(item[1]))
    parts = {name: re.split(r"\{(\w+)\}", template) for name, template in templates}
    return {
        name: re.compile("".join(f"(?P<{part}>.+?)" if at % 2 else re.escape(part) for at, part in enumerate(found)))
        for name, found in parts.items()
    }


class _Verb(NamedTuple):
    """A verb as a main clause has it, what ends that clause, and as a subordinate clause has it."""

    plain: str
    end: str
    last: str

    @classmethod
    def of(cls, verb: str, particles: Collection[str]) -> Self:
        """Return a user's verb; one with a particle, such as "lehnt ab", is parted and joined as grammar wants it."""
        plain, _, particle = verb.rpartition(" ")
        parted = plain and particle in particles
        return cls(plain, f" {particle}", f"{particle}{plain}") if parted else cls(verb, "", verb)


class _Filled(string.Formatter):
    """Fills a sentence with numbers as the language writes them."""

    def __init__(self, spoken: Language, finding: Finding) -> None:
        self.spoken, self.unit = spoken, finding.arguments.get("unit", "number")

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, _Verb):
            return getattr(value, format_spec or "plain")
        if format_spec:
            return self.spoken.number(show(value, self.unit if format_spec == "unit" else format_spec))  # type: ignore[arg-type]
        return self.spoken.number(f"{value:g}") if isinstance(value, float) else str(value)
