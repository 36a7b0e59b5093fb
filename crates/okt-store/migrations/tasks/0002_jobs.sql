-- Every job that waits, runs, or ended a while ago. Times are the database's own.
CREATE TABLE okt_tasks.jobs (
    id               uuid        PRIMARY KEY,
    -- Null for the installation's own.
    repository_id    uuid,
    -- The named database with the note that lets the effect happen; see okt_repository.outbox.
    database         text,
    kind             text        NOT NULL,
    state            text        NOT NULL CHECK (state IN
        ('scheduled', 'available', 'running', 'retryable', 'completed', 'cancelled', 'discarded')),
    -- Smaller is sooner.
    priority         smallint    NOT NULL,
    -- Its place among the waiting of its kind, given so that repositories take turns; see okt_tasks.lanes.
    turn             bigint      NOT NULL,
    payload          jsonb       NOT NULL,
    unique_key       text        CHECK (length(unique_key) <= 500),
    source_id        uuid,
    investigation_id uuid,
    report_id        uuid,
    attempt          integer     NOT NULL DEFAULT 0,
    max_attempts     integer     NOT NULL,
    -- How often its process died or it panicked; apart from attempts, because it is nobody's decision.
    crashes          integer     NOT NULL DEFAULT 0,
    -- Grows with every claim and never shrinks: who holds an old number has lost the job.
    claims           integer     NOT NULL DEFAULT 0,
    -- Who runs it; null when nobody does.
    owner            bigint,
    cancel_asked_at  timestamptz,
    waiting_for      text,
    progress         jsonb,
    cost             jsonb,
    failures         jsonb,
    output           jsonb,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    scheduled_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz,
    heartbeat_at     timestamptz,
    finished_at      timestamptz,
    -- The transaction that ended it: what a reader who saw every older transaction has not seen yet.
    finished_in      bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX jobs_waiting_idx ON okt_tasks.jobs (kind, priority, turn) WHERE state = 'available' AND crashes < 2;
-- One at a time in a process, so that the next crash says which one it was.
CREATE INDEX jobs_suspect_idx ON okt_tasks.jobs (kind, priority, turn) WHERE state = 'available' AND crashes >= 2;
CREATE INDEX jobs_due_idx ON okt_tasks.jobs (scheduled_at) WHERE state IN ('scheduled', 'retryable');
CREATE INDEX jobs_running_idx ON okt_tasks.jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_repository_idx ON okt_tasks.jobs (repository_id, id);
CREATE INDEX jobs_failed_idx ON okt_tasks.jobs (repository_id, id) WHERE state IN ('cancelled', 'discarded');
CREATE INDEX jobs_finished_in_idx ON okt_tasks.jobs (repository_id, finished_in) WHERE finished_in IS NOT NULL;
CREATE INDEX jobs_finished_at_idx ON okt_tasks.jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_source_idx ON okt_tasks.jobs (repository_id, source_id, id) WHERE source_id IS NOT NULL;
CREATE INDEX jobs_investigation_idx ON okt_tasks.jobs (repository_id, investigation_id, id)
    WHERE investigation_id IS NOT NULL;
CREATE INDEX jobs_report_idx ON okt_tasks.jobs (repository_id, report_id, id) WHERE report_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique_idx
    ON okt_tasks.jobs (kind, coalesce(repository_id, '00000000-0000-0000-0000-000000000000'), unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable');

-- The last turn that each repository was given in the queue of a kind. A newcomer's first job gets the turn that is
-- being served right now, and every further one the next: fifty thousand jobs of one tenant lie in fifty thousand turns.
CREATE TABLE okt_tasks.lanes (
    kind          text     NOT NULL,
    priority      smallint NOT NULL,
    -- The nil id for the installation's own.
    repository_id uuid     NOT NULL,
    turn          bigint   NOT NULL,
    -- How many turns were given out last.
    added         bigint   NOT NULL,
    PRIMARY KEY (kind, priority, repository_id)
);
CREATE INDEX lanes_turn_idx ON okt_tasks.lanes (kind, priority, turn);

-- The processes that run jobs. Each holds an advisory lock on its id for as long as its connection lives.
CREATE TABLE okt_tasks.workers (
    id           bigint      PRIMARY KEY,
    name         text        NOT NULL,
    kinds        text[]      NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Since when its lock has been found free.
    silent_since timestamptz
);

-- What went wrong, oldest first; the last ten times are kept.
CREATE FUNCTION okt_tasks.with_failure(failures jsonb, attempt integer, message text) RETURNS jsonb
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN jsonb_array_length(coalesce(failures, '[]')) >= 10 THEN failures - 0
                ELSE coalesce(failures, '[]') END
        || jsonb_build_object('at', clock_timestamp(), 'attempt', attempt, 'message', message);
