-- stops-old-processes
-- What a job is about, as a kind and an id instead of a column for each kind. Only sources had any. Changes no row:
-- the default fills in the kind of those that are there. Those without an id have no subject, whatever their kind says.
ALTER TABLE okt_tasks.jobs RENAME COLUMN source_id TO subject_id;
ALTER TABLE okt_tasks.jobs
    ADD COLUMN subject_kind text DEFAULT 'source',
    DROP COLUMN investigation_id,
    DROP COLUMN report_id;
ALTER TABLE okt_tasks.jobs ALTER COLUMN subject_kind DROP DEFAULT;
ALTER INDEX okt_tasks.jobs_source_idx RENAME TO jobs_subject_idx;
