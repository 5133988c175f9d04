"""`PageWording`: the words of the page in a reader's language; what lacks a translation is English."""

from __future__ import annotations

from functools import cache

from evenhand.core.display import Section
from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.records import limits_to_judge
from evenhand.core.thresholds import Verdict
from evenhand.errors import ConfigError, did_you_mean
from evenhand.messages import LANGUAGES, Argument, Language, Message
from evenhand.messages import language as language_of
from evenhand.messages.formats import DASH, show
from evenhand.messages.settings import PYTHON, SettingStyle
from evenhand.report.messages import say


@cache
def wording(code: str = "en") -> PageWording:
    """Return the words of the page in a language.

    Examples
    --------
    >>> wording("de").say("in_short"), wording("de").count(12345)
    ('Kurz gefasst', '12.345')
    """
    if code not in LANGUAGES:
        raise ConfigError(
            "there is no language {code!r}; {hint}",
            code=code,
            hint=did_you_mean(code, LANGUAGES),
        )
    return PageWording(language_of(code))


class PageWording:
    """The words of the page in one language."""

    def __init__(self, spoken: Language) -> None:
        self.language, self.code = spoken, spoken.code
        self.number, self.count, self.date = spoken.number, spoken.count, spoken.date
        self.label, self.join = spoken.label, spoken.join

    # Words of the page

    def say(self, key: str, part: str = "page", **values: Argument) -> str:
        """Return a text of the page."""
        return self.language.render(say(f"{part}_{key}", **values))

    def verdict(self, verdict: Verdict) -> str:
        """Return the word for a verdict."""
        return self.say(verdict, "verdicts")

    def tile(self, verdict: Verdict, number: int) -> str:
        """Return what stands behind the number of verdicts of a kind."""
        return self.say(f"{verdict}_one" if number == 1 else verdict, "tiles")

    def fact(self, term: str) -> str:
        """Return what a fact below the title is called; a term that is no word of ours stays as it is."""
        return self.language.word("fact", term)

    def title(self, title: str) -> str:
        """Return the title of the report; one of the user's stays as it is."""
        return self.language.word("title", title)

    def metric(self, title: str) -> str:
        """Return the title of a metric, given as it stands within an English sentence."""
        return self.language.word("metric", title)

    def metric_title(self, metric: Metric) -> str:
        """Return the title of a metric that stands for itself."""
        within = metric.title_in_sentence
        told = self.metric(within)
        return metric.title if told == within else told

    def section(self, section: Section) -> dict[str, str]:
        """Return title and question of a section, and the language that they are in."""
        asked = section.question
        if isinstance(asked, Message):
            question, translated = self.told(asked), self.speaks(asked)
        else:
            question = self.language.word("section", asked)
            translated = question != asked
        if self.code == "en" or not translated:
            return {"title": section.title, "question": question, "lang": "en"}
        return {"title": self.language.word("section", section.title), "question": question, "lang": self.code}

    # What a finding says

    def amount(self, finding: Finding) -> str:
        """Return the number of a finding, with its unit."""
        text = self.number(show(finding.value, finding.style))
        return self.say("points", amount=text) if finding.style == "points" and finding.value is not None else text

    def interval(self, finding: Finding) -> str:
        """Return the interval that a verdict rests on."""
        low, high = limits_to_judge(finding)
        start, end = (self.number(show(limit, finding.style)) for limit in (low, high))
        if low is None and high is None:
            return DASH
        if low is None:
            return self.say("at_most", number=end)
        return self.say("at_least", number=start) if high is None else self.say("range", low=start, high=end)

    def limit(self, finding: Finding) -> str:
        """Return the threshold of a finding, as in 'at most 10 points'."""
        return self.told(finding.threshold)

    def headline(self, finding: Finding) -> str:
        """Return the headline of a finding."""
        return self.told(finding.headline)

    # Messages

    def told(self, message: Message | None, settings: SettingStyle = PYTHON) -> str:
        """Return a message in this language, or in English where any part of it has no translation."""
        if message is None:
            return ""
        return (self.language if self.speaks(message) else language_of()).render(message, settings)

    def speaks(self, message: Message | None) -> bool:
        """Tell whether a message is in this language, with all messages in it."""
        return message is None or self.language.translates(message)
