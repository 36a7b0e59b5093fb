ALTER TABLE okt_tasks.jobs
    -- The job whose effect asked for this one.
    ADD COLUMN caused_by uuid,
    -- What it worked on has been told that it ended badly.
    ADD COLUMN end_handled boolean NOT NULL DEFAULT false;
