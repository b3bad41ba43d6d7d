-- The roles of one context in Postgres, each with the rights that it needs and no more:
--
--   <context>_owner      owns the schema and migrates it: processor migrate
--   <context>_processor  executes commands:               processor serve
--   <context>_reader     looks, and changes nothing:      processor show, processor audit, people in psql
--
-- Run it as a superuser, or as a role that may create roles and has every right on the database: before the first
-- migration, for roles and schema, and after each one, for the rights on what it has made. To run it again is harmless.
--
--   psql -X -v context=catalog -f deploy/postgres-roles.sql postgres://admin@db/writ
--
-- It sets no passwords: \password catalog_processor asks for one and sends its hash only. The schema's name is the
-- context's, unless -v schema=… says otherwise, as database-schema does for the processor.

\set ON_ERROR_STOP on
\if :{?context}
\else
    \warn 'which context? psql -v context=catalog …'
    do $$ begin raise exception 'context is not set'; end $$;
\endif
\if :{?schema}
\else
    \set schema :context
\endif
\set owner :context '_owner'
\set processor :context '_processor'
\set reader :context '_reader'

begin;

select format('create role %I login nosuperuser nocreatedb nocreaterole noreplication nobypassrls', name)
from unnest(array[:'owner', :'processor', :'reader']) as name
where not exists (select from pg_roles where rolname = name)
\gexec

select format('grant connect on database %I to %I, %I, %I', current_database(), :'owner', :'processor', :'reader')
\gexec

-- Whoever makes a schema for another role has to be a member of it, unless a superuser.
select format('create schema %I authorization %I', :'schema', :'owner')
where not exists (select from pg_namespace where nspname = :'schema')
\gexec

grant usage on schema :"schema" to :"processor", :"reader";

-- What the processor checks of its sessions at its start. Its connections ask for these settings themselves; a proxy
-- between it and the server may lose them.
select format('alter role %I in database %I set %s', :'processor', current_database(), setting)
from unnest(array['idle_in_transaction_session_timeout = ''5s''', 'lock_timeout = ''1s''', 'synchronous_commit = ''on''']) as setting
\gexec
select format('alter role %I in database %I set %s', :'reader', current_database(), setting)
from unnest(array['idle_in_transaction_session_timeout = ''5s''', 'lock_timeout = ''1s''', 'synchronous_commit = ''on''']) as setting
\gexec

-- Rights on the tables, once they are there. Rows of the journal are added and never deleted; the one column that
-- changes is the request key of a refusal that makes way for a new attempt.
select format('grant %s on %I.%I to %I', right_, :'schema', relation, :'processor')
from (values
    ('goose_db_version', 'select'),
    ('journal', 'select, insert, update (request)'),
    ('reservation', 'select, insert, delete'),
    ('snapshot', 'select, insert, update'),
    ('progress', 'select, insert, update')
) as rights (relation, right_)
where to_regclass(format('%I.%I', :'schema', relation)) is not null
\gexec

select format('grant select on %I.%I to %I', :'schema', relation, :'reader')
from unnest(array['goose_db_version', 'journal', 'reservation', 'snapshot', 'progress', 'journal_plain']) as relation
where to_regclass(format('%I.%I', :'schema', relation)) is not null
\gexec

commit;
