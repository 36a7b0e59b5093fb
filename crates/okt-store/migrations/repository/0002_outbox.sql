-- Whether the current transaction carries notes to the queue, for all tenants.
CREATE FUNCTION okt_repository.is_relay() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(current_setting('okt.relay', true) = 'on', false);

-- Notes of jobs, written in the transaction that wants them. A note is the right to have the job's effect happen:
-- it is taken away by the transaction of the effect, so there is no second one.
CREATE TABLE okt_repository.outbox (
    repository_id    uuid        NOT NULL,
    job_id           uuid        NOT NULL,
    kind             text        NOT NULL,
    payload          jsonb       NOT NULL,
    unique_key       text        CHECK (length(unique_key) <= 500),
    source_id        uuid,
    investigation_id uuid,
    report_id        uuid,
    priority         smallint    NOT NULL,
    scheduled_at     timestamptz NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Since when somebody has been carrying it to the queue.
    carried_at       timestamptz,
    -- When the queue had it.
    arrived_at       timestamptz,
    PRIMARY KEY (repository_id, job_id)
);

CREATE INDEX outbox_unsent_idx ON okt_repository.outbox (repository_id, job_id) WHERE arrived_at IS NULL;

-- The one table that somebody reads for all tenants: the relay, which says so.
ALTER TABLE okt_repository.outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.outbox
    USING (repository_id = okt_repository.current_repository() OR okt_repository.is_relay());
