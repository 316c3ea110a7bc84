-- How the operator presents a run to people; what is missing is the coordinator's.
ALTER TABLE runs ADD COLUMN title TEXT;
ALTER TABLE runs ADD COLUMN contact TEXT;
ALTER TABLE runs ADD COLUMN links TEXT NOT NULL DEFAULT '[]'; -- JSON
