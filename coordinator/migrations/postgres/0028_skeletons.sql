-- What names that look alike have in common (Unicode TR39). Those of users who are there already are filled in
-- when the ledger is opened.
ALTER TABLE users ADD COLUMN skeleton TEXT;
CREATE UNIQUE INDEX users_by_skeleton ON users (skeleton);
