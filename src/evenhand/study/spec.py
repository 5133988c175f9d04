"""A study as one declarative object: the checked contents of `study.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from evenhand.core.result import finalize
from evenhand.errors import ConfigError, SettingError, count, did_you_mean, problem
from evenhand.messages import Message
from evenhand.settings import Settings, read_toml
from evenhand.study import settings
from evenhand.study.analysis.analyze import run
from evenhand.study.analysis.result import StudyResult
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.cases import Assignment, deal_cases, read_cases
from evenhand.study.flow.language import built_in_questions, check_words
from evenhand.study.responses import Responses, apply_exclusions
from evenhand.study.schema import SCALE, Kind, read_columns, require_known
from evenhand.study.sets import Instrument, load_instrument
from evenhand.study.settings import AttentionCheck, Condition, Disagreement, Language, Name, Payment, Questions, Text
from evenhand.table.table import Table

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class StudySpec(Settings):
    """The settings of a study.

    Examples
    --------
    >>> from evenhand.study.template import study_template
    >>> import tomllib
    >>> spec = StudySpec.parse(tomllib.loads(study_template("effort")), "study.toml")
    >>> spec.kind, round(spec.payment.hourly, 2)
    ('effort', 12.07)
    """

    kind: Kind = Field(description="'effort' (people compare pairs) or 'disagreement' (people judge decisions).")
    title: Text = Field(description="Title that people see.")
    name: Name = Field(description="Short name for files and addresses.")
    languages: tuple[Language, ...] = Field(("en",), min_length=1, description="Languages; the first is the default.")
    consent: Text = Field(
        description="What people agree to before they start: plain, an empty line between paragraphs."
    )
    instructions: Text = Field(
        "", description="What people read before the first item: plain, an empty line between paragraphs."
    )
    practice: bool = Field(True, description="Whether people try one made-up or unused item before the real ones.")
    debrief: Text = Field("", description="What people read at the end: plain, an empty line between paragraphs.")
    contact: Text = Field("", description="Contact for questions, shown on every page.")
    conditions: dict[str, Condition] = Field({}, description="Conditions of an effort study, by name.")
    sets_per_person: int = Field(3, ge=1, description="Sets that each person sees (effort).")
    disagreement: Disagreement | None = Field(None, description="What a disagreement study shows.")
    scale: tuple[Text, ...] = Field(SCALE, min_length=2, description="Words of the scale, most similar first.")
    questions: Questions = Field(Questions(), description="Wording of the questions.")
    attention: tuple[AttentionCheck, ...] = Field((), description="Attention checks.")
    payment: Payment = Field(description="What people are paid.")
    rationales: settings.Rationales = Field(
        settings.Rationales(), description="How two raters rate the reasons that people wrote."
    )
    about: settings.About = Field(
        settings.About(), description="What people say about themselves, on a page between the consent and the start."
    )
    recruitment: settings.Recruitment = Field(
        settings.Recruitment(), description="Where people come from and are sent at the end."
    )
    interface: dict[str, dict[str, str]] = Field(
        {}, description="Words of the pages (buttons, errors) by language, to add a language or to change some."
    )
    analysis: AnalysisSpec = Field(AnalysisSpec(), description="How the answers are analysed, and who is left out.")
    seed: int = Field(0, ge=0, description="Seed of what chance decides: conditions, orders, assignment.")

    _folder: Path = PrivateAttr(default=Path())

    @model_validator(mode="before")
    @classmethod
    def _one_share(cls, values: Any) -> Any:
        """Take the share of people with a truth-serum bonus from [[payment.bonuses]]."""
        try:
            bonuses = [bonus for bonus in values["payment"]["bonuses"] if bonus["by"] == "truth_serum"]
            shares = [bonus.get("share", 0.1) for bonus in bonuses]
            analysis = {**values.get("analysis", {})}
        except (KeyError, TypeError, AttributeError):
            return values
        return {**values, "analysis": {"bonus_share": shares[0], **analysis}} if shares else values

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "effort" and not self.conditions:
            raise SettingError("an effort study needs at least one condition: [conditions.NAME]")
        if self.kind == "effort" and self.disagreement is not None:
            raise SettingError("[disagreement] belongs to a study of kind 'disagreement'")
        if self.kind == "disagreement" and self.disagreement is None:
            raise SettingError("a disagreement study needs [disagreement] with its cases")
        if self.kind == "disagreement" and self.conditions:
            raise SettingError("[conditions] belong to a study of kind 'effort'")
        if self.kind == "effort" and len(self.scale) % 2:
            raise SettingError(
                "`scale` must have an even number of points, half of them similar; got {number}", number=len(self.scale)
            )
        return self

    @model_validator(mode="after")
    def _bonuses_agree(self) -> Self:
        for bonus in self.payment.bonuses:
            if bonus.by == "truth_serum" and bonus.share != self.analysis.bonus_share:
                raise SettingError(
                    "[[payment.bonuses]] pays the truth serum to a share of {share:g}, but `bonus_share` in "
                    "[analysis] is {bonus_share:g}; leave the latter out",
                    share=bonus.share,
                    bonus_share=self.analysis.bonus_share,
                )
        return self

    @model_validator(mode="after")
    def _checks_suffice(self) -> Self:
        limit = self.analysis.exclusions.failed_checks
        if self.attention and limit is not None and limit > len(self.attention):
            raise SettingError(
                "`failed_checks` in [analysis.exclusions] is {limit}, but there are only {number} attention checks",
                limit=limit,
                number=len(self.attention),
            )
        return self

    @model_validator(mode="after")
    def _all_languages(self) -> Self:
        """Raise one error for all texts and interface texts that lack a language."""
        if len(set(self.languages)) < len(self.languages):
            raise SettingError("`languages` names one twice")
        for language in self.interface:
            if language not in self.languages:
                known = did_you_mean(language, self.languages)
                raise SettingError(
                    "[interface.{language}] is no language of the study; {known}", language=language, known=known
                )
        texts = [(where, text) for where, text in texts_of(self) if not _unasked(where, self.kind)]
        problems = [*self._missing_texts(texts), *self._missing_words()]
        if problems:
            raise SettingError(_in_lines(problems))
        for where, text in texts:
            self._check_parts(where, text)
        return self

    def _missing_texts(self, texts: Sequence[tuple[str, str | Mapping[str, str]]]) -> Iterator[Message]:
        """Yield one message that names all texts that lack a language, if there are any."""
        lacking = [(where, self._lacks(where, text)) for where, text in texts if text]
        if any(languages for _, languages in lacking):
            listed = tuple(
                problem("`{setting}` lacks {languages}", setting=where, languages=tuple(missing))
                for where, missing in lacking
                if missing
            )
            shape = tuple(f"{language} = '...'" for language in self.languages)
            yield problem(
                "these texts are not there in every language of the study ({languages}), write them as in "
                "{{ {shape} }}: {texts:semicolons}",
                languages=self.languages,
                shape=shape,
                texts=listed,
            )

    def _missing_words(self) -> Iterator[Message]:
        """Yield a message for each language that lacks interface texts."""
        for language in self.languages:
            try:
                check_words(language, self.interface.get(language, {}))
            except SettingError as error:
                yield error.message

    @model_validator(mode="after")
    def _who_is_asked(self) -> Self:
        """Raise for quotas and kinds of critics that refer to unknown questions or choices."""
        first = self.languages[0]
        for question in self.about.questions:
            offered = question.offered(first)
            if len({*offered, settings.UNSAID}) <= len(offered):
                raise SettingError(
                    "`choices` of the question {name!r} names one twice, or {unsaid!r}",
                    name=question.name,
                    unsaid=settings.UNSAID,
                )
        for name, most in self.recruitment.quotas.items():
            asked = self.about.question(name, "`quotas` in [recruitment]")
            if asked.range is not None:
                raise SettingError(
                    "`quotas` in [recruitment] needs a question with `choices`; {name!r} has a `range`", name=name
                )
            choices = (*asked.offered(first), *([settings.UNSAID] if asked.may_skip else []))
            require_known(most, choices, "the quota of {question!r} in [recruitment] got {name}", question=name)
        if self.disagreement is not None and self.disagreement.stakeholder is not None:
            self.about.question(self.disagreement.stakeholder, "`stakeholder` in [disagreement]")
        return self

    @model_validator(mode="after")
    def _checks_can_be_passed(self) -> Self:
        shown = self.sets_per_person if self.disagreement is None else self.disagreement.assignment.per_critic
        first = self.languages[0]
        for number, check in enumerate(self.attention, 1):
            offered = check.offered(first)
            if len(set(offered)) < len(offered):
                raise SettingError("`choices` of attention check {number} names one twice", number=number)
            if check.right_choice(first) is None:
                known = ", ".join(map(repr, offered))
                raise SettingError(
                    "`right` of attention check {number} must be one of the choices ({known}) or its number from 1; "
                    "got {right!r}",
                    number=number,
                    known=known,
                    right=check.right,
                )
            if check.after > shown:
                raise SettingError(
                    "`after` of attention check {number} is {after}, but people see {count}",
                    number=number,
                    after=check.after,
                    count=count(shown, "set" if self.disagreement is None else "case"),
                )
        return self

    def _lacks(self, where: str, text: str | Mapping[str, str]) -> list[str]:
        """Return the study's languages in which a text is missing."""
        if not isinstance(text, str):
            return [language for language in self.languages if language not in text]
        if text in _DEFAULTS:
            return [language for language in self.languages if default_words(text, language) is None]
        # A unit, or a choice of an attention check, may be the same in every language.
        return [] if where.endswith(".unit") or ".choices." in where else list(self.languages[1:])

    def _check_parts(self, where: str, text: str | Mapping[str, str]) -> None:
        """Raise for a text with an unknown language or placeholder."""
        for language, words in ({self.languages[0]: text} if isinstance(text, str) else text).items():
            if language not in self.languages:
                raise SettingError(
                    "`{where}` has a text in {language!r}; {hint}",
                    where=where,
                    language=language,
                    hint=did_you_mean(language, self.languages),
                )
            _check_placeholders(where, words)

    @property
    def folder(self) -> Path:
        """The folder of the `study.toml`, relative to which its files are found."""
        return self._folder

    def instruments(self) -> dict[str, Instrument]:
        """Read and check the sets of every condition, relative to the `study.toml`.

        Raises a `ConfigError` if an instrument has fewer sets than `sets_per_person`, or no score for K.
        """
        instruments = {}
        for name, condition in self.conditions.items():
            made = load_instrument(self.folder / condition.instrument)
            if len(made.sets) < self.sets_per_person:
                raise ConfigError(
                    "the instrument of [conditions.{name}] holds {sets}, but `sets_per_person` is "
                    "{sets_per_person}; design more sets.",
                    name=name,
                    sets=count(len(made.sets), "set"),
                    sets_per_person=self.sets_per_person,
                )
            if any(shown.subjects[0].score is None for shown in made.sets):
                raise ConfigError(
                    "the instrument of [conditions.{name}] holds no score to show for K; give the table of "
                    "design_sets() a prediction, or name its `model`.",
                    name=name,
                )
            instruments[name] = made
        return instruments

    def assignment(self) -> Assignment:
        """Read the cases of a disagreement study, and return their assignment to critics."""
        if self.disagreement is None:
            raise ConfigError("only a disagreement study deals out cases; this one is of kind 'effort'.")
        asked, source = self.disagreement, self.folder / self.disagreement.cases
        columns, _ = read_columns(source)
        require_known(asked.shown, columns, "`shown` in [disagreement] got {name}")
        cases = read_cases(columns, asked.id, asked.decision, asked.groups)
        require_known(cases.label_names, asked.labels, "`labels` in [disagreement] lacks {name}")
        return deal_cases(cases, asked.assignment)

    def for_audit(self, responses: Responses, by: str | None = None) -> tuple[Table, dict[str, Any]]:
        """Return the cases of a disagreement study, and the settings of `eh.disagreement` with the answers.

        The rules of [analysis.exclusions] are applied unless exclusions have already been applied.

        Parameters
        ----------
        responses : the answers, from the store or an export.
        by : the question of [about] that defines the kind of critic; by default `stakeholder` of [disagreement].
        """
        if self.disagreement is None:
            raise ConfigError("an effort study has no cases to audit; `analyze` analyses its answers.")
        asked = self.disagreement
        kept = responses if responses.excluded else apply_exclusions(responses, self.analysis.exclusions)
        if not len(kept.person):
            raise ConfigError("[analysis.exclusions] leaves out everybody who answered; there is nothing to analyse.")
        columns, _ = read_columns(self.folder / asked.cases)
        wanted = (asked.id, asked.decision, *asked.groups)
        table = Table({name: columns[name] for name in wanted}, id=asked.id, groups=list(asked.groups))
        # If 'disagree' is an allowed answer, answers have no direction.
        directed = "disagree" not in asked.answers
        answer = [word if directed or word == "agree" else "disagree" for word in kept.answers["answer"]]
        said = {"case": kept.answers["item"], "critic": kept.people["participant"][kept.person], "answer": answer}
        settings: dict[str, Any] = {name: name for name in said} | {"decision": asked.decision}
        kind = asked.stakeholder if by is None else by
        if kind is not None:
            require_known([kind], kept.people, "the answers say nothing of the kind of critic {name}")
            said["stakeholder"], settings["stakeholder"] = kept.people[kind][kept.person], "stakeholder"
        settings["answers"] = {"data": said, "labels": list(asked.labels), "ordered": True if directed else None}
        return table, {**settings, "seed": self.analysis.seed, "confidence": self.analysis.confidence}

    def analyze(self, responses: Responses) -> StudyResult:
        """Analyse responses with the settings of [analysis]."""
        return finalize(run(responses, self.analysis))

    def words(self, text: str | Mapping[str, str], language: str | None = None) -> str:
        """Return a text in a language, by default the study's first."""
        known = language if language is not None and language in self.languages else self.languages[0]
        if isinstance(text, str):
            return default_words(text, known) or text
        return text[known]


