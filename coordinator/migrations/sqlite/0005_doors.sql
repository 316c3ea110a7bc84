-- Codes with which people register; the code itself is known by its hash only.
CREATE TABLE invitations (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    note TEXT NOT NULL,
    uses INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);

CREATE TABLE invitation_uses (
    invitation_id INTEGER NOT NULL REFERENCES invitations (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    used_at INTEGER NOT NULL,
    PRIMARY KEY (invitation_id, user_id)
) WITHOUT ROWID;

-- Public keys that sign a run's networks; the one with the highest number is in use.
CREATE TABLE run_keys (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    endorsement TEXT, -- by the key before
    added_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, number),
    UNIQUE (run_id, key)
) WITHOUT ROWID;

CREATE TABLE network_signatures (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    network BLOB NOT NULL, -- its file's hash
    key TEXT NOT NULL,
    signature TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, network, key)
) WITHOUT ROWID;

-- The key in use, and which workers are served (JSON).
ALTER TABLE runs ADD COLUMN signing_key TEXT;
ALTER TABLE runs ADD COLUMN versions TEXT NOT NULL DEFAULT '{}';
