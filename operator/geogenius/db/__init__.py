"""PostgreSQL: connections, named queries, migrations, and what its errors mean."""

from geogenius.db.pool import Database
from geogenius.db.timeouts import Call

__all__ = ["Call", "Database"]
