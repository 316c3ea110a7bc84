-- Whether training waits for the audit: of chunks of contributors on probation, from the moment in which they came in.
ALTER TABLE audits ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
CREATE INDEX audits_awaited ON audits (chunk) WHERE awaited <> 0;
