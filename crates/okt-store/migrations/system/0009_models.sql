-- The books: every call of a model that was answered, and so paid for. They outlive the repository.
CREATE TABLE okt_system.ai_calls (
    id            uuid        PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    repository_id uuid        NOT NULL,
    source_id     uuid,
    job_id        uuid        NOT NULL,
    operation     text        NOT NULL,
    model         text        NOT NULL,
    -- 'ok', or why the answer was of no use: 'misfit', 'truncated', 'filtered'; 'unread' when nobody was there any more to
    -- read it.
    outcome       text        NOT NULL,
    tokens_in     bigint      NOT NULL,
    tokens_out    bigint      NOT NULL,
    usd           double precision NOT NULL,
    latency_ms    bigint      NOT NULL,
    retries       integer     NOT NULL,
    -- What was sent, so that the next estimate knows how many tokens a character is.
    characters    bigint      NOT NULL
);
CREATE INDEX ai_calls_source_idx ON okt_system.ai_calls (repository_id, source_id, at);
CREATE INDEX ai_calls_at_idx ON okt_system.ai_calls (at);

-- Their sums by day, kept in the transaction that writes them down.
CREATE TABLE okt_system.ai_days (
    repository_id uuid   NOT NULL,
    day           date   NOT NULL,
    model         text   NOT NULL,
    operation     text   NOT NULL,
    calls         bigint NOT NULL,
    tokens_in     bigint NOT NULL,
    tokens_out    bigint NOT NULL,
    usd           double precision NOT NULL,
    latency_ms    bigint NOT NULL,
    retries       bigint NOT NULL,
    characters    bigint NOT NULL,
    PRIMARY KEY (repository_id, day, model, operation)
);
CREATE INDEX ai_days_day_idx ON okt_system.ai_days (day);

-- Money that is set aside for a call that is out, where a repository may not spend more than so much.
CREATE TABLE okt_system.ai_holds (
    call_id       uuid        PRIMARY KEY,
    repository_id uuid        NOT NULL,
    usd           double precision NOT NULL,
    -- A process that died does not give it back.
    expires_at    timestamptz NOT NULL
);
CREATE INDEX ai_holds_repository_idx ON okt_system.ai_holds (repository_id);
CREATE INDEX ai_holds_expires_idx ON okt_system.ai_holds (expires_at);

-- When the next call to a model with a limit is due, for all processes.
CREATE TABLE okt_system.ai_turns (
    model   text        PRIMARY KEY,
    next_at timestamptz NOT NULL
);

-- Instructions for models that somebody wrote. They never change: whoever wants others writes others.
CREATE TABLE okt_system.promptsets (
    -- SHA-256 over all phases.
    hash          bytea       PRIMARY KEY CHECK (length(hash) = 32),
    -- SHA-256 over the phases that are shared through a registry.
    registry_hash bytea       NOT NULL CHECK (length(registry_hash) = 32),
    name          text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- {phase: text}
    phases        jsonb       NOT NULL,
    created_by    uuid        REFERENCES okt_system.users ON DELETE SET NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX promptsets_created_by_idx ON okt_system.promptsets (created_by);

-- Null is the built-in one.
ALTER TABLE okt_system.repository_settings ADD COLUMN promptset_hash bytea REFERENCES okt_system.promptsets;
CREATE INDEX repository_settings_promptset_idx ON okt_system.repository_settings (promptset_hash) WHERE promptset_hash IS NOT NULL;
