-- How much everybody has, so that a limit costs one row and not a count. Kept by triggers: whatever changes what is counted,
-- by whichever way, the number is right in the same transaction.
CREATE TABLE okt_system.user_usage (
    user_id      uuid   PRIMARY KEY REFERENCES okt_system.users ON DELETE CASCADE,
    -- Those that the person owns, with those that are just being made.
    repositories bigint NOT NULL DEFAULT 0,
    -- Of files that the person uploaded.
    bytes        bigint NOT NULL DEFAULT 0
);

-- Who uploaded a source, and how much. Sources are in databases of their own, so this row is written before a source and
-- removed after it; what is left between the two is found by the sweep for files. What was uploaded before this table was
-- there is counted for nobody.
CREATE TABLE okt_system.uploads (
    source_id     uuid        PRIMARY KEY,
    repository_id uuid        NOT NULL,
    user_id       uuid        NOT NULL REFERENCES okt_system.users ON DELETE CASCADE,
    bytes         bigint      NOT NULL CHECK (bytes >= 0),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX uploads_repository_idx ON okt_system.uploads (repository_id);
CREATE INDEX uploads_user_id_idx ON okt_system.uploads (user_id);

-- Per statement, and each person once, in the same order by everybody.
CREATE FUNCTION okt_system.count_repositories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO okt_system.user_usage AS u (user_id, repositories)
        SELECT owner_id, count(*) FROM after
         WHERE owner_id IS NOT NULL AND state IN ('creating', 'active')
         GROUP BY 1 ORDER BY 1
        ON CONFLICT (user_id) DO UPDATE SET repositories = u.repositories + excluded.repositories;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE okt_system.user_usage u SET repositories = u.repositories - c.number
          FROM (SELECT owner_id, count(*) AS number FROM before
                 WHERE owner_id IS NOT NULL AND state IN ('creating', 'active')
                 GROUP BY 1) c
         WHERE u.user_id = c.owner_id;
    ELSE
        -- Of most changes nobody's number is another.
        UPDATE okt_system.user_usage u SET repositories = u.repositories - c.number
          FROM (SELECT b.owner_id, count(*) AS number FROM before b JOIN after a USING (id)
                 WHERE b.owner_id IS NOT NULL AND b.state IN ('creating', 'active')
                   AND (a.owner_id IS DISTINCT FROM b.owner_id OR a.state NOT IN ('creating', 'active'))
                 GROUP BY 1) c
         WHERE u.user_id = c.owner_id;
        INSERT INTO okt_system.user_usage AS u (user_id, repositories)
        SELECT a.owner_id, count(*) FROM after a JOIN before b USING (id)
         WHERE a.owner_id IS NOT NULL AND a.state IN ('creating', 'active')
           AND (b.owner_id IS DISTINCT FROM a.owner_id OR b.state NOT IN ('creating', 'active'))
         GROUP BY 1 ORDER BY 1
        ON CONFLICT (user_id) DO UPDATE SET repositories = u.repositories + excluded.repositories;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER repositories_inserted AFTER INSERT ON okt_system.repositories
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_repositories();
CREATE TRIGGER repositories_updated AFTER UPDATE ON okt_system.repositories
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_repositories();
CREATE TRIGGER repositories_deleted AFTER DELETE ON okt_system.repositories
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_repositories();
INSERT INTO okt_system.user_usage (user_id, repositories)
SELECT owner_id, count(*) FROM okt_system.repositories
 WHERE owner_id IS NOT NULL AND state IN ('creating', 'active')
 GROUP BY 1;

CREATE FUNCTION okt_system.count_uploads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE okt_system.user_usage u
           SET bytes = u.bytes - c.bytes
          FROM (SELECT user_id, sum(bytes) AS bytes FROM before GROUP BY 1) c
         WHERE u.user_id = c.user_id;
    ELSE
        INSERT INTO okt_system.user_usage AS u (user_id, bytes)
        SELECT user_id, sum(bytes) FROM after GROUP BY 1 ORDER BY 1
        ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER uploads_inserted AFTER INSERT ON okt_system.uploads
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_uploads();
CREATE TRIGGER uploads_deleted AFTER DELETE ON okt_system.uploads
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION okt_system.count_uploads();
