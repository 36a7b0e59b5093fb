-- What people say of facts that may contradict each other. By the hashes of both texts, so that it holds when the facts are read
-- anew and have other numbers; of two facts, what was said last of them or of their duplicates holds.
CREATE TABLE okt_repository.contradiction_states (
    repository_id uuid        NOT NULL,
    content_hash  bytea       NOT NULL CHECK (length(content_hash) = 32),
    other_hash    bytea       NOT NULL CHECK (length(other_hash) = 32),
    state         text        NOT NULL CHECK (state IN ('real', 'scope_differs', 'not_a_contradiction')),
    note          text        CHECK (length(note) BETWEEN 1 AND 1000),
    person        uuid        NOT NULL,
    decided_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, content_hash, other_hash),
    CHECK (content_hash < other_hash)
);
CREATE INDEX contradiction_states_other_idx ON okt_repository.contradiction_states (repository_id, other_hash);

ALTER TABLE okt_repository.contradiction_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.contradiction_states FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.contradiction_states
    USING (repository_id = okt_repository.current_repository());

-- How it was found that they may contradict each other.
ALTER TABLE okt_repository.fact_contradictions ADD COLUMN found_by text NOT NULL DEFAULT 'refused_merge';

-- The rows of before have actions of the shorter list.
ALTER TABLE okt_repository.curation
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT curation_action_check,
    ADD CONSTRAINT curation_action_check CHECK (action IN (
        'merge', 'split', 'rename', 'move', 'add_alias', 'remove_alias', 'reject_link', 'reject_fact', 'restore_fact',
        'mark_contradiction')) NOT VALID;

-- Candidate contradictions of two facts, which are canonical ones, or of their duplicates.
CREATE FUNCTION okt_repository.contradictions_between(tenant uuid, one bigint, other bigint)
RETURNS TABLE (fact_no bigint, other_no bigint, difference text, cosine real, found_by text, found_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT c.fact_no, c.other_no, c.difference, c.cosine, c.found_by, c.found_at
      FROM (SELECT one
             UNION ALL
            SELECT d.no FROM okt_repository.facts d WHERE d.repository_id = tenant AND d.merged_into = one) AS m (no)
     CROSS JOIN LATERAL (SELECT n.*, n.other_no AS side FROM okt_repository.fact_contradictions n
                          WHERE n.repository_id = tenant AND n.fact_no = m.no
                          UNION ALL
                         SELECT n.*, n.fact_no FROM okt_repository.fact_contradictions n
                          WHERE n.repository_id = tenant AND n.other_no = m.no) AS c
      JOIN okt_repository.facts x ON x.repository_id = tenant AND x.no = c.side
     WHERE coalesce(x.merged_into, x.no) = other AND c.difference <> 'judged'
$$;

-- What people said of two facts, which are canonical ones, or of their duplicates.
CREATE FUNCTION okt_repository.contradiction_states_between(tenant uuid, one bigint, other bigint)
RETURNS TABLE (content_hash bytea, other_hash bytea, state text, note text, person uuid, decided_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT s.content_hash, s.other_hash, s.state, s.note, s.person, s.decided_at
      FROM (SELECT f.content_hash FROM okt_repository.facts f WHERE f.repository_id = tenant AND f.no = one
             UNION ALL
            SELECT d.content_hash FROM okt_repository.facts d
             WHERE d.repository_id = tenant AND d.merged_into = one) AS m (hash)
     CROSS JOIN LATERAL (SELECT n.*, n.other_hash AS side FROM okt_repository.contradiction_states n
                          WHERE n.repository_id = tenant AND n.content_hash = m.hash
                          UNION ALL
                         SELECT n.*, n.content_hash FROM okt_repository.contradiction_states n
                          WHERE n.repository_id = tenant AND n.other_hash = m.hash) AS s
      JOIN okt_repository.facts x ON x.repository_id = tenant AND x.content_hash = s.side
     WHERE coalesce(x.merged_into, x.no) = other
$$;

-- The last of these; none while it is open.
CREATE FUNCTION okt_repository.contradiction_state(tenant uuid, one bigint, other bigint) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT s.state FROM okt_repository.contradiction_states_between(tenant, one, other) s
     ORDER BY s.decided_at DESC LIMIT 1
$$;
