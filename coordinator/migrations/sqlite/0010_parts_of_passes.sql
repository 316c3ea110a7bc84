-- Positions of passed audits that do not make a whole pass yet.
ALTER TABLE track_records ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
