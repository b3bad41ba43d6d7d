-- +goose Up

-- Columns stand in the order that needs no padding: 8 bytes, 4, 1, 16 (which need no alignment), then text.
create table journal (
    version        bigint,
    decided_at     timestamptz not null,
    "offset"       bigint,
    partition      integer,
    outcome        "char"      not null,
    stream         uuid        not null,
    request        uuid        not null,
    fingerprint    uuid        not null,
    topic_id       uuid,
    type           text        not null,
    tenant         text        not null,
    aggregate_type text        not null,
    aggregate_id   text        not null,
    owner          text,
    space          text,
    request_id     text        not null,
    caller         text        not null,
    events         text,
    keys_taken     text,
    keys_released  text,
    answer         text,
    meta           text,
    constraint journal_outcome check (outcome in ('c', 'n', 'r', 'f')),
    constraint journal_committed check ((outcome = 'c') = (version is not null) and (version is null) = (events is null) and version > 0),
    constraint journal_position check ((topic_id is null) = (partition is null) and (topic_id is null) = ("offset" is null))
);
create unique index journal_request on journal (request);
create unique index journal_stream_version on journal (stream, version nulls first);

comment on table journal is 'One row per decided command: what was asked, by whom, what became of it, and its events. Rows are never deleted, and the only column that ever changes is the request key of a refusal that makes way for a new attempt. Read it through journal_plain.';
comment on column journal.version is 'The aggregate''s version with this commit, from 1; null unless committed.';
comment on column journal.decided_at is 'The processor''s clock at the decision.';
comment on column journal."offset" is 'With topic_id and partition: the record the command came in; null for one executed in process.';
comment on column journal.outcome is 'c committed, n nothing to do, r rejected, f failed.';
comment on column journal.stream is 'Hash of tenant, aggregate_type and aggregate_id.';
comment on column journal.request is 'Hash of tenant, aggregate_type and request_id; of a refusal that was replaced: hash of that and the record''s position.';
comment on column journal.fingerprint is 'Hash of what was asked, as it was sent.';
comment on column journal.events is 'JSON: the events of the commit, their data as the application wrote it.';
comment on column journal.keys_taken is 'JSON: the unique keys that the aggregate holds since this command.';
comment on column journal.keys_released is 'JSON: the unique keys that it no longer holds since this command.';
comment on column journal.answer is 'JSON: the error of a refusal or failure, or the result.';
comment on column journal.meta is 'JSON: correlation, causation, trace, reply address and stage.';
comment on index journal_request is 'A request has one outcome at a time; two attempts cannot both be recorded.';
comment on index journal_stream_version is 'A version of an aggregate exists once. Refusals (version null) are in it too, so that an aggregate''s whole history is found by it.';

create table reservation (
    expires_at    timestamptz,
    taken_at      timestamptz not null default now(),
    id            uuid        not null constraint reservation_pkey primary key,
    holder        uuid,
    token         uuid,
    system        boolean     not null,
    tenant        text        not null,
    namespace     text        not null,
    name          text        not null,
    holder_tenant text,
    holder_type   text,
    holder_id     text,
    application   text,
    constraint reservation_holder check ((holder is null) = (application is not null)),
    constraint reservation_hold check ((expires_at is null) or (token is not null))
);
comment on table reservation is 'One row per unique key that is held, by an aggregate or by an application.';
comment on column reservation.id is 'Hash of system, tenant, namespace and name.';
comment on column reservation.holder is 'The stream of the aggregate that holds the key; its address is in holder_tenant, holder_type and holder_id.';
comment on column reservation.token is 'Of a hold: only who knows it gives the hold up.';
comment on column reservation.expires_at is 'Of a hold: by the clock of this server, when it ends by itself.';
comment on column reservation.system is 'The key is unique across the tenants of the context; tenant is then empty.';
comment on index reservation_pkey is 'A key has one holder.';

create table snapshot (
    version        bigint      not null,
    saved_at       timestamptz not null default now(),
    revision       integer     not null,
    stream         uuid        not null constraint snapshot_pkey primary key,
    tenant         text        not null,
    aggregate_type text        not null,
    aggregate_id   text        not null,
    state          text        not null
) with (fillfactor = 80);
comment on table snapshot is 'The state of an aggregate at a version, as JSON, which spares reading all its commits. It can be deleted at any time.';
comment on column snapshot.revision is 'Of the state type; a processor that reads another revision ignores the snapshot.';
comment on index snapshot_pkey is 'An aggregate has one snapshot, its newest.';

create table progress (
    "offset"  bigint      not null,
    saved_at  timestamptz not null default now(),
    partition integer     not null,
    topic_id  uuid        not null,
    topic     text        not null,
    constraint progress_pkey primary key (topic_id, partition)
) with (fillfactor = 50);
comment on table progress is 'Per partition of a command topic, the next offset to be read: all before it have their outcome here.';
comment on index progress_pkey is 'A topic made again under its name has another ID, and begins anew.';

create view journal_plain as
select
    decided_at,
    case outcome when 'c' then 'committed' when 'n' then 'nothing' when 'r' then 'rejected' when 'f' then 'failed' end as outcome,
    tenant,
    aggregate_type || '/' || aggregate_id as aggregate,
    version,
    type,
    request_id,
    caller,
    owner,
    space,
    events::json as events,
    answer::json -> 'error' ->> 'code' as error_code,
    answer::json -> 'error' ->> 'message' as error_message,
    answer::json -> 'error' -> 'fields' as error_fields,
    answer::json -> 'result' as result,
    (select string_agg((k ->> 'namespace') || '/' || (k ->> 'name'), ', ') from json_array_elements(keys_taken::json) as k) as keys_taken,
    (select string_agg((k ->> 'namespace') || '/' || (k ->> 'name'), ', ') from json_array_elements(keys_released::json) as k) as keys_released,
    rtrim(translate(encode(uuid_send(topic_id), 'base64'), '+/', '-_'), '=') as topic_id,
    partition,
    "offset",
    meta::json as meta,
    stream,
    request
from journal;
comment on view journal_plain is 'The journal for people: words for outcomes, JSON as JSON, topic IDs as Kafka''s tools show them.';

-- Values beyond 2 kB are compressed; lz4 costs a fraction of the default, where the server was built with it.
-- +goose StatementBegin
do $$
begin
    alter table journal
        alter column events set compression lz4,
        alter column answer set compression lz4;
    alter table snapshot
        alter column state set compression lz4;
exception
    when feature_not_supported or syntax_error then null;
end
$$;
-- +goose StatementEnd

-- A processor that is stopped in mid-transaction must not hold others up, and what is answered must be on disk.
-- +goose StatementBegin
do $$
declare
    setting text;
begin
    foreach setting in array array['idle_in_transaction_session_timeout = ''5s''', 'lock_timeout = ''1s''', 'synchronous_commit = ''on''']
    loop
        execute format('alter role %I in database %I set %s', current_user, current_database(), setting);
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose Down
drop view journal_plain;
drop table progress;
drop table snapshot;
drop table reservation;
drop table journal;
