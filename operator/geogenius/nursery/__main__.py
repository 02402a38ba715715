"""Starts a nursery for the TaskSupervisor that has left the other end of socket FD."""

import gc
import json
import socket
import sys

from geogenius.importer.recipe import Recipe
from geogenius.nursery.program import Nursery
from geogenius.telemetry.logs import configure_logging


def main() -> None:
    """Read the recipe, then serve. A host that is gone before it gave one gets nothing."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    first = b""
    while not first.endswith(b"\n"):
        piece = connection.recv(1)  # a byte at a time: what follows the line belongs to the nursery
        if not piece:
            return
        first += piece
    said = json.loads(first)
    recipe = Recipe.from_json(said["recipe"])
    configure_logging(recipe.log_level, recipe.log_format)
    gc.freeze()  # what is loaded now stays for ever: a collection in a child would only copy its pages
    Nursery(connection, recipe, float(said["grace"])).run()


if __name__ == "__main__":
    main()
