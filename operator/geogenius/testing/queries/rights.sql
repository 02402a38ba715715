-- name: name_starter (one)
-- The role that the next statement is about, for this transaction: a `do` block takes no parameters.
select set_config('geogenius.starter', %(role)s, true) as role

-- name: withhold_failing (none)
-- Takes from that role the one right of a writer that no runner may use. Locks: the catalog row of the function.
do $$
begin
    execute format(
        'revoke execute on function fail_import(uuid, uuid, jsonb) from %I', current_setting('geogenius.starter')
    );
end
$$
