-- Tokens of the operator's auditors, who are looked for with jobs and audits: few among those of all contributors.
CREATE INDEX tokens_of_auditors ON tokens (user_id) WHERE revoked_at IS NULL AND scopes LIKE '%audit%';
