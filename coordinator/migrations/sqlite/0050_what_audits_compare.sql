-- What audits compare beside policies and values: visits, best moves' values, and which moves would have been
-- played.
ALTER TABLE audit_parts ADD COLUMN visits REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_parts ADD COLUMN best REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_parts ADD COLUMN choice REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN visits REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN best REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN choice REAL NOT NULL DEFAULT 0;
-- The protocol of the worker that has the lease: by it follows which moves its games must have.
ALTER TABLE jobs ADD COLUMN protocol INTEGER NOT NULL DEFAULT 1;
