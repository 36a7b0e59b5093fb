-- no-transaction
-- The members of a repository in the order of their ids. Without holding up whoever gives out roles meanwhile.
CREATE INDEX CONCURRENTLY IF NOT EXISTS role_assignments_member_idx ON okt_system.role_assignments (domain, user_id);
