-- As in okt_system.audit.
ALTER TABLE okt_repository.audit_outbox ADD COLUMN via text;
