"""A zip of report, results, settings and plan that third parties can verify.

It uses only standard cryptography: SHA-256, and detached signatures by `ssh-keygen -Y` if the user has a key.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from evenhand.core.files import write_files
from evenhand.errors import ConfigError
from evenhand.evidence.verify import check_files
from evenhand.messages.formats import json_text
from evenhand.report.formats import make_files
from evenhand.report.page import templates
from evenhand.run.audit import Audit
from evenhand.run.plan import PLAN_FILE, other_settings
from evenhand.run.saved import checksums, read_saved

SUMS_FILE = "SHA256SUMS"
NAMESPACE = "evenhand"


def pack(
    folder: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    settings: str | os.PathLike[str] | None = None,
    plan: str | os.PathLike[str] | None = None,
    formats: Sequence[str] = ("html", "md", "csv", "datasheet", "junit"),
    key: str | os.PathLike[str] | None = None,
    allow_code: bool = False,
) -> Path:
    """Write a zip for a regulator: report, results, plan, settings, versions and checksums; return its path.

    The files of the run are included unchanged. Additional formats are rendered from the results, and listed in the
    pack's run.json, so that `verify` checks all files.

    Parameters
    ----------
    folder : the folder of a saved audit.
    to : the path of the zip.
    settings : the `audit.toml`, for recomputing the audit; its settings must match the audit's.
    plan : the sealed plan; by default `plan.json` in the folder, if it exists.
    formats : additional formats of the report.
    key : a private SSH key for signing the list of checksums.
    allow_code : whether the settings may name Python functions to import.
    """
    run_folder = Path(folder)
    broken = [check.text for check in check_files(run_folder) if check.holds is False]
    if broken:
        raise ConfigError("'{place}' cannot be packed: {broken}", place=run_folder, broken=broken[0])
    audit = Audit.load(run_folder)
    files = _files_of_run(run_folder, audit, formats)
    for name, source_path in ((PLAN_FILE, plan), ("audit.toml", settings)):
        path = Path(source_path) if source_path is not None else run_folder / name
        if source_path is not None or path.exists():
            files[name] = _read(path)
            if name == "audit.toml":
                _require_same_settings(audit, path, allow_code)
    files["versions.txt"] = _versions(audit).encode()
    has = {"has_plan": PLAN_FILE in files, "has_settings": "audit.toml" in files, "signed": key is not None}
    guide = templates(autoescape=False).get_template("VERIFY.md")
    files["VERIFY.md"] = guide.render(audit=audit, sums=SUMS_FILE, namespace=NAMESPACE, **has).encode()
    files["manifest.json"] = json_text(_manifest(audit, files)).encode()
    files[SUMS_FILE] = _sums(files)
    if key is not None:
        files[f"{SUMS_FILE}.sig"] = sign(files[SUMS_FILE], key)
    target = Path(to)
    return write_files(target.parent, {target.name: _zipped(files, audit.run["started"])})[target.name]


def _files_of_run(run_folder: Path, audit: Audit, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the files of the run unchanged, and the report in additional formats.

    The returned `run.json` lists all of them.
    """
    run = read_saved(run_folder / "run.json")
    written = checksums(dict(run))
    strange = next((name for name in written if Path(name).name != name), None)
    if strange is not None:
        raise ConfigError(
            "'{place}' cannot be packed: its run.json names the file '{strange}', which is not in it.",
            place=run_folder,
            strange=strange,
        )
    files = {name: (run_folder / name).read_bytes() for name in dict.fromkeys(["results.json", *written])}
    made = {name: _as_bytes(content) for name, content in make_files(audit, formats).items() if name not in files}
    files |= made
    listed = {**run, "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}}
    return {**files, "run.json": json_text(listed).encode() if made else (run_folder / "run.json").read_bytes()}


def _sums(files: Mapping[str, bytes]) -> bytes:
    """Return the list of checksums in the format of `sha256sum --check`."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()


def _require_same_settings(audit: Audit, path: Path, allow_code: bool) -> None:
    others = other_settings(audit, path, allow_code=allow_code)
    if others:
        raise ConfigError(
            "'{path}' is not the audit.toml that this audit was run with; {others}", path=path, others=others[0]
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError("'{path}' cannot be read: {value}.", path=path, value=error.strerror or error) from None


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _versions(audit: Audit) -> str:
    packages = {"evenhand": audit.run["evenhand"], **audit.run["packages"]}
    return "\n".join(
        [f"# Python {audit.run['python']}", *(f"{name}=={version}" for name, version in packages.items()), ""]
    )


def _manifest(audit: Audit, files: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "evenhand": audit.run["evenhand"],
        "started": audit.run["started"],
        "data_sha256": audit.data["hash"],
        "plan_sha256": audit.plan["sha256"] if audit.plan is not None else None,
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in sorted(files.items())
        },
    }


def _zipped(files: Mapping[str, bytes], started: str) -> bytes:
    """Return a reproducible zip: the same bytes for the same files."""
    buffer = io.BytesIO()
    moment = datetime.fromisoformat(started).timetuple()[:6]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def sign(content: bytes, key: str | os.PathLike[str]) -> bytes:
    """Return a detached signature made by `ssh-keygen -Y sign`."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ConfigError(
            "signing needs ssh-keygen, which is not on this machine; leave out --sign, or install OpenSSH."
        )
    if not Path(key).is_file():
        raise ConfigError("there is no key '{key}'; make one with: ssh-keygen -t ed25519 -f KEY", key=key)
    arguments = [program, "-Y", "sign", "-n", NAMESPACE, "-f", os.fspath(key)]
    done = subprocess.run(arguments, input=content, capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise ConfigError(
            "ssh-keygen could not sign with '{key}': {strip}",
            key=key,
            strip=done.stderr.decode(errors="replace").strip(),
        )
    return done.stdout
