"""Update and compile the gettext catalogues `locale/de.po` and `locale/de.mo` of every catalogue of sentences.

    python tools/messages.py           write what has changed in the English sentences into the catalogues, and compile
    python tools/messages.py --check   only say what is missing or not current, and fail where anything is

The English sentences are in `locale/en.toml` or in the code of the catalogue; translators edit the .po files.
A changed English sentence loses its translation, so that no outdated translation remains.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from evenhand.messages.catalogue import Catalogue, catalogues

SOURCE = Path(__file__).resolve().parent.parent / "src"
CODES = ("de",)


def main() -> None:
    """Update or check the catalogues."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say what is missing or not current")
    only_check = parser.parse_args().check
    faults = [fault for catalogue in load() for code in CODES for fault in update(catalogue, code, only_check)]
    sys.exit("\n".join(faults) if faults and only_check else 0)


def load() -> tuple[Catalogue, ...]:
    """Import every module with a catalogue, and return the catalogues."""
    import_module("evenhand.messages.shared")
    for path in sorted((SOURCE / "evenhand").rglob("messages.py")):
        import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    return tuple(known for known in catalogues() if known.package.partition(".")[0] == "evenhand")


def update(catalogue: Catalogue, code: str, only_check: bool) -> Iterator[str]:
    """Write the catalogue of one language; if only checking, yield missing and outdated parts."""
    folder = SOURCE.joinpath(*catalogue.package.split(".")) / "locale"
    source, compiled = folder / f"{code}.po", folder / f"{code}.mo"
    translated = current(catalogue, code, source)
    text, binary = written(translated)
    if not only_check:
        folder.mkdir(exist_ok=True)
        source.write_bytes(text)
        compiled.write_bytes(binary)
        return
    for path, content in ((source, text), (compiled, binary)):
        if not path.is_file() or path.read_bytes() != content:
            yield f"{path.relative_to(SOURCE)} is not current; run: make messages"
    yield from (
        f"{catalogue.name}: {message.context} has no translation into {code}" for message in missing(translated)
    )


def current(catalogue: Catalogue, code: str, source: Path) -> Catalog:
    """Return the translations of one catalogue: its English sentences with the translations of the .po file."""
    old = Catalog(locale=code)
    if source.is_file():
        with source.open("rb") as file:
            old = read_po(file, locale=code)
    new = Catalog(
        locale=code,
        header_comment=f"# The sentences of evenhand ({catalogue.name}); made by `make messages`.",
        project="evenhand",
        version="0",
        msgid_bugs_address="the issue tracker",
        last_translator="The evenhand team",
        language_team="The evenhand team",
        fuzzy=False,
        creation_date=_SAME_DATE,
        revision_date=_SAME_DATE,
    )
    for key, sentence in catalogue.sentences.items():
        _add(new, old, sentence, key)
    for kind, words in catalogue.words.items():
        for word in words:
            _add(new, old, word, kind)
    return new


_SAME_DATE = datetime(2026, 11, 18, tzinfo=UTC)  # constant, so that files change only if a sentence does


def _add(new: Catalog, old: Catalog, sentence: str | tuple[str, str], context: str) -> None:
    known = old.get(sentence if isinstance(sentence, str) else sentence[0], context)
    same = known is not None and known.id == (sentence if isinstance(sentence, str) else tuple(sentence))
    empty = "" if isinstance(sentence, str) else ("", "")
    new.add(sentence, known.string if known is not None and same else empty, context=context)


def written(catalog: Catalog) -> tuple[bytes, bytes]:
    """Return the contents of a catalogue's .po and .mo files."""
    text, binary = BytesIO(), BytesIO()
    write_po(text, catalog, width=120, omit_header=False, sort_output=False)
    write_mo(binary, catalog)
    return text.getvalue(), binary.getvalue()


def missing(catalog: Catalog) -> Iterator[Message]:
    """Yield the messages without a translation."""
    for message in catalog:
        if message.id and not (all(message.string) if isinstance(message.string, tuple) else message.string):
            yield message


if __name__ == "__main__":
    main()
