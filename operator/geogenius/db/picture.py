"""The whole schema in one file, for readers: `python -m geogenius.db.picture > operator/geogenius/db/schema.sql`."""

import sys

from geogenius.db.migrate import functions, migrations


def picture() -> str:
    """Migrations, then functions, in the order in which `migrate` runs them; the same text every time."""
    files = [*migrations(), *functions()]
    parts = [f"-- ---- {file.name} {'-' * (100 - len(file.name))}\n\n{file.text}" for file in files]
    return "-- Generated from migrations/ and functions/ by geogenius.db.picture. Do not edit.\n\n" + "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(picture())
