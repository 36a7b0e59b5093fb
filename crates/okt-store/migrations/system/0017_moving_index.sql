-- no-transaction
-- The repositories that are being moved, to find those whose mover died.
CREATE INDEX CONCURRENTLY IF NOT EXISTS repositories_moving_idx ON okt_system.repositories (id)
    WHERE moving_to IS NOT NULL;
