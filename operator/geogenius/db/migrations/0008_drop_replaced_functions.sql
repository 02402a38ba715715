-- Functions and views whose names, arguments or columns are others now. What programs of 0.1 call keeps its signature.
drop function if exists register_import(jsonb, jsonb);
drop function if exists register_release(jsonb, uuid);
drop function if exists release_failures(uuid);
drop function if exists move_pointer(uuid);
drop function if exists merge_staging(uuid, uuid, bigint);
drop function if exists find_repeated(text);
drop function if exists fill_release_tables(text, uuid, text);
drop function if exists areas_for_point(double precision, double precision, text[]);
drop function if exists areas_of_release_for_point(text, uuid, geometry);
drop view if exists published_areas;
drop view if exists published_boundaries;
