-- Webhooks: other services that are told what has happened.

CREATE TABLE okt_repository.webhooks (
    repository_id   uuid        NOT NULL,
    id              uuid        NOT NULL,
    url             text        NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
    description     text        NOT NULL DEFAULT '' CHECK (length(description) <= 200),
    events          text[]      NOT NULL CHECK (cardinality(events) BETWEEN 1 AND 50),
    -- Encrypted by the service: a signature can't be made from a hash.
    secret          bytea       NOT NULL,
    -- The one before, which signs as well until then.
    previous_secret bytea,
    previous_until  timestamptz,
    -- Since when every attempt has failed.
    failing_since   timestamptz,
    disabled_at     timestamptz,
    disabled_because text      CHECK (disabled_because IN ('gone', 'failing', 'person')),
    created_by      uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, id),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    CHECK ((disabled_at IS NULL) = (disabled_because IS NULL))
);

-- Events for a webhook. A job makes the attempts; the row says what came of them.
CREATE TABLE okt_repository.webhook_deliveries (
    repository_id   uuid        NOT NULL,
    id              uuid        NOT NULL,
    webhook_id      uuid        NOT NULL,
    event           text        NOT NULL,
    -- The page of the web UI, below that of the repository.
    page            text        NOT NULL,
    -- Ids and numbers.
    data            jsonb       NOT NULL,
    state           text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    attempts        jsonb       NOT NULL DEFAULT '[]',
    next_attempt_at timestamptz DEFAULT clock_timestamp(),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, id),
    CHECK ((state = 'waiting') = (next_attempt_at IS NOT NULL))
);
CREATE INDEX webhook_deliveries_webhook_idx ON okt_repository.webhook_deliveries (repository_id, webhook_id, id);
CREATE INDEX webhook_deliveries_state_idx ON okt_repository.webhook_deliveries (repository_id, webhook_id, state, id);

ALTER TABLE okt_repository.webhooks ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.webhooks FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.webhooks
    USING (repository_id = okt_repository.current_repository());

ALTER TABLE okt_repository.webhook_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.webhook_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.webhook_deliveries
    USING (repository_id = okt_repository.current_repository());
