"""Sentences as data: a message is an id and arguments, and this is the only place that turns one into prose."""

from evenhand.messages.catalogue import Catalogue, catalogue_of
from evenhand.messages.disclosure import may_publish
from evenhand.messages.language import LANGUAGES, Language, language
from evenhand.messages.message import Argument, Message, Setting
from evenhand.messages.text import UNSHOWABLE, showable

__all__ = [
    "LANGUAGES",
    "UNSHOWABLE",
    "Argument",
    "Catalogue",
    "Language",
    "Message",
    "Setting",
    "catalogue_of",
    "language",
    "may_publish",
    "showable",
]
