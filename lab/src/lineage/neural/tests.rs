use super::*;

fn dense(inputs: usize, outputs: usize, relu: bool) -> Layer {
    Layer::Dense {
        inputs,
        outputs,
        relu,
    }
}

#[test]
fn a_dense_network_computes_what_its_layers_say() {
    let network = Network {
        layers: vec![dense(2, 2, true), dense(2, 1, false)],
        parameters: vec![1.0, 2.0, -1.0, 1.0, 0.5, -4.0, 3.0, 7.0, -1.0],
    };
    // 1 + 4 + 0.5 = 5.5; -1 + 2 - 4 = -3, cut to 0; 3 * 5.5 + 7 * 0 - 1 = 15.5.
    let work = &mut Workspace::default();
    assert_eq!(network.values(&[1.0, 2.0, 0.0, 0.0], work), [15.5, 0.5]);
    let mut gradient = vec![0.0; 9];
    let loss = network.add_gradient(&[1.0, 2.0], &[15.0], &mut gradient, work);
    assert_eq!(loss, 0.25);
    // The error 0.5 doubled is 1: times 3 into the first unit, nothing into the second.
    assert_eq!(gradient, [3.0, 6.0, 0.0, 0.0, 3.0, 0.0, 5.5, 0.0, 1.0]);
}

#[test]
fn an_output_is_zeroed_and_parameters_are_averaged() {
    let layers = vec![dense(2, 2, true), dense(2, 1, false)];
    let with = |parameters: &[f32]| Network {
        layers: layers.clone(),
        parameters: parameters.to_vec(),
    };
    let mut network = with(&[1.0, 2.0, -1.0, 1.0, 0.5, -4.0, 3.0, 7.0, -1.0]);
    network.zero_output();
    let zeroed = with(&[1.0, 2.0, -1.0, 1.0, 0.5, -4.0, 0.0, 0.0, 0.0]);
    assert_eq!(network, zeroed);
    network.move_towards(
        &with(&[5.0, 2.0, -1.0, 1.0, 0.5, 4.0, 4.0, 0.0, -8.0]),
        0.25,
    );
    let averaged = with(&[2.0, 2.0, -1.0, 1.0, 0.5, -2.0, 1.0, 0.0, -2.0]);
    assert_eq!(network, averaged);
}

#[test]
fn gradients_are_those_of_small_changes() {
    let layers = vec![
        Layer::Convolution {
            inputs: 2,
            outputs: 3,
        },
        Layer::Convolution {
            inputs: 3,
            outputs: 2,
        },
        dense(128, 4, true),
        dense(4, 1, false),
    ];
    let mut network = Network::new(layers, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    // Two examples, whose gradients are added.
    let input: Vec<f32> = (0..256).map(|_| rng.random_range(-1.0..1.0)).collect();
    let targets = [0.3, -0.2];
    let mut gradient = vec![0.0; network.parameters.len()];
    let work = &mut Workspace::default();
    network.add_gradient(&input, &targets, &mut gradient, work);
    for place in (0..gradient.len()).step_by(17) {
        let (kept, step) = (network.parameters[place], 1e-3);
        let mut error = |parameter: f32| {
            network.parameters[place] = parameter;
            let values = network.values(&input, work).iter().zip(targets);
            values
                .map(|(value, target)| f64::from(value - target).powi(2))
                .sum::<f64>()
        };
        let slope = (error(kept + step) - error(kept - step)) / f64::from(2.0 * step);
        network.parameters[place] = kept;
        let found = f64::from(gradient[place]);
        assert!(
            (slope - found).abs() < 0.02 * (1.0 + slope.abs()),
            "{place}: {slope} {found}"
        );
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Agent(Network);

impl Trained for Agent {
    const KIND: &'static str = "test";

    fn network(&self) -> (&Network, usize) {
        (&self.0, 2)
    }
}

#[test]
fn agents_that_cannot_play_are_neither_written_nor_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let agent = |layers, parameters| Agent(Network { layers, parameters });
    for number in [f32::NAN, f32::INFINITY] {
        let diverged = agent(vec![dense(2, 1, false)], vec![0.0, number, 0.0]);
        let error = write(&diverged, &path).unwrap_err().to_string();
        assert!(error.contains("--learning-rate"), "{error}");
        assert!(!path.exists());
    }
    write(&agent(vec![dense(2, 1, false)], vec![0.0; 3]), &path).unwrap();
    assert_eq!(read::<Agent>(&path).unwrap().0.parameters, [0.0; 3]);
    let planes = |inputs, outputs| Layer::Convolution { inputs, outputs };
    for (layers, count) in [
        (vec![dense(2, 0, true), dense(0, 1, false)], 1),
        (
            vec![dense(2, usize::MAX, true), dense(usize::MAX, 1, false)],
            1,
        ),
        (vec![planes(1 << 60, 1), dense(64, 1, true)], 3),
        (vec![dense(2, 1, true), planes(1, 1 << 60)], 3),
        (vec![dense(2, 1, true)], 4),
        (vec![], 0),
    ] {
        write(&agent(layers, vec![0.0; count]), &path).unwrap();
        read::<Agent>(&path).unwrap_err();
    }
}

#[test]
fn adam_begins_with_steps_of_its_rate_and_learns() {
    let mut network = Network {
        layers: vec![dense(1, 1, false)],
        parameters: vec![0.0, 0.0],
    };
    let mut adam = Adam::new(&network, 0.1);
    let example = Example {
        input: vec![2.0],
        target: 1.0,
    };
    assert_eq!(adam.step(&mut network, [&example]), 1.0);
    for parameter in &network.parameters {
        assert!((parameter - 0.1).abs() < 1e-4, "{network:?}");
    }
    for _ in 0..300 {
        adam.step(&mut network, [&example]);
    }
    assert!(network.loss(&[example], &mut Workspace::default()) < 1e-3);
}
