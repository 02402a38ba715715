-- name: configure_session (one)
-- What every connection sets. The server notices a dead client within a minute, also in the middle of a long
-- statement, so that a killed importer holds no lock for long.
select
    set_config('search_path', %(search_path)s, false),
    set_config('timezone', 'UTC', false),
    set_config('client_min_messages', 'warning', false),
    set_config('client_connection_check_interval', '10s', false),
    set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '3', false),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
    set_config('statement_timeout', %(statement_timeout)s, false)

-- name: limit_transaction (one)
-- The statement timeout of one transaction, in milliseconds as text.
select set_config('statement_timeout', %(statement_timeout)s, true)

-- name: ping (one)
-- One round trip.
select 1 as answer
