-- Entries of the audit, written in the transaction of what they record. They stay until the system database has them, which
-- knows them by their ids: none is lost, and none is there twice.
CREATE TABLE okt_repository.audit_outbox (
    repository_id uuid        NOT NULL,
    -- The same as in okt_system.audit.
    id            uuid        NOT NULL,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_id      uuid,
    actor_kind    text        NOT NULL,
    credential_id uuid,
    action        text        NOT NULL,
    object        text        NOT NULL,
    address       text,
    user_agent    text,
    request_id    text        NOT NULL,
    PRIMARY KEY (repository_id, id)
);

-- As with the outbox of jobs, one transaction reads for all tenants: the one that carries them, which says so.
ALTER TABLE okt_repository.audit_outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.audit_outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.audit_outbox
    USING (repository_id = okt_repository.current_repository() OR okt_repository.is_relay());
