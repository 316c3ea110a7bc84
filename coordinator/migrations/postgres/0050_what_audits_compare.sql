-- What audits compare beside policies and values: visits, best moves' values, and which moves would have been
-- played.
ALTER TABLE audit_parts ADD COLUMN visits DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_parts ADD COLUMN best DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_parts ADD COLUMN choice DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN visits DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN best DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_opinions ADD COLUMN choice DOUBLE PRECISION NOT NULL DEFAULT 0;
-- The protocol of the worker that has the lease: by it follows which moves its games must have.
ALTER TABLE jobs ADD COLUMN protocol BIGINT NOT NULL DEFAULT 1;
