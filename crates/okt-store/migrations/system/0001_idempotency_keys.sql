-- Answers kept for 24 hours, so that a client that never saw the first one can ask again without doing the thing twice.
CREATE TABLE okt_system.idempotency_keys (
    principal    text        NOT NULL,
    key          text        NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint  bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    -- Whoever holds the claim may finish the row.
    claim        uuid        NOT NULL,
    claimed_at   timestamptz NOT NULL,
    -- The answer; all null while the first request runs. The body is encrypted: it may hold what is shown only once.
    status       smallint,
    content_type text,
    location     text,
    sealed_body  bytea,
    PRIMARY KEY (principal, key)
);

CREATE INDEX idempotency_keys_claimed_at_idx ON okt_system.idempotency_keys (claimed_at);
