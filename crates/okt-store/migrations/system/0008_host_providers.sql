-- How often each way of fetching has failed for a host, so that one that never works is left out for a while. Each
-- repository for itself: nobody can have a host left out for others.
CREATE TABLE okt_system.host_providers (
    repository_id uuid        NOT NULL,
    host          text        NOT NULL CHECK (length(host) <= 255),
    provider      text        NOT NULL,
    attempts      bigint      NOT NULL,
    failures      bigint      NOT NULL,
    failed_at     timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, host, provider)
);
CREATE INDEX host_providers_updated_idx ON okt_system.host_providers (updated_at);
