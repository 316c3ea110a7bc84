-- What many leases have in common, by its SHA-256: the rules of their games (JSON) and opening books (a
-- line each). A lease names it, so that its work takes few bytes.
CREATE TABLE lease_values (
    hash BYTEA PRIMARY KEY,
    content TEXT NOT NULL
);
