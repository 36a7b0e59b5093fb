WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::smallint[], $3::uuid[], $4::bigint[])
           AS w (kind, priority, repository_id, added)
),
-- The turn before the one that is served now; with nobody waiting, the last that was ever given.
front AS MATERIALIZED (
    SELECT k.kind, k.priority, coalesce(
               (SELECT j.turn - 1 FROM okt_tasks.jobs j
                 WHERE j.kind = k.kind AND j.priority = k.priority AND j.state = 'available' AND j.crashes < 2
                   -- One that comes back has an old turn, and says nothing of where the others are.
                   AND j.claims = 0 AND j.scheduled_at < j.created_at + interval '1 second'
                 ORDER BY j.turn LIMIT 1),
               (SELECT l.turn FROM okt_tasks.lanes l
                 WHERE l.kind = k.kind AND l.priority = k.priority
                 ORDER BY l.turn DESC LIMIT 1),
               0) AS turn
      FROM (SELECT DISTINCT kind, priority FROM wanted) k
)
-- In order, so that two who queue for the same repositories do not wait for each other.
INSERT INTO okt_tasks.lanes AS l (kind, priority, repository_id, turn, added)
SELECT w.kind, w.priority, w.repository_id, f.turn + w.added, w.added
  FROM wanted w JOIN front f ON f.kind = w.kind AND f.priority = w.priority
 ORDER BY w.kind, w.priority, w.repository_id
ON CONFLICT (kind, priority, repository_id) DO UPDATE
   SET turn = greatest(l.turn, excluded.turn - excluded.added) + excluded.added, added = excluded.added
RETURNING l.kind, l.priority, l.repository_id, l.turn - l.added AS "before!"
