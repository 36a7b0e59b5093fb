-- Repositories that nobody may write to in this database any more, or for now. It is the only thing that all who write
-- agree on: requests and jobs may have found out long ago where a repository lives.
CREATE TABLE okt_repository.closed (
    repository_id uuid        PRIMARY KEY,
    why           text        NOT NULL CHECK (why IN ('moving', 'moved', 'deleted')),
    -- The named database where it lives now.
    moved_to      text        CHECK ((why = 'moved') = (moved_to IS NOT NULL)),
    since         timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The relay leaves the notes of a closed repository where they are.
ALTER TABLE okt_repository.closed ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.closed FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.closed
    USING (repository_id = okt_repository.current_repository() OR okt_repository.is_relay());

-- Whoever writes holds the lock of the repository's door, together with all others who write. Whoever closes the door
-- holds it alone, so nobody is inside when it closes. In two numbers, apart from the locks that have one.
CREATE FUNCTION okt_repository.enter() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    door okt_repository.closed;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1869771876, hashtext(okt_repository.current_repository()::text));
    SELECT * INTO door FROM okt_repository.closed WHERE repository_id = okt_repository.current_repository();
    IF FOUND THEN
        RAISE EXCEPTION 'the repository is closed here: %', door.why
            USING ERRCODE = 'OKT01', DETAIL = door.why, HINT = coalesce(door.moved_to, '');
    END IF;
END $$;

CREATE FUNCTION okt_repository.shut(why text, moved_to text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1869771876, hashtext(okt_repository.current_repository()::text));
    INSERT INTO okt_repository.closed AS c (repository_id, why, moved_to)
    VALUES (okt_repository.current_repository(), shut.why, shut.moved_to)
    ON CONFLICT (repository_id) DO UPDATE SET why = excluded.why, moved_to = excluded.moved_to, since = excluded.since;
END $$;

-- The counters of several repositories, one tenant after the other, so that the policy needs no exception.
CREATE FUNCTION okt_repository.counters_of(repositories uuid[])
    RETURNS TABLE (repository_id uuid, name text, value bigint) LANGUAGE plpgsql AS $$
DECLARE
    one uuid;
BEGIN
    FOREACH one IN ARRAY repositories LOOP
        PERFORM set_config('okt.repository', one::text, true);
        RETURN QUERY SELECT c.repository_id, c.name, c.value FROM okt_repository.counters c WHERE c.repository_id = one;
    END LOOP;
    PERFORM set_config('okt.repository', '', true);
END $$;
