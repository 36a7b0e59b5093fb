-- no-transaction
-- Jobs that ended badly and of which nobody has told their source yet: few at any time, and found without the others.
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_unhandled_idx ON okt_tasks.jobs (finished_at, id)
    WHERE state IN ('cancelled', 'discarded') AND source_id IS NOT NULL AND NOT end_handled;
