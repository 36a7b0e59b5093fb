-- Through what it was done, where that is not the API: `mcp` for the tools of agents.
ALTER TABLE okt_system.audit ADD COLUMN via text;
