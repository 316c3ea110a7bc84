-- What operators call a network of known strength that they brought in to compare with.
ALTER TABLE networks ADD COLUMN name TEXT;
