-- The run of a worker's last job: each run's page lists its own. Missing until the worker asks for the next one.
ALTER TABLE workers ADD COLUMN run_id BIGINT;
