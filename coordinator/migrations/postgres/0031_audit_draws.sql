-- Who was drawn to make an audit, and until when it waits for that contributor.
ALTER TABLE audits ADD COLUMN drawn_for BIGINT REFERENCES users (id);
ALTER TABLE audits ADD COLUMN drawn_until BIGINT;
CREATE INDEX audits_drawn ON audits (drawn_for) WHERE state = 'open' AND drawn_for IS NOT NULL;
CREATE INDEX audit_opinions_by_time ON audit_opinions (given_at);
-- The block of addresses (24 bits of IPv4, 48 of IPv6) from which somebody registered and works, hashed. None
-- of whom the operator made, nor of this machine or a private network.
ALTER TABLE users ADD COLUMN block BIGINT;
ALTER TABLE workers ADD COLUMN block BIGINT;
-- Of the audits passed, those that a trusted auditor, or somebody vouched for, has vouched for.
ALTER TABLE track_records ADD COLUMN vouched BIGINT NOT NULL DEFAULT 0;
UPDATE track_records SET vouched = passed
    WHERE EXISTS (SELECT 1 FROM audit_opinions WHERE trusted <> 0);
