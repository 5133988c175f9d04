"""Sentences as data: a message is an id with arguments, rendered as prose only by this package."""

from evenhand.messages.catalogue import Catalogue, catalogue_of
from evenhand.messages.disclosure import may_publish
from evenhand.messages.formats import UNSHOWABLE, showable
from evenhand.messages.language import LANGUAGES, Language, language
from evenhand.messages.message import Argument, Message, Setting

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
