//! What an address asks of a page's charts, and the links that change it. They work without JavaScript; `zoom.js` asks
//! for any other part.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::View;
use crate::pages::layout::{Choice, is_default};

/// What stands after the question mark about a page's charts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, Serialize)]
pub(in crate::pages) struct ChartQuery<X: AxisChoice> {
    /// Over what they are drawn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(in crate::pages) over: X,
    /// Where the part begins that is shown.
    #[serde(
        default,
        deserialize_with = "read_place",
        serialize_with = "write_place"
    )]
    from: Option<f64>,
    /// Where it ends.
    #[serde(
        default,
        deserialize_with = "read_place",
        serialize_with = "write_place"
    )]
    to: Option<f64>,
}

/// What the charts of a page can be drawn over.
pub(in crate::pages) trait AxisChoice:
    Copy + Default + PartialEq + 'static
{
    /// All that there is to choose from, and what it is called; empty if that is only one.
    const ALL: &'static [(Self, &'static str)];
}

/// The charts are always drawn over the same.
impl AxisChoice for () {
    const ALL: &'static [(Self, &'static str)] = &[];
}

/// Links to the same page with its charts over something else, or with another part of them.
#[derive(Debug)]
pub(in crate::pages) struct ChartLinks {
    pub(in crate::pages) axes: Vec<Choice>,
    /// All of the charts, and parts of them to their end.
    pub(in crate::pages) parts: Vec<Choice>,
}

impl<X: AxisChoice> ChartQuery<X> {
    /// What part of the charts is shown.
    pub(in crate::pages) fn view(&self) -> View {
        View::of(self.from, self.to)
    }

    /// The links of a page whose charts have data between these ends. `charts` finds this query in the page's own.
    pub(in crate::pages) fn links<Q: Clone + Serialize>(
        path: &str,
        query: &Q,
        charts: fn(&mut Q) -> &mut Self,
        ends: Option<(f64, f64)>,
    ) -> ChartLinks {
        let axis = |(over, name): &(X, &'static str)| {
            Choice::new(path, query, name, |other| {
                let charts = charts(other);
                // A place on one axis is none on another.
                if *over != charts.over {
                    (charts.over, charts.from, charts.to) = (*over, None, None);
                }
            })
        };
        let newest = |part: f64| ends.map(|(first, last)| last - (last - first) * part);
        let parts = [
            (None, "whole run"),
            (newest(0.5), "second half"),
            (newest(0.1), "last tenth"),
        ];
        let part = |(from, name)| {
            Choice::new(path, query, name, |other| {
                let charts = charts(other);
                (charts.from, charts.to) = (from, None);
            })
        };
        ChartLinks {
            axes: X::ALL.iter().map(axis).collect(),
            parts: match ends {
                Some(_) => parts.map(part).into(),
                None => Vec::new(),
            },
        }
    }
}

/// The smallest and the largest of places on an axis.
pub(in crate::pages) fn ends(places: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    places.clone().reduce(f64::min).zip(places.reduce(f64::max))
}

/// Reads an end of a part: in a query that is a part of another one, values come as text.
fn read_place<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(from)?;
    let place = text.parse().map(Some);
    place.map_err(|_| D::Error::custom("from and to: the ends of a part are numbers"))
}

/// Writes an end of a part into an address, a whole number without a point.
fn write_place<S: Serializer>(place: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match place {
        Some(place) => to.collect_str(place),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Over {
        #[default]
        Steps,
        Time,
    }

    impl AxisChoice for Over {
        const ALL: &'static [(Self, &'static str)] =
            &[(Self::Steps, "by step"), (Self::Time, "by time")];
    }

    #[derive(Debug, Clone, Deserialize, Serialize)]
    struct PageQuery {
        #[serde(flatten)]
        charts: ChartQuery<Over>,
        before: Option<u32>,
    }

    fn page(address: &str) -> PageQuery {
        serde_urlencoded::from_str(address).unwrap()
    }

    #[test]
    fn a_page_has_what_its_charts_are_asked_for_beside_its_own() {
        let query = page("to=8.5&before=7&from=4&over=time");
        assert_eq!(query.before, Some(7));
        assert_eq!(query.charts.over, Over::Time);
        assert_eq!(query.charts.view(), View::Part(4.0, 8.5));
        let written = serde_urlencoded::to_string(&query).unwrap();
        assert_eq!(written, "over=time&from=4&to=8.5&before=7");
        assert_eq!(page("").charts, ChartQuery::default());
        for odd in ["from=", "to=soon", "over=moons"] {
            assert!(
                serde_urlencoded::from_str::<PageQuery>(odd).is_err(),
                "{odd}"
            );
        }
    }

    #[test]
    fn links_change_the_axis_or_the_part_and_keep_the_rest() {
        let query = page("over=time&from=10&before=7");
        let links = ChartQuery::links("/p", &query, |query| &mut query.charts, Some((0.0, 20.0)));
        let told = |choices: &[Choice]| {
            let told = choices.iter();
            told.map(|choice| (choice.name, choice.href.clone(), choice.current))
                .collect::<Vec<_>>()
        };
        let expect = |name, href: &str, current| (name, href.to_owned(), current);
        assert_eq!(
            told(&links.axes),
            [
                expect("by step", "/p?before=7", false),
                expect("by time", "/p?over=time&from=10&before=7", true),
            ]
        );
        assert_eq!(
            told(&links.parts),
            [
                expect("whole run", "/p?over=time&before=7", false),
                expect("second half", "/p?over=time&from=10&before=7", true),
                expect("last tenth", "/p?over=time&from=18&before=7", false),
            ]
        );
    }

    #[test]
    fn a_page_without_data_has_no_parts_to_choose() {
        let query = ChartQuery::<()>::default();
        let links = ChartQuery::links("/p", &query, |query| query, None);
        assert!(links.axes.is_empty() && links.parts.is_empty());
        assert_eq!(ends([3.0, 1.0, 2.0].into_iter()), Some((1.0, 3.0)));
        assert_eq!(ends(std::iter::empty()), None);
    }
}
