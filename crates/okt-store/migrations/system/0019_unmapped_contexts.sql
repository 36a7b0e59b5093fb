-- What becomes of a concept whose context the repository does not have: filed under the catch-all, the context is added, or
-- it is skipped. The CHECK holds for the default, and the table has one row for each repository.
ALTER TABLE okt_system.repository_settings
    ADD COLUMN unmapped_contexts text NOT NULL DEFAULT 'catch_all'
        CONSTRAINT repository_settings_unmapped_contexts_check CHECK (unmapped_contexts IN ('catch_all', 'add', 'skip'));
