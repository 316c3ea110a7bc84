-- Names the key by which sampled audits are kept or dropped as the code and the literature do.
ALTER TABLE audits RENAME COLUMN luck TO sampling_key;
