-- Sources that were retracted, or that another one supersedes. What rests on them says so when it is read; nothing is copied.
CREATE TABLE okt_repository.source_marks (
    repository_id uuid        NOT NULL,
    source_no     bigint      NOT NULL,
    -- Null where a person has removed a mark: lists and providers don't set it again.
    kind          text        CHECK (kind IN ('retracted', 'superseded')),
    -- The source that supersedes it, while that is there.
    by_no         bigint,
    reason        text        CHECK (length(reason) BETWEEN 1 AND 1000),
    origin        text        NOT NULL CHECK (origin IN ('person', 'provider', 'list')),
    -- Who set or removed it, or sent the list.
    person        uuid,
    marked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, source_no),
    CHECK (kind IS NOT NULL OR origin = 'person'),
    CHECK (by_no IS NULL OR (kind = 'superseded' AND by_no <> source_no))
);
CREATE INDEX source_marks_by_idx ON okt_repository.source_marks (repository_id, by_no) WHERE by_no IS NOT NULL;

ALTER TABLE okt_repository.source_marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.source_marks FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.source_marks
    USING (repository_id = okt_repository.current_repository());
