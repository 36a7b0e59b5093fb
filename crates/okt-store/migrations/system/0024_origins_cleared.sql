-- Since when nothing of a revoked key is left to be looked for; not within the first day, in which imports may still end.
ALTER TABLE okt_system.revoked_origins ADD COLUMN cleared_at timestamptz;
