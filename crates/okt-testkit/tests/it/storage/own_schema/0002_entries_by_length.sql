-- no-transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS entries_by_length ON own.entries (length(name));
