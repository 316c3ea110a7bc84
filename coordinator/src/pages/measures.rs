//! What the trainer's numbers are: a title, a unit and a sentence for each name.

/// A number that trainers report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    /// Its name in reports.
    name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    /// What it says, and where it should go.
    pub(super) meaning: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Of(&'static str),
    /// These, of which few digits matter.
    About(&'static str),
    /// Hundredths; reports have 1 for all.
    Percent,
}

/// All numbers that the trainer reports, without those of versions to come.
const MEASURES: [Measure; 21] = [
    Measure {
        name: "loss",
        title: "Loss",
        unit: Unit::None,
        meaning: "Policy loss and value loss together; lower is better.",
    },
    Measure {
        name: "policy_loss",
        title: "Policy loss",
        unit: Unit::Of("nats"),
        meaning: "Cross-entropy of the policy against the searches' visits; lower is better.",
    },
    Measure {
        name: "value_loss",
        title: "Value loss",
        unit: Unit::None,
        meaning: "Error of the expected result against the game's; lower is better.",
    },
    Measure {
        name: "moves_left_loss",
        title: "Moves left loss",
        unit: Unit::None,
        meaning: "Error of the predicted number of moves that are left.",
    },
    Measure {
        name: "short_value_loss",
        title: "Short value loss",
        unit: Unit::None,
        meaning: "Error of the expected value against the searches of the next plies.",
    },
    Measure {
        name: "opponent_reply_loss",
        title: "Opponent's reply loss",
        unit: Unit::Of("nats"),
        meaning: "Cross-entropy of the predicted reply against the opponent's.",
    },
    Measure {
        name: "future_board_loss",
        title: "Board ahead loss",
        unit: Unit::Of("nats"),
        meaning: "How far the foreseen board is from that eight plies later, for each square.",
    },
    Measure {
        name: "final_board_loss",
        title: "Final board loss",
        unit: Unit::Of("nats"),
        meaning: "How far the foreseen board is from that at the game's end, for each square.",
    },
    Measure {
        name: "soft_policy_loss",
        title: "Soft policy loss",
        unit: Unit::Of("nats"),
        meaning: "How far the second policy is from that of the searches with a temperature of 4.",
    },
    Measure {
        name: "policy_accuracy",
        title: "Policy accuracy",
        unit: Unit::Percent,
        meaning: "Share of positions whose most likely move is the search's; higher is better.",
    },
    Measure {
        name: "l2",
        title: "Size of the weights",
        unit: Unit::None,
        meaning: "L2 term of the weights, which weight decay keeps small.",
    },
    Measure {
        name: "gradient_norm",
        title: "Gradient norm",
        unit: Unit::None,
        meaning: "L2 norm of the gradient; peaks mean unstable training.",
    },
    Measure {
        name: "learning_rate",
        title: "Learning rate",
        unit: Unit::None,
        meaning: "Step size of the optimiser.",
    },
    Measure {
        name: "samples_per_s",
        title: "Speed",
        unit: Unit::About("positions a second"),
        meaning: "Training throughput.",
    },
    Measure {
        name: "window",
        title: "Window",
        unit: Unit::About("positions"),
        meaning: "Size of the replay window, from which batches are drawn.",
    },
    Measure {
        name: "reuse",
        title: "Reuse",
        unit: Unit::About("times"),
        meaning: "How often a new position is trained on before it leaves the window.",
    },
    Measure {
        name: "hang_rate",
        title: "Hanging moves",
        unit: Unit::Percent,
        meaning: "Share of new self-play moves that leave a piece to be taken though another move would not; lower is better.",
    },
    Measure {
        name: "hangs_punished",
        title: "Hanging pieces taken",
        unit: Unit::Percent,
        meaning: "How often the next move takes what such a move left; higher is better.",
    },
    Measure {
        name: "score_a_piece_ahead",
        title: "Score a piece ahead",
        unit: Unit::Percent,
        meaning: "Points in new self-play games of a side that was three pawns' worth ahead or more; higher is better.",
    },
    Measure {
        name: "false_resignations",
        title: "Wrong resignations",
        unit: Unit::Percent,
        meaning: "In games played on, how often a side that would have resigned did not lose; lower is better.",
    },
    Measure {
        name: "games_played_on",
        title: "Games played on",
        unit: Unit::About("games"),
        meaning: "New games that were played on although a side might have resigned.",
    },
];

impl Measure {
    /// The number that has this name in reports; none if it is not known here.
    pub(super) fn named(name: &str) -> Option<Self> {
        MEASURES.into_iter().find(|measure| measure.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rookery_common::network::AuxiliaryHead;

    #[test]
    fn every_auxiliary_head_has_a_title() {
        for head in AuxiliaryHead::ALL {
            let name = format!("{}_loss", head.name().replace('-', "_"));
            assert!(Measure::named(&name).is_some(), "{name}");
        }
        assert!(Measure::named("kappa").is_none());
    }
}
