use rookery_common::pgn::Games;

use super::*;

const GAME: &str = "[WhiteElo \"1000\"]\n[BlackElo \"2500\"]\n[Result \"0-1\"]\n\n\
                    1. f3 e5 2. g4 Qh4# 0-1\n";

fn game(text: &str) -> PgnGame {
    let read = Games::new(text.as_bytes()).next();
    read.unwrap().unwrap().unwrap()
}

fn filter() -> Filter {
    Filter {
        min_elo: 0.0,
        assumed_elo: None,
        skip_plies: 0,
        positions_per_game: None,
    }
}

fn block(text: &str, filter: &Filter) -> Result<Block, Skipped> {
    let mut block = Block::new(&NetworkSpec::resnet(1, 8), 0.25);
    block.add(&game(text), filter, 3).map(|()| block)
}

#[test]
fn targets_follow_rating_and_result() {
    let block = block(GAME, &filter()).unwrap();
    let batch = block.batch(&[0, 1, 2, 3]);
    assert_eq!(batch.values, [Wdl::LOSS, Wdl::WIN, Wdl::LOSS, Wdl::WIN]);
    assert_eq!(batch.ahead[0].plies, Some(4.0));
    let first = &batch.policy[batch.positions.move_range(0)];
    let mut sorted = first.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert!((sorted[0] - 0.7048).abs() < 1e-4);
    assert!((sorted[1] - 0.2952 / 19.0).abs() < 1e-4);
    for place in 0..4 {
        let sum: f32 = batch.policy[batch.positions.move_range(place)].iter().sum();
        assert!((sum - 1.0).abs() < 1e-5);
    }
    // f2f3 is the played move: its index is the one with the large share.
    let legal = canonical_moves(GameHistory::default().position());
    let place = first.iter().position(|share| *share == sorted[0]).unwrap();
    assert_eq!(legal[place].to().to_string(), "f3");
}

#[test]
fn values_in_comments_have_their_share() {
    let text = GAME.replace("f3", "f3 {[%eval -2.0]}");
    let block = block(&text, &filter()).unwrap();
    let values = block.batch(&[0, 1, 2, 3]).values;
    assert_eq!(
        [values[0], values[2], values[3]],
        [Wdl::LOSS, Wdl::LOSS, Wdl::WIN]
    );
    // Black moves and will win; the comment gives it 67.6 % of the points.
    let of_comment = Wdl::from_score(2.0 * 0.6762 - 1.0);
    let expected = Wdl::WIN.mixed(of_comment, 0.25);
    assert!((values[1].win - expected.win).abs() < 1e-4, "{values:?}");
    assert!((values[1].loss - expected.loss).abs() < 1e-4, "{values:?}");
    assert!(values[1].draw > 0.1, "{values:?}");
}

#[test]
fn without_a_result_only_evaluations_teach() {
    let text = GAME.replace("0-1", "*").replace("f3", "f3 {[%eval -2.0]}");
    let block = block(&text, &filter()).unwrap();
    assert_eq!(block.len(), 1);
    let batch = block.batch(&[0]);
    let value = batch.values[0];
    assert!((value.q() - 0.3524).abs() < 1e-4, "{value:?}");
    assert_eq!(batch.ahead[0].plies, None, "nobody knows how long it lasts");
}

#[test]
fn a_reply_is_what_the_next_position_teaches() {
    let spec = NetworkSpec {
        auxiliary: vec![AuxiliaryHead::OpponentReply],
        ..NetworkSpec::resnet(1, 8)
    };
    let (mut block, mut all) = (Block::new(&spec, 0.25), Block::new(&spec, 0.25));
    block.add(&game(GAME), &filter(), 3).unwrap();
    all.take_from(&block, 4);
    let batch = all.batch(&[0, 1, 2, 3]);
    for place in 0..3 {
        let range = batch.positions.move_range(place + 1);
        let expected = (batch.positions.moves_of(place + 1), &batch.policy[range]);
        assert_eq!(batch.replies.of(place), expected);
    }
    assert!(batch.replies.of(3).0.is_empty(), "mate has no answer");
}

