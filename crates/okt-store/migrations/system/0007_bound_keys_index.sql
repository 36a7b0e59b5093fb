-- no-transaction
-- The keys that end with a repository.
CREATE INDEX CONCURRENTLY IF NOT EXISTS api_keys_repository_id_idx ON okt_system.api_keys (repository_id)
    WHERE repository_id IS NOT NULL AND revoked_at IS NULL;
