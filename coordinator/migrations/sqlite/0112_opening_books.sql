-- The opening book of a run's own, a line each in `lease_values`. A run without one has the coordinator's.
ALTER TABLE runs ADD COLUMN book BLOB REFERENCES lease_values (hash);
