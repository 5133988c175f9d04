"""`PageWording`: texts of the page in the reader's language, or in English if untranslated."""

from __future__ import annotations

from functools import cache

from evenhand.core.display import Section
from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.records import limits_to_judge
from evenhand.errors import require_name
from evenhand.messages import LANGUAGES, Argument, Language, Message
from evenhand.messages import language as language_of
from evenhand.messages.formats import DASH, show
from evenhand.messages.settings import PYTHON, SettingStyle
from evenhand.report.messages import say


@cache
def page_wording(code: str = "en") -> PageWording:
    """Return the texts of the page in a language.

    Examples
    --------
    >>> page_wording("de").say("findings"), page_wording("de").count(12345)
    ('Befunde', '12.345')
    """
    require_name(code, LANGUAGES, "there is no language {name!r}; {hint}")
    return PageWording(language_of(code))


class PageWording:
    """The texts of the page in one language."""

    def __init__(self, language: Language) -> None:
        self.language, self.code = language, language.code
        self.number, self.count, self.date = language.number, language.count, language.date
        self.label, self.join = language.label, language.join

    # Words of the page

    def say(self, key: str, part: str = "page", **values: Argument) -> str:
        """Return a text of the page."""
        return self.language.render(say(f"{part}_{key}", **values))

    def verdict(self, finding: Finding) -> str:
        """Return the text for the verdict of a finding."""
        if finding.badge is None:
            return self.say(finding.verdict, "verdicts")
        text = self.message(finding.badge)
        return f"{text[:1].upper()}{text[1:]}"

    def period(self, name: str | None) -> str:
        """Return the name of a period: a month such as 2026-09 in words, and other periods unchanged.

        Examples
        --------
        >>> page_wording().period("2026-09"), page_wording().period("first half")
        ('September 2026', 'first half')
        """
        return self.language.month(name or "")

    def fact(self, term: str) -> str:
        """Return the translated name of a fact below the title; unknown names are unchanged."""
        return self.language.word("fact", term)

    def title(self, title: str) -> str:
        """Return the translated title of the report; a title set by the user is unchanged."""
        return self.language.word("title", title)

    def metric(self, title: str) -> str:
        """Return the translated title of a metric within a sentence."""
        return self.language.word("metric", title)

    def metric_title(self, metric: Metric) -> str:
        """Return the translated title of a metric as a heading."""
        within = metric.title_in_sentence
        translated = self.metric(within)
        return metric.title if translated == within else translated

    def section(self, section: Section) -> dict[str, str]:
        """Return the title, question and language of a section."""
        question = section.question
        if isinstance(question, Message):
            text, translated = self.message(question), self.translates(question)
        else:
            text = self.language.word("section", question)
            translated = text != question
        if self.code == "en" or not translated:
            return {"title": section.title, "question": text, "lang": "en"}
        return {"title": self.language.word("section", section.title), "question": text, "lang": self.code}

    # The parts of a finding

    def amount(self, finding: Finding) -> str:
        """Return the value of a finding with its unit."""
        if finding.is_limit:
            return self.interval(finding)
        text = self.plain_amount(finding)
        return self.say("points", amount=text) if finding.style == "points" and finding.value is not None else text

    def plain_amount(self, finding: Finding) -> str:
        """Return the value of a finding without the word for points."""
        if finding.lower is not None and finding.upper is not None:
            low, high = (self.number(show(end, finding.style)) for end in (finding.lower, finding.upper))
            return self.say("range", low=low, high=high)
        return self.number(show(finding.value, finding.style))

    def interval(self, finding: Finding) -> str:
        """Return the interval behind a verdict."""
        low, high = limits_to_judge(finding)
        start, end = (self.number(show(limit, finding.style)) for limit in (low, high))
        if low is None and high is None:
            return DASH
        if low is None:
            return self.say("at_most", number=end)
        return self.say("at_least", number=start) if high is None else self.say("range", low=start, high=end)

    def p_value(self, p: float | None) -> str:
        """Return a p-value as text."""
        return self.number(show(p, "p"))

    def limit(self, finding: Finding) -> str:
        """Return the threshold of a finding as text, such as 'at most 10 points'."""
        return self.message(finding.threshold)

    def headline(self, finding: Finding) -> str:
        """Return the headline of a finding."""
        return self.message(finding.headline)

    # Messages

    def message(self, message: Message | None, settings: SettingStyle = PYTHON) -> str:
        """Return a message in this language, or in English if a part of it is untranslated."""
        if message is None:
            return ""
        return (self.language if self.translates(message) else language_of()).render(message, settings)

    def translates(self, message: Message | None) -> bool:
        """Return whether a message and all its parts are translated into this language."""
        return message is None or self.language.translates(message)
