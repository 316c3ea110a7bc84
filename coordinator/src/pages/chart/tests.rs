use super::drawing::LEFT;
use super::*;

/// The only drawing of a small chart.
fn drawing(data: ChartData) -> Drawing {
    let size = Size::Half;
    let mut chart = Chart::new(ChartData { size, ..data }).unwrap();
    assert_eq!(chart.drawings.len(), 1);
    chart.drawings.remove(0)
}

/// A line through these points, without a name.
fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<Line> {
    vec![Line {
        name: String::new(),
        class: "a",
        points: points.into_iter().collect(),
    }]
}

#[test]
fn long_numbers_have_room_on_the_left() {
    let chart = |low, high| {
        drawing(ChartData {
            lines: through([(0.0, low), (1.0, high)]),
            ..ChartData::default()
        })
    };
    assert_eq!(chart(0.0, 100.0).left, LEFT);
    let small = chart(0.000_01, 0.000_02);
    assert_eq!(small.y_ticks[0].label.len(), "0.000010".len());
    assert_eq!(small.left, 80.0);
    assert!(small.lines[0].path.starts_with("M88.0 "), "behind them");
}

#[test]
fn short_lines_show_their_points_and_one_alone_is_seen() {
    let dots = |count: u32, points| {
        let chart = Chart::new(ChartData {
            lines: through((0..count).map(|n| (f64::from(n), 1.0))),
            points,
            size: Size::Half,
            ..ChartData::default()
        })
        .unwrap();
        let svg = Template::render(&chart).unwrap();
        let dots = chart.drawings[0].lines[0].dots.len();
        assert_eq!(svg.matches("<circle class=\"mark a\"").count(), dots);
        dots
    };
    assert_eq!(
        [1, 2, 30, 31].map(|count| dots(count, vec![])),
        [1, 2, 30, 0]
    );
    let own = || Point {
        x: 0.0,
        y: 1.0,
        interval: None,
        class: "b",
        label: String::new(),
        link: None,
    };
    assert_eq!(dots(2, vec![own()]), 0, "the chart has points of its own");
    assert_eq!(dots(1, vec![own()]), 1, "nothing else of it is seen");
}

#[test]
fn a_wide_chart_is_drawn_for_phones_or_scrolls_there() {
    let screens = |count: usize, size| {
        let chart = Chart::new(ChartData {
            lines: through((0..count).map(|n| (n as f64, 1.0))),
            size,
            ..ChartData::default()
        });
        let drawings = chart.unwrap().drawings.into_iter();
        drawings.map(|drawing| drawing.screen).collect::<Vec<_>>()
    };
    assert_eq!(screens(39, Size::Full), [Screen::Wide, Screen::Narrow]);
    assert_eq!(screens(40, Size::Full), [Screen::AnyScrolled]);
    assert_eq!(screens(40, Size::Half), [Screen::Any]);
}

#[test]
fn points_that_lead_somewhere_have_names_and_what_was_rejected_is_a_square() {
    let point = |class, link: Option<&str>| Point {
        x: 0.0,
        y: 1.0,
        interval: None,
        class,
        label: format!("#1, {class}"),
        link: link.map(str::to_owned),
    };
    let svg = |points| {
        let size = Size::Half;
        let data = ChartData {
            points,
            size,
            ..ChartData::default()
        };
        Chart::render(data).unwrap().unwrap()
    };
    let linked = svg(vec![
        point("promoted", Some("/1")),
        point("rejected", Some("/2")),
    ]);
    for part in [
        "role=\"group\"",
        "<a href=\"/2\" aria-label=\"#1, rejected\">",
    ] {
        assert!(linked.contains(part), "{part}: {linked}");
    }
    let squares = linked.matches("<rect class=\"shape\"").count();
    let circles = linked.matches("<circle class=\"shape\"").count();
    assert_eq!((squares, circles), (1, 1), "{linked}");
    let plain = svg(vec![point("day", None)]);
    assert!(plain.contains("role=\"img\""), "{plain}");
}

#[test]
fn an_axis_around_a_single_value_is_as_long_as_it_must_be() {
    let ends = |y_span| {
        let chart = drawing(ChartData {
            lines: through([(0.0, 0.0)]),
            y_span,
            ..ChartData::default()
        });
        let labels = chart.y_ticks.iter().map(|tick| tick.label.clone());
        labels.collect::<Vec<_>>()
    };
    assert_eq!(ends(100.0), ["−60", "−40", "−20", "0", "20", "40", "60"]);
    assert_eq!(ends(0.0).len(), 5);
}

#[test]
fn a_part_of_a_chart_is_drawn_over_all_of_the_width() {
    let drawn = |view| {
        let chart = drawing(ChartData {
            lines: through((0..=10).map(|n| (f64::from(n), f64::from(n)))),
            view,
            ..ChartData::default()
        });
        (chart.lines[0].dots.len(), chart.span)
    };
    assert_eq!(drawn(View::Fixed), (11, None));
    assert_eq!(drawn(View::Whole), (11, Some("0 10 60 478".to_owned())));
    let part = View::of(Some(4.0), Some(8.5));
    assert_eq!(drawn(part), (5, Some("4 8 60 478".to_owned())));
    for odd in [(9.0, 3.0), (f64::NAN, 3.0)] {
        assert_eq!(View::of(Some(odd.0), Some(odd.1)), View::Whole);
    }
}

#[test]
fn one_value_and_odd_values_are_drawn_without_trouble() {
    let odd = [(3.0, f64::NAN), (4.0, 1.5), (f64::INFINITY, 2.0)];
    let chart = Chart::new(ChartData {
        lines: through(odd),
        ..ChartData::default()
    })
    .unwrap();
    assert_eq!(
        chart.drawings[0].lines[0].path.matches('L').count(),
        0,
        "one finite point"
    );
    assert!(!Template::render(&chart).unwrap().contains("NaN"));
    assert!(
        Chart::new(ChartData::default()).is_none(),
        "nothing to draw"
    );
}
