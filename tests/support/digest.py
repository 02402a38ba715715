"""Proof that nothing was written: a fingerprint of every table of the catalog."""

import psycopg

from geogenius.db.sql import literal

TABLES = """
select c.oid::regclass::text as name from pg_class c
where c.relnamespace = 'geogenius'::regnamespace and c.relkind in ('r', 'p') order by 1
"""
CONTENT = "select coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as digest from {} t"


def digest(sql: psycopg.Connection[psycopg.rows.DictRow]) -> dict[str, str]:
    """Every table of the schema, those of releases and runs too, with a fingerprint of its rows."""
    names = [row["name"] for row in sql.execute(TABLES)]
    statement = psycopg.sql.SQL(literal(CONTENT))
    return {name: sql.execute(statement.format(psycopg.sql.Identifier(name))).fetchall()[0]["digest"] for name in names}
