-- Money is counted in millionths of a US dollar: a sum of a million calls is exact, and so is a limit.
--
-- The columns are converted where they are, in one transaction, since these tables are small: a row for each call, or for
-- each repository and day. They get other names with it, so that a process of the release before, which would write dollars
-- here, fails instead.
ALTER TABLE okt_system.ai_calls ALTER COLUMN usd TYPE bigint USING ceil(usd::numeric * 1000000)::bigint;
ALTER TABLE okt_system.ai_calls RENAME COLUMN usd TO micro_usd;

ALTER TABLE okt_system.ai_days ALTER COLUMN usd TYPE bigint USING ceil(usd::numeric * 1000000)::bigint;
ALTER TABLE okt_system.ai_days RENAME COLUMN usd TO micro_usd;

ALTER TABLE okt_system.ai_holds ALTER COLUMN usd TYPE bigint USING ceil(usd::numeric * 1000000)::bigint;
ALTER TABLE okt_system.ai_holds RENAME COLUMN usd TO micro_usd;

ALTER TABLE okt_system.repository_settings
    DROP CONSTRAINT repository_settings_monthly_usd_check,
    ALTER COLUMN monthly_usd TYPE bigint USING round(monthly_usd::numeric * 1000000)::bigint;
ALTER TABLE okt_system.repository_settings RENAME COLUMN monthly_usd TO monthly_micro_usd;
ALTER TABLE okt_system.repository_settings ADD CHECK (monthly_micro_usd >= 0);

-- What all repositories together have spent, by month of UTC. Its row is also what whoever sets money aside under the limit of
-- the installation waits for.
CREATE TABLE okt_system.ai_months (
    month     date   PRIMARY KEY,
    micro_usd bigint NOT NULL
);
INSERT INTO okt_system.ai_months (month, micro_usd)
SELECT date_trunc('month', day)::date, sum(micro_usd) FROM okt_system.ai_days GROUP BY 1;
