COMMENT ON SCHEMA okt_tasks IS 'The job queue. May live in a database of its own: no transaction spans it and another schema.';
