-- Where the ledger goes on, if it was copied into another database: it is served here no more. The
-- copy has no such row.
CREATE TABLE moved (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    target TEXT NOT NULL,
    at BIGINT NOT NULL
);
