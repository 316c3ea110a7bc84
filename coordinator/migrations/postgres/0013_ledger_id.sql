-- Which ledger this is. The store of networks and chunks is marked with it, so that no other
-- ledger takes that store for its own.
CREATE TABLE ledger_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
);
INSERT INTO ledger_id (one, id) VALUES (1, replace(CAST(gen_random_uuid() AS TEXT), '-', ''));
