use super::*;

/// Two legal moves in every row; a row of zeros has no target.
fn targets(shares: &[[f32; 2]]) -> PolicyTargets {
    let rows = shares.len() as i64;
    let shaped = |tensor: Tensor| tensor.reshape([rows, 2]);
    PolicyTargets {
        cells: shaped(Tensor::from_slice(&[0_i64, 1].repeat(shares.len()))),
        padding: shaped(Tensor::from_slice(&[false, false].repeat(shares.len()))),
        shares: shaped(Tensor::from_slice(&shares.concat())),
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.flatten(0, -1).to_kind(Kind::Double)).unwrap()
}

fn assert_near(found: &Tensor, expected: &[f64]) {
    let found = numbers(found);
    assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() < 1e-3,
            "{found}, not {expected} at {place}"
        );
    }
}

/// By hand: the fourth roots of 16/17 and 1/17 are as 2 to 1; of 1 and the floor, 10^-7, as 1 to 0.01778.
#[test]
fn the_soft_target_has_the_fourth_roots_of_the_shares() {
    let soft = targets(&[[16.0 / 17.0, 1.0 / 17.0], [0.0, 1.0], [0.0, 0.0]]);
    let soft = soft.softened().unwrap();
    let floor = 0.017_78 / 1.017_78;
    let expected = [2.0 / 3.0, 1.0 / 3.0, floor, 1.0 - floor, 0.0, 0.0];
    assert_near(&soft.shares, &expected);
    // A network that says nothing: ln 2 of the two that have a target, whose mean it is.
    let loss = soft.loss(&Tensor::zeros([3, 2], (Kind::Float, Device::Cpu)));
    assert_near(&loss.unwrap(), &[2.0_f64.ln()]);
}

#[test]
fn a_move_that_is_padding_gets_no_soft_share() {
    let mut padded = targets(&[[1.0, 0.0]]);
    padded.padding = Tensor::from_slice(&[false, true]).reshape([1, 2]);
    assert_near(&padded.softened().unwrap().shares, &[1.0, 0.0]);
}

/// Logits of 0 are ln 13 from any class; ln 12 for the right one makes it as likely as the twelve others. A position
/// whose boards are not known counts nothing.
#[test]
fn the_loss_of_a_board_is_the_mean_over_its_squares() {
    let mut ahead = BoardsAhead {
        future: [0; 64],
        last: [12; 64],
    };
    ahead.future[9] = 5;
    let targets = BoardTargets::new(&[Some(ahead), None], Device::Cpu)
        .unwrap()
        .unwrap();
    let says = Tensor::zeros([2, 13, 8, 8], (Kind::Float, Device::Cpu));
    let loss = |head, says: &Tensor| targets.loss(head, says).unwrap();
    assert_near(&loss(AuxiliaryHead::FinalBoard, &says), &[13.0_f64.ln()]);
    // The second square of the second rank.
    let _ = says.get(0).get(5).get(1).get(1).fill_(12.0_f64.ln());
    let expected = (63.0 * 13.0_f64.ln() + 2.0_f64.ln()) / 64.0;
    assert_near(&loss(AuxiliaryHead::FutureBoard, &says), &[expected]);
}
