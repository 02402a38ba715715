"""Builds of images from a Dockerfile: buildah, which needs no daemon, or Docker where it works."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import packages
from tests.cluster.cache import cache_root
from tests.cluster.steps import SlowStep, run

MOST_IMAGES = 60


@dataclass(frozen=True)
class Recipe:
    """What an image is made of."""

    name: str
    context: Path
    dockerfile: Path
    usually: str
    """How long the build takes, in words."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """Files that steps of the build may read by an id; no layer keeps them."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that buildah and Docker have in common, and the context."""
        arguments = [part for name, value in self.arguments.items() for part in ("--build-arg", f"{name}={value}")]
        secrets = [part for name, file in self.secrets.items() for part in ("--secret", f"id={name},src={file}")]
        named = ("--tag", self.name, "--file", str(self.dockerfile))
        return (*named, "--network=host", *arguments, *secrets, str(self.context))


class Buildah:
    """Builds in folders of the cache, without a daemon."""

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build with buildah in a chroot: that works inside containers too."""
        packages.require(packages.BUILDAH)
        storage = cache_root() / "buildah"
        driver = os.environ.get("STORAGE_DRIVER", "overlay")
        folders = (f"--root={storage / 'root'}", f"--runroot={storage / 'run'}")
        buildah = ("buildah", f"--storage-driver={driver}", *folders)
        build = (*buildah, "bud", "--isolation=chroot", "--layers", *recipe.options)
        push = (*buildah, "push", "--compression-level=1", recipe.name, f"oci-archive:{archive}:{recipe.name}")
        _keep_small(buildah)
        for title, usually, command in (
            (f"building {recipe.name}", recipe.usually, build),
            (f"exporting {recipe.name}", "some seconds", push),
        ):
            SlowStep(title, usually, command, _log(recipe.name)).run()


def _keep_small(buildah: tuple[str, ...]) -> None:
    """Empty the store when layers of many builds have gathered: it is a cache, the archives are kept elsewhere."""
    if len(run(*buildah, "images", "--quiet").splitlines()) > MOST_IMAGES:
        run(*buildah, "rmi", "--all", "--force")


class Docker:
    """Builds with a Docker daemon."""

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build with BuildKit."""
        build = ("docker", "build", *recipe.options)
        SlowStep(
            f"building {recipe.name}", recipe.usually, build, _log(recipe.name), env={"DOCKER_BUILDKIT": "1"}
        ).run()
        self._save(recipe.name, archive)

    def adopt(self, public: str, name: str, archive: Path) -> None:
        """Give a public image a name of ours."""
        SlowStep(f"pulling {public}", "a minute", ("docker", "pull", public), _log(name)).run()
        SlowStep(f"naming it {name}", "a moment", ("docker", "tag", public, name), _log(name)).run()
        self._save(name, archive)

    def _save(self, name: str, archive: Path) -> None:
        command = ("docker", "save", "--output", str(archive), name)
        SlowStep(f"exporting {name}", "some seconds", command, _log(name)).run()


def _log(image: str) -> Path:
    return cache_root() / "log" / f"image-{image.rpartition('/')[2].replace(':', '-')}.log"
