-- Lists of a network's matches: an index for each side.
CREATE INDEX matches_of_candidate ON matches (run_id, candidate, id);
CREATE INDEX matches_of_opponent ON matches (run_id, opponent, id);
