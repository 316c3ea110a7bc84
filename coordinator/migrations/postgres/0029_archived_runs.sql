-- Since when a run is out of lists and gets no jobs, and since when it is deleted: what nothing else needs of it is
-- then removed by and by.
ALTER TABLE runs ADD COLUMN archived_at BIGINT;
ALTER TABLE runs ADD COLUMN deleted_at BIGINT;
