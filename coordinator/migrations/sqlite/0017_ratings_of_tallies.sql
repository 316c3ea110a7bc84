-- Results between networks are the sums of their matches' tallies.
DROP TABLE head_to_head;
-- Games outside of tallies count no more: ratings are fitted again after the next match game.
UPDATE runs SET unrated_games = unrated_games + 1048576;
