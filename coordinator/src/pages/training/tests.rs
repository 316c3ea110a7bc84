use jiff::Timestamp;
use rookery_common::protocol::runs::MetricPoint;

use super::*;

/// A report that came in as many days after 1970 as it has steps.
fn record(step: u64, values: BTreeMap<String, f64>) -> MetricRecord {
    let reported_at = Timestamp::from_second(86_400 * step.min(1_000).cast_signed());
    MetricRecord {
        point: MetricPoint { step, values },
        reported_at: reported_at.unwrap(),
    }
}

#[test]
fn over_time_the_steps_of_a_trainer_that_began_anew_come_last() {
    let value = |value: f64| [("loss".to_owned(), value)].into();
    let mut records = [1, 2, 3].map(|step| record(step, value(step as f64)));
    records[0].reported_at = Timestamp::from_second(4 * 86_400).unwrap();
    let drawn = |over| series(&records, over).remove(0).1.training;
    assert_eq!(drawn(Over::Steps), [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]);
    assert_eq!(drawn(Over::Time), [(2.0, 2.0), (3.0, 3.0), (4.0, 1.0)]);
    let (_, measured) = series(&records, Over::Time).remove(0);
    let card = card("loss", &measured, Over::Time, View::Whole);
    let chart = card.unwrap().unwrap().chart;
    for part in [
        "Loss over time, at last 1.000",
        ">time (UTC)</text>",
        ">4 Jan</text>",
    ] {
        assert!(chart.contains(part), "{part}: {chart}");
    }
}

#[test]
fn losses_come_first_and_long_series_are_thinned() {
    let values = |step: u64| {
        [("accuracy", 0.5), ("policy_loss", step as f64)]
            .map(|(n, v)| (n.to_owned(), v))
            .into()
    };
    let records: Vec<_> = (0..1000).map(|step| record(step, values(step))).collect();
    let series = series(&records, Over::Steps);
    assert_eq!(
        series
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["policy_loss", "accuracy"]
    );
    let thin = thinned(&series[0].1.training);
    assert_eq!(thin.len(), 334);
    assert_eq!(thin[0], (1.0, 1.0), "the mean of steps 0, 1, 2");
}

#[test]
fn speed_and_reuse_have_few_digits_and_losses_have_all() {
    let written = [
        format_value(583.952, Unit::About("positions a second")),
        format_value(4.777, Unit::About("times")),
        format_value(1_234.5, Unit::About("positions")),
        format_value(1.2346, Unit::Of("nats")),
    ];
    let expected = [
        "584 positions a second",
        "4.8 times",
        "1\u{202f}235 positions",
        "1.235 nats",
    ];
    assert_eq!(written, expected);
}

#[test]
fn the_learning_rate_is_told_with_its_drops() {
    let params = LearningRate {
        base: 0.002,
        drops: vec![(30_000, 0.2), (12_000, 0.5)],
        ..LearningRate::default()
    };
    assert_eq!(
        learning_rate(&params),
        "0.002, then 0.001 from step 12\u{202f}000, then 0.0002 from step 30\u{202f}000"
    );
}

/// Anybody may ask for the page; a report names what it likes.
#[test]
fn a_page_has_so_many_charts_whatever_reports_are_named() {
    let records = (0..1000).map(|step| {
        let values = [(format!("m{step}"), 1.0), ("policy_loss".to_owned(), 1.0)];
        record(step, values.into())
    });
    let series = series(&records.collect::<Vec<_>>(), Over::Steps);
    assert_eq!(series.len(), CHARTS);
    assert_eq!(series[0].0, "policy_loss");
}

#[test]
fn a_few_reports_far_from_all_others_are_left_out() {
    let kept = |steps: &[u64]| {
        let record = |step: &u64| record(*step, BTreeMap::new());
        let records: Vec<_> = steps.iter().map(record).collect();
        let (kept, stray) = drop_strays(&records);
        let steps = kept.iter().map(|record| record.point.step);
        (steps.collect::<Vec<_>>(), stray)
    };
    let honest: Vec<u64> = (100..=129).map(|n| 10 * n).collect();
    let with = |more: &[u64]| {
        let mut steps = [&honest[..], more].concat();
        steps.sort_unstable();
        steps
    };
    assert_eq!(kept(&[]), (vec![], None));
    assert_eq!(kept(&honest), (honest.clone(), None));
    for far in [&[u64::MAX][..], &[1_000_000, 5_000_000, u64::MAX]] {
        assert_eq!(kept(&with(far)), (honest.clone(), Some(u64::MAX)));
    }
    let late: Vec<u64> = honest.iter().map(|step| step + 1_000_000).collect();
    let begun = [&[3][..], &late].concat();
    assert_eq!(kept(&begun), (late, Some(3)));
    // A pause, as many on either side, and a run that has hardly begun.
    let both: Vec<u64> = honest.iter().flat_map(|n| [*n, n + 1_000_000]).collect();
    for mut whole in [with(&[3_000]), with(&both[..]), vec![10, 20, 1_000_000]] {
        whole.sort_unstable();
        whole.dedup();
        assert_eq!(kept(&whole), (whole.clone(), None));
    }
}

#[test]
fn training_and_validation_share_a_chart_that_says_what_it_shows() {
    let values = [
        ("policy_accuracy", 0.5),
        ("validation_policy_accuracy", 0.25),
        ("own_number", 3.0),
    ];
    let values = values.map(|(name, n)| (name.to_owned(), n)).into();
    let series = series(&[record(7, values)], Over::Steps);
    let card = |name: &str, measured| card(name, measured, Over::Steps, View::Whole).unwrap();
    let cards: Vec<Card> = series
        .iter()
        .filter_map(|(name, measured)| card(name, measured))
        .collect();
    let [own, accuracy] = &cards[..] else {
        panic!("two charts")
    };
    assert_eq!(own.title, "own number");
    assert_eq!((own.latest.as_str(), own.meaning), ("3.000", ""));
    assert_eq!(accuracy.title, "Policy accuracy");
    let latest = "50.0\u{a0}% in training, 25.0\u{a0}% held out";
    assert_eq!(accuracy.latest, latest);
    assert!(!accuracy.meaning.is_empty());
    assert!(accuracy.chart.contains(latest), "{}", accuracy.chart);
    assert_eq!(accuracy.chart.matches("<circle").count(), 2);
    assert!(accuracy.chart.contains("class=\"legend\""));
}
