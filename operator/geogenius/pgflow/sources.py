"""Where the SQL of pgmq and of pgflow's core comes from: packages, fetched or given as files, and checked by digest.

Nothing of it stands in this project, so that each keeps its own licence.
"""

import base64
import hashlib
import io
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from geogenius.domain.errors import Misconfigured

CORE_PACKAGE, CORE_VERSION = "@pgflow/core", "0.8.1"
CORE_SHA512 = "ElLPkKGPjttBsjlLJfn4CcMeiFwtuUhUNuFADwhQjdrg+netkeONY12oxcbPSBMqBWXVAuKriLq+1T1dCPEWPQ=="
"""Of the archive, base64, as the registry's `integrity` has it."""
CORE_FILES_SHA256 = "830ed77b5c32029235036f15902f99432203d45db342c42479ac99102bb86a5a"
"""Of names and contents of the SQL files in the order of their names, each ended by a zero byte."""
PGMQ_SHA256 = "bf7e66c75ed771df0c5f7cb2b9f0123ca77992daacd56e3911d1894a3efa99de"
"""Of the SQL of pgmq 1.13.0 in the package pgmq 1.1.4."""

FETCH_SECONDS = 120.0
_SQL_FOLDER = "dist/supabase/migrations"
_CREATE_EXTENSION = re.compile(r'^CREATE EXTENSION IF NOT EXISTS "pgmq"[^;\n]*;$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One file to be executed as a whole."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Source:
    """The scripts of one component in their order, and what they are a copy of."""

    origin: str
    version: str
    scripts: tuple[Script, ...]


def pgmq_source() -> Source:
    """The SQL of pgmq out of the installed package `pgmq`, whose client is neither used nor imported.

    Raises Misconfigured where it is not installed, or holds another version.
    """
    found = find_spec("pgmq")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    if not folders:
        raise Misconfigured("the package pgmq is not installed: pip install 'geogenius[pgflow]'", reason="ExtraMissing")
    folder = Path(folders[0]) / "sql"
    text = (folder / "pgmq.sql").read_text(encoding="utf-8")
    _check("pgmq.sql of the package pgmq", PGMQ_SHA256, hashlib.sha256(text.encode()).hexdigest())
    return Source("the Python package pgmq", (folder / "VERSION").read_text().strip(), (Script("pgmq.sql", text),))


def core_source(given: Path | None) -> Source:
    """The SQL of pgflow's core: from an archive or folder that is given, else fetched with npm.

    Raises Misconfigured for another digest than the pinned one, and where npm is needed and fails.
    """
    if given is None:
        return _fetched()
    if given.is_dir():
        return _of_folder(given)
    if given.is_file():
        return _of_archive(given.read_bytes(), str(given.name))
    raise Misconfigured(f"{given} is neither a folder nor an archive of {CORE_PACKAGE}", reason="CoreMissing")


def _fetched() -> Source:
    package = f"{CORE_PACKAGE}@{CORE_VERSION}"
    remedy = f"fetch it elsewhere with `npm pack {package}` and give the archive with --core"
    npm = shutil.which("npm")
    if npm is None:
        raise Misconfigured(f"npm is not there to fetch {package}: {remedy}", reason="CoreMissing")
    with tempfile.TemporaryDirectory(prefix="geogenius-core-") as folder:
        command = [npm, "pack", "--silent", package]
        try:
            done = subprocess.run(  # noqa: S603  a fixed command
                command, cwd=folder, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
            )
        except subprocess.TimeoutExpired as late:
            message = f"npm did not give {package} within {FETCH_SECONDS:.0f} s: {remedy}"
            raise Misconfigured(message, reason="CoreMissing") from late
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(archives) != 1:
            raise Misconfigured(f"npm did not give {package}: {remedy}", reason="CoreMissing")
        return _of_archive(archives[0].read_bytes(), f"npm package {package}")


def _of_archive(content: bytes, origin: str) -> Source:
    """The digest comes first: nothing of an archive that is not the known one is looked at."""
    _check(origin, CORE_SHA512, base64.b64encode(hashlib.sha512(content).digest()).decode())
    scripts = []
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive.getmembers():
            path = Path(member.name)
            packed = archive.extractfile(member) if path.match(f"{_SQL_FOLDER}/*.sql") else None
            if packed is not None:
                scripts.append(Script(path.name, packed.read().decode()))
    return _core(origin, scripts)


def _of_folder(folder: Path) -> Source:
    """An unpacked package, or the folder of its SQL files itself."""
    inner = [folder / "package" / _SQL_FOLDER, folder / _SQL_FOLDER, folder]
    files = next((found for place in inner if (found := sorted(place.glob("*.sql")))), [])
    scripts = [Script(file.name, file.read_text(encoding="utf-8")) for file in files]
    whole = b"".join(part for s in scripts for part in (s.name.encode(), b"\0", s.text.encode(), b"\0"))
    _check(f"the SQL files in {folder.name}", CORE_FILES_SHA256, hashlib.sha256(whole).hexdigest())
    return _core(str(folder.name), scripts)


def _core(origin: str, scripts: list[Script]) -> Source:
    """As the core has it, but for the line that makes an extension of pgmq: that is there already."""
    plain = [Script(script.name, _CREATE_EXTENSION.sub("", script.text)) for script in scripts]
    return Source(origin, CORE_VERSION, tuple(sorted(plain, key=lambda script: script.name)))


def _check(what: str, expected: str, found: str) -> None:
    if found != expected:
        known = f"{CORE_PACKAGE} {CORE_VERSION} and pgmq 1.1.4 are the versions that are known"
        raise Misconfigured(
            f"{what} has the digest {found} where {expected} is expected: {known}", reason="DigestDiffers"
        )