/// White to move sees the queen of fool's mate on h4, Black sees it on h5.
#[test]
fn a_board_ahead_is_the_last_one_where_the_game_ends_sooner() {
    let spec = NetworkSpec {
        auxiliary: vec![AuxiliaryHead::FutureBoard],
        ..NetworkSpec::resnet(1, 8)
    };
    let (mut block, mut all) = (Block::new(&spec, 0.25), Block::new(&spec, 0.25));
    block.add(&game(GAME), &filter(), 3).unwrap();
    all.take_from(&block, 4);
    let boards = all.batch(&[0, 1]).boards;
    for (place, square, class) in [(0, 31, 11), (1, 39, 5)] {
        let boards = boards[place].unwrap();
        assert_eq!(boards.future, boards.last);
        let queens = (0..64).filter(|square| boards.last[*square] == class);
        assert_eq!(queens.collect::<Vec<_>>(), [square]);
    }
    block.clear();
    let left = GAME.replace("0-1", "*").replace("Qh4#", "{[%eval 1.0]} a6");
    block.add(&game(&left), &filter(), 3).unwrap();
    assert!(!block.is_empty() && block.batch(&[0]).boards == [None]);
}

#[test]
fn positions_without_castling_can_be_mirrored() {
    let text = "[WhiteElo \"2000\"]\n[BlackElo \"2000\"]\n[FEN \"4k3/8/8/8/8/8/1P6/R3K3 w - - 0 1\"]\n\
                [Result \"1-0\"]\n\n1. b4 Kd7 2. Ra7+ Ke6 1-0\n";
    let places = [3, 1, 0];
    for (text, mirrors) in [(text, true), (GAME, false)] {
        let block = block(text, &filter()).unwrap();
        let (plain, mut mirrored) = (block.batch(&places), block.batch(&places));
        block.mirror(&mut mirrored, &places, &[true, false, true]);
        for (row, chosen) in [true, false, true].into_iter().enumerate() {
            let mut expected = plain.positions.clone();
            if chosen && mirrors {
                expected.mirror(row);
            }
            let got = &mirrored.positions;
            assert_eq!(expected.binary_of(row), got.binary_of(row));
            assert_eq!(expected.moves_of(row), got.moves_of(row));
        }
        assert_eq!(
            (plain.policy, plain.values),
            (mirrored.policy, mirrored.values)
        );
    }
}

#[test]
fn a_forced_move_gets_everything() {
    // Check on the back rank, one square to go to.
    let text =
        "[FEN \"k7/8/1K6/8/8/8/8/7R w - - 0 1\"]\n[Result \"1-0\"]\n\n1. Rh7 Kb8 2. Rh8# 1-0\n";
    let filter = Filter {
        assumed_elo: Some(1500.0),
        ..filter()
    };
    let batch = block(text, &filter).unwrap().batch(&[1]);
    assert_eq!(batch.policy, [1.0]);
}

#[test]
fn games_and_positions_are_chosen_as_asked() {
    let unrated = GAME.replace("[WhiteElo \"1000\"]\n", "");
    assert_eq!(block(&unrated, &filter()).unwrap_err(), Skipped::NoRating);
    let strong = Filter {
        min_elo: 1001.0,
        ..filter()
    };
    assert_eq!(block(GAME, &strong).unwrap_err(), Skipped::LowRating);
    let late = Filter {
        skip_plies: 3,
        ..filter()
    };
    assert_eq!(block(GAME, &late).unwrap().len(), 1);
    let few = Filter {
        positions_per_game: Some(2),
        skip_plies: 1,
        ..filter()
    };
    assert_eq!(block(GAME, &few).unwrap().len(), 2);
}

#[test]
fn an_order_holds_every_position_once() {
    let block = block(GAME, &filter()).unwrap();
    let mut order = block.order(7);
    assert_eq!(order, block.order(7));
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3]);
}