def _in_lines(problems: Sequence[Message]) -> Message:
    """Return several problems as one message, one per line."""
    lines = {f"problem_{at}": each for at, each in enumerate(problems, 1)}
    return problem("\n".join(f"{{{name}}}" for name in lines), **lines)


def texts_of(model: BaseModel, path: str = "") -> Iterator[tuple[str, str | Mapping[str, str]]]:
    """Yield every text shown to people, with the name of its setting."""
    for name, field in type(model).model_fields.items():
        yield from _texts_in(getattr(model, name), f"{path}{name}", settings.IS_TEXT in field.metadata)


def _texts_in(value: Any, where: str, is_text: bool) -> Iterator[tuple[str, str | Mapping[str, str]]]:
    if is_text:
        yield where, value
    elif isinstance(value, BaseModel):
        yield from texts_of(value, f"{where}.")
    elif isinstance(value, Mapping | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
        # Names, points of the scale and choices are texts; other settings may contain texts.
        holds_texts = where in ("disagreement.names", "scale") or (
            isinstance(value, tuple) and where.endswith(".choices")
        )
        for key, inner in items:
            yield from _texts_in(inner, f"{where}.{key}", holds_texts)


_DEFAULTS = {
    **{text: f"scale.{point}" for point, text in enumerate(SCALE, 1)},
    **{str(text): f"questions.{name}" for name, text in texts_of(Questions())},
}
"""The setting names of the default texts, by the English text."""
_FEEDBACK_QUESTIONS = ("questions.feedback", "questions.reason")


@lru_cache(maxsize=4_096)
def default_words(text: str, language: str) -> str | None:
    """Return a default text of the settings in a language; None if not a default or not available.

    Examples
    --------
    >>> default_words("Similar", "de"), default_words("Similar", "en-GB"), default_words("Similar", "it")
    ('Ähnlich', 'Similar', None)
    """
    name = _DEFAULTS.get(text)
    if name is None:
        return None
    return text if language.split("-")[0] == "en" else built_in_questions(language).get(name)


def _unasked(where: str, kind: Kind) -> bool:
    """Return whether a text is unused in this kind of study."""
    if kind == "effort":
        return where == "questions.feedback"
    return where.startswith("scale.") or (where.startswith("questions.") and where not in _FEEDBACK_QUESTIONS)


def _check_placeholders(where: str, text: str) -> None:
    is_paid = where in ("consent", "instructions", "debrief")
    known = settings.PAYMENT_PLACEHOLDERS if is_paid else settings.PLACEHOLDERS
    for name in _PLACEHOLDER.findall(text) if is_paid or where.startswith("questions.") else ():
        if name not in known:
            raise SettingError(
                "`{where}` has a placeholder {{{name}}}; {hint}", where=where, name=name, hint=did_you_mean(name, known)
            )


def read_study(path: str | os.PathLike[str]) -> StudySpec:
    """Read and check a `study.toml`; paths in it are relative to its folder."""
    name = os.fspath(path)
    spec = StudySpec.parse(read_toml(name), name)
    spec._folder = Path(name).parent
    return spec


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of `study.toml`.

    Examples
    --------
    >>> import evenhand as eh
    >>> sorted(eh.study.study_schema()["required"])
    ['consent', 'kind', 'name', 'payment', 'title']
    """
    schema = StudySpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
