-- name: configure_transaction (one)
-- What every transaction begins with, gone with its end. The server notices a dead client within a minute, also in the
-- middle of a long statement, so that a killed importer holds no lock for long.
select
    set_config('search_path', %(search_path)s, true),
    set_config('timezone', 'UTC', true),
    set_config('client_min_messages', 'warning', true),
    set_config('client_connection_check_interval', '10s', true),
    set_config('tcp_keepalives_idle', '30', true),
    set_config('tcp_keepalives_interval', '10', true),
    set_config('tcp_keepalives_count', '3', true),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true),
    set_config('statement_timeout', %(statement_timeout)s, true)

-- name: ping (one)
-- One round trip.
select 1 as answer
