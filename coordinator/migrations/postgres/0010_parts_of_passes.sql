-- Positions of passed audits that do not make a whole pass yet.
ALTER TABLE track_records ADD COLUMN part BIGINT NOT NULL DEFAULT 0;
