-- The tenant of the current transaction; null, and so no row at all, when none was set.
CREATE FUNCTION okt_repository.current_repository() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('okt.repository', true), '')::uuid;

-- Counts shown to people, kept in the transaction that changes what they count.
CREATE TABLE okt_repository.counters (
    repository_id uuid   NOT NULL,
    name          text   NOT NULL,
    value         bigint NOT NULL,
    PRIMARY KEY (repository_id, name)
);

-- Every table of this schema ends with these three statements; a test looks for them.
ALTER TABLE okt_repository.counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.counters FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.counters
    USING (repository_id = okt_repository.current_repository());
