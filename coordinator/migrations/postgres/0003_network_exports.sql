-- Networks in the formats of other programs, as their trainers made them.
CREATE TABLE network_exports (
    network BYTEA NOT NULL, -- the network's hash
    format TEXT NOT NULL,
    hash BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    submitted_by BIGINT NOT NULL REFERENCES users (id),
    submitted_at BIGINT NOT NULL,
    PRIMARY KEY (network, format)
);
