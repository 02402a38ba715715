"""The command `python3 -m tests.cluster`."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cluster.binaries import binaries
from tests.cluster.contract import Cluster, ClusterError
from tests.cluster.images import catalog
from tests.cluster.packages import TESTS, require
from tests.cluster.providers import DEFAULT_NAME, cluster, known_names
from tests.cluster.steps import say

IMAGES: dict[str, Callable[[], Path]] = {
    "base": catalog.base_image,
    "postgis": catalog.postgis_image,
    "product": catalog.product_image,
}


def main(arguments: list[str]) -> int:
    """Do what the arguments say; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        _actions(options)[options.action]()
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.cluster", description="A real cluster for tests.")
    parser.add_argument("--name", default=DEFAULT_NAME, help="which cluster (default: %(default)s)")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("build", help="build the cluster's programs and every image")
    actions.add_parser("packages", help="on Debian, install what tests without a cluster need")
    actions.add_parser("up", help="start the cluster; a healthy one is left alone")
    actions.add_parser("down", help="stop the cluster and leave nothing behind")
    actions.add_parser("status", help="print up, broken or down")
    actions.add_parser("list", help="print the names of clusters and how they are")
    actions.add_parser("kubeconfig", help="print the path of the kubeconfig")
    for program in ("kubectl", "helm"):
        passing = actions.add_parser(program, help=f"run {program} on the cluster", add_help=False)
        passing.add_argument("arguments", nargs=argparse.REMAINDER)
    image = actions.add_parser("image", help="build an image; print the path of its archive")
    image.add_argument("image", choices=IMAGES)
    load = actions.add_parser("load-image", help="load archives, or images by their names here, into the cluster")
    load.add_argument("images", nargs="+", metavar="ARCHIVE|" + "|".join(IMAGES))
    logs = actions.add_parser("logs", help="copy logs, pods and events into a folder")
    logs.add_argument("folder", type=Path)
    return parser


def _actions(options: argparse.Namespace) -> dict[str, Callable[[], None]]:
    chosen = cluster(options.name)
    return {
        "build": _build,
        "packages": _packages,
        "up": chosen.up,
        "down": chosen.down,
        "status": lambda: print(chosen.state()),
        "list": _list,
        "kubeconfig": lambda: print(chosen.kubeconfig),
        "kubectl": lambda: _run(chosen.kubectl, options.arguments),
        "helm": lambda: _run(chosen.helm, options.arguments),
        "image": lambda: _image(options.image),
        "load-image": lambda: _load(chosen, options.images),
        "logs": lambda: chosen.collect_logs(options.folder),
    }


def _build() -> None:
    binaries()
    for build in IMAGES.values():
        build()


def _packages() -> None:
    if Path("/etc/debian_version").exists():
        require(TESTS)


def _image(name: str) -> None:
    archive = IMAGES[name]()
    say(f"{name}: {archive.stat().st_size / 1e6:.0f} MB as an archive")
    print(archive)


def _list() -> None:
    for name in known_names():
        print(name, cluster(name).state())


def _run(command: tuple[str, ...], arguments: list[str]) -> None:
    os.execv(command[0], [*command, *arguments])  # noqa: S606  # it takes this process's place


def _load(chosen: Cluster, images: list[str]) -> None:
    for image in images:
        chosen.load_image(IMAGES[image]() if image in IMAGES else Path(image))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
