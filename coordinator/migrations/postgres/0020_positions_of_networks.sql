-- Training positions that the run had when the network was submitted; not known of earlier ones.
ALTER TABLE networks ADD COLUMN positions BIGINT;
