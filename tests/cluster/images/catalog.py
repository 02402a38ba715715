"""The images that tests use, each as an archive in the cache, built when something it is made of changed."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.cluster.binaries import binaries
from tests.cluster.cache import CHECKOUT, build_once, cache_root, hash_of
from tests.cluster.choice import Platform, platform
from tests.cluster.images import names
from tests.cluster.images.builders import Buildah, Docker, Recipe
from tests.cluster.images.debian import Root
from tests.cluster.images.pip import pip_secrets
from tests.cluster.steps import say

RECIPES = Path(__file__).parent
KEPT_PRODUCT_ARCHIVES = 3

BASE_ROOT = Root(include=("python3", "python3-venv", "ca-certificates"))
PUBLIC_BASE = "python:3.13-slim-bookworm"

POSTGIS_ROOT = Root(
    include=("postgresql-15", "postgresql-15-postgis-3"),
    # The compiler of queries is off in the entry point; it is a third of the image.
    leave_out=("/usr/lib/*/libLLVM*", "/usr/lib/postgresql/15/lib/bitcode/*", "/usr/lib/postgresql/15/lib/llvmjit*"),
    finish=(
        'echo "geogenius:x:65532:65532::/nonexistent:/usr/sbin/nologin" >> "$1/etc/passwd"',
        'rm -rf "$1/var/lib/postgresql" && install -d -o 65532 -g 65532 "$1/var/lib/postgresql"',
    ),
)
PUBLIC_POSTGIS = "postgis/postgis:15-3.5"

PRODUCT_FILES = ("operator/Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE", "locks/runtime.txt")


def pause_image() -> Path:
    """The image of a pod's sandbox."""
    program, dockerfile = binaries().pause, RECIPES / "pause" / "Dockerfile"
    key = hash_of(program.parent, [program], dockerfile.read_text())

    def build(folder: Path) -> None:
        recipe = Recipe(names.PAUSE, program.parent, dockerfile, "2 s")
        Buildah().build(recipe, folder / "image.tar")

    return _archive("pause", key, build)


def base_image() -> Path:
    """Python on Debian: what the product's image starts from."""
    return _debian_image(names.BASE, BASE_ROOT, PUBLIC_BASE)


def postgis_image() -> Path:
    """PostgreSQL with PostGIS, configured by POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB."""
    return _debian_image(names.POSTGIS, POSTGIS_ROOT, PUBLIC_POSTGIS)


def product_image(checkout: Path = CHECKOUT) -> Path:
    """The product, built from its own Dockerfile on the base image."""
    base = base_image()
    with tempfile.TemporaryDirectory() as folder:
        # A copy, so that the hash is that of what is built even while someone edits.
        context = Path(folder)
        _copy_product(checkout, context)
        files = (file for file in context.rglob("*") if file.is_file())
        key = hash_of(context, files, base.parent.name)
        archive = _archive("product", key, lambda result: _build_product(context, base, result))
    _prune("product", archive.parent)
    return archive


def _copy_product(checkout: Path, context: Path) -> None:
    for name in PRODUCT_FILES:
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / name, context / name)
    package = Path("operator", "geogenius")
    shutil.copytree(checkout / package, context / package, ignore=shutil.ignore_patterns("__pycache__"))


def _build_product(context: Path, base: Path, folder: Path) -> None:
    # Buildah's store may have been emptied; the archive is there.
    start = names.BASE if platform() is Platform.KIND else f"oci-archive:{base}"
    builder = Docker() if platform() is Platform.KIND else Buildah()
    with pip_secrets() as secrets:
        recipe = Recipe(
            name=names.PRODUCT,
            context=context,
            dockerfile=context / "operator" / "Dockerfile",
            usually="a minute; some seconds when the dependencies are the same",
            arguments={"BASE_IMAGE": start},
            secrets=secrets,
        )
        builder.build(recipe, folder / "image.tar")


def _debian_image(name: str, root: Root, public: str) -> Path:
    """An image of a Debian file system; with Docker, a public image takes its place under the same name."""
    short = name.rpartition("/")[2].partition(":")[0].removeprefix("geogenius-")
    recipe_folder, on = RECIPES / short, platform()
    settings = (public,) if on is Platform.KIND else root.command
    key = hash_of(recipe_folder, recipe_folder.iterdir(), on, *settings)

    def build(folder: Path) -> None:
        archive = folder / "image.tar"
        match on:
            case Platform.KIND:
                Docker().adopt(public, name, archive)
            case Platform.NODE:
                context = folder / "context"
                shutil.copytree(recipe_folder, context)
                root.make(short, context / "root.tar")
                Buildah().build(Recipe(name, context, context / "Dockerfile", "20 s"), archive)
                shutil.rmtree(context)

    return _archive(short, key, build)


def _archive(short: str, key: str, build: Callable[[Path], None]) -> Path:
    """The archive of an image, built if it is not in the cache."""

    def build_and_tell(folder: Path) -> None:
        build(folder)
        say(f"  {short}: {(folder / 'image.tar').stat().st_size / 1e6:.0f} MB")

    return build_once(cache_root() / "images" / f"{short}-{key}", build_and_tell) / "image.tar"


def _prune(short: str, current: Path) -> None:
    """Keep the last few archives of an image that changes with every edit."""
    current.touch()
    folders = sorted(current.parent.glob(f"{short}-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_PRODUCT_ARCHIVES:]:
        shutil.rmtree(folder)
