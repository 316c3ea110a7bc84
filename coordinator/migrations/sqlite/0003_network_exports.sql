-- Networks in the formats of other programs, as their trainers made them.
CREATE TABLE network_exports (
    network BLOB NOT NULL, -- the network's hash
    format TEXT NOT NULL,
    hash BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    submitted_by INTEGER NOT NULL REFERENCES users (id),
    submitted_at INTEGER NOT NULL,
    PRIMARY KEY (network, format)
) WITHOUT ROWID;
