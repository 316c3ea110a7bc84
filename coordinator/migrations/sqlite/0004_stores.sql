-- A user is looked up by the name in whatever case it is written.
CREATE INDEX users_by_name ON users (lower(name));
