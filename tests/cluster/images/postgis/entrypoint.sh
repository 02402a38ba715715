#!/bin/sh
# Becomes PostgreSQL on all addresses; the first start makes the data folder. Arguments go to PostgreSQL.
# Mount a writable volume at /var/lib/postgresql and one at /tmp when the root is read-only.
set -eu
: "${POSTGRES_PASSWORD:?}" "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}" "${PGDATA:=/var/lib/postgresql/data}"

if [ ! -d "$PGDATA" ]; then
    # Made elsewhere and renamed, so that a start that is cut short leaves nothing to trip over.
    fresh="$PGDATA.fresh" password=$(mktemp)
    rm -rf "$fresh"
    printf '%s\n' "$POSTGRES_PASSWORD" > "$password"
    initdb --pgdata="$fresh" --username="$POSTGRES_USER" --pwfile="$password" --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-instructions
    rm "$password"
    echo "host all all all scram-sha-256" >> "$fresh/pg_hba.conf"
    if [ "$POSTGRES_DB" != postgres ]; then
        echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$fresh" postgres
    fi
    echo "CREATE EXTENSION postgis" | postgres --single -D "$fresh" "$POSTGRES_DB"
    mv "$fresh" "$PGDATA"
fi

exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp -c jit=off "$@"
