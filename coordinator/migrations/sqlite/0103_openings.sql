-- What a game's first moves are called: the code of the Encyclopaedia of Chess Openings and the name without its
-- variation. The code is empty where no name is known, and missing where none was looked for: of audits, and of games
-- from before this step until the coordinator has read their chunks again.
ALTER TABLE games ADD COLUMN eco TEXT;
ALTER TABLE games ADD COLUMN opening TEXT;
CREATE INDEX games_of_eco ON games (run_id, eco, id) WHERE eco IS NOT NULL;
CREATE INDEX games_of_opening ON games (run_id, opening, id) WHERE opening IS NOT NULL;
CREATE INDEX games_unnamed ON games (chunk) WHERE eco IS NULL AND kind <> 'audit';
