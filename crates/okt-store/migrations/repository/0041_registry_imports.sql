-- What was taken from a registry: which package of which one, and what its producer says it has cost. A source has one at most.
CREATE TABLE okt_repository.registry_imports (
    repository_id   uuid        NOT NULL,
    source_no       bigint      NOT NULL,
    -- As the configuration calls it.
    registry        text        NOT NULL,
    -- What the registry calls the source.
    registry_source text        NOT NULL,
    model           text        NOT NULL,
    package_sha256  bytea       NOT NULL CHECK (length(package_sha256) = 32),
    -- Who vouches for the package; null for nobody.
    key_id          text,
    facts           integer     NOT NULL,
    -- Null where its producer does not say.
    calls           integer     CHECK (calls >= 0),
    tokens_in       bigint      CHECK (tokens_in >= 0),
    tokens_out      bigint      CHECK (tokens_out >= 0),
    micro_usd       bigint      CHECK (micro_usd >= 0),
    imported_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, source_no)
);
CREATE INDEX registry_imports_key_idx ON okt_repository.registry_imports (repository_id, key_id) WHERE key_id IS NOT NULL;

ALTER TABLE okt_repository.registry_imports ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.registry_imports FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.registry_imports
    USING (repository_id = okt_repository.current_repository());
