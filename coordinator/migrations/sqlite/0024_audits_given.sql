-- Audits that somebody has been given: few, among thousands that wait. Every request for an audit
-- counts its contributor's, and every chunk of an audit looks for its own.
CREATE INDEX audits_given ON audits (job_id) WHERE state = 'open' AND job_id IS NOT NULL;
