"""How the host's pip reaches packages, handed to builds as secrets so that no image keeps it."""

import ast
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

CERTIFICATES = "/run/secrets/ca-certificates"
"""Where the product's Dockerfile mounts the bundle."""
PASSED_ON = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout")


@contextlib.contextmanager
def pip_secrets() -> Iterator[dict[str, Path]]:
    """Files for the secrets `pip.conf` and `ca-certificates`, for as long as a build takes."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    settings = {**parsed(listing.stdout), **from_environment(os.environ)}
    bundle = settings.get("cert") or os.environ.get("SSL_CERT_FILE")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pip.conf"
        file.write_text(configuration(settings, with_bundle=bool(bundle)))
        yield {"pip.conf": file, **({"ca-certificates": Path(bundle)} if bundle else {})}


def parsed(listing: str) -> dict[str, str]:
    """Settings of pip's files as `pip config list` prints them."""
    found = re.findall(r"^(?:global|install)\.([a-z-]+)=(.+)$", listing, re.MULTILINE)
    return {name: str(ast.literal_eval(value)) for name, value in found}


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of pip's variables, which win over its files; this Python may be without pip."""
    names = {name: f"PIP_{name.upper().replace('-', '_')}" for name in ("cert", *PASSED_ON)}
    return {name: environment[variable] for name, variable in names.items() if environment.get(variable)}


def configuration(settings: dict[str, str], *, with_bundle: bool) -> str:
    """A configuration file for pip in a build: the host's settings, but for files that only the host has."""
    passed_on = {name: settings[name] for name in PASSED_ON if name in settings}
    chosen = {**({"cert": CERTIFICATES} if with_bundle else {}), **passed_on}
    return "\n".join(["[global]", *(f"{name} = {' '.join(value.split())}" for name, value in chosen.items()), ""])
