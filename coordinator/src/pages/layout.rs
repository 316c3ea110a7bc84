//! What all pages share: the frame around them, and how a template becomes an answer.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::server::{Link, Presentation, contact_href};
use serde::Serialize;

use super::assets;
use super::error::PageError;
use crate::server::address::Address;

#[derive(Debug)]
pub(super) struct Layout {
    pub run: Option<RunName>,
    pub tab: Tab,
    /// What the page is, for the window's title and for links to it elsewhere.
    pub title: String,
    /// The same in a sentence or two.
    pub description: String,
    /// What the coordinator is called.
    pub brand: String,
    pub contact: Option<Contact>,
    pub links: Vec<Link>,
    /// Below the coordinator's address, the picture for previews of links to the page.
    preview: String,
    /// Its address, once the coordinator's is known.
    pub picture: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Contact {
    pub text: String,
    /// Where a link on it leads; nowhere if browsers do not know its kind.
    pub href: Option<String>,
}

impl Contact {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            href: contact_href(text),
        }
    }
}

/// What coordinators without a title are called.
const BRAND: &str = "Rookery";

/// What every page is part of.
pub(super) const DESCRIPTION: &str = "Volunteers' machines train a chess network the AlphaZero way: by games it plays against itself.";
/// Longest description that pages give away: link previews show no more.
const DESCRIPTION_CHARS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    /// What is happening now.
    Overview,
    /// How it became stronger.
    Story,
    Networks,
    Matches,
    Games,
    /// A board against the networks.
    Play,
    Training,
    Puzzles,
    Contributors,
    Join,
    Other,
}

impl Tab {
    const ALL: [(Self, &str, &str); 10] = [
        (Self::Overview, "Overview", ""),
        (Self::Story, "Story", "/story"),
        (Self::Networks, "Networks", "/networks"),
        (Self::Matches, "Matches", "/matches"),
        (Self::Games, "Games", "/games"),
        (Self::Play, "Play", "/play"),
        (Self::Training, "Training", "/training"),
        (Self::Puzzles, "Puzzles", "/puzzles"),
        (Self::Contributors, "Contributors", "/contributors"),
        (Self::Join, "Join", "/join"),
    ];
}

/// One of several links, of which one leads to what is shown.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) current: bool,
}

impl Choice {
    /// A link to the same page with a query that is changed, current if that changes nothing.
    pub(super) fn new<Q: Clone + Serialize>(
        path: &str,
        query: &Q,
        name: &'static str,
        change: impl FnOnce(&mut Q),
    ) -> Self {
        let mut other = query.clone();
        change(&mut other);
        let href = link(path, &other);
        let current = href == link(path, query);
        Self {
            name,
            href,
            current,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    /// Its name for `aria-sort`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }
}

/// The head of a column by which a list can be sorted.
#[derive(Debug)]
pub(super) struct ColumnHead {
    pub(super) name: &'static str,
    /// The list in an order of this column: in the next one, if it is in one of them.
    pub(super) href: String,
    /// Which way the column runs, if the list is in its order.
    pub(super) direction: Option<Direction>,
}

impl ColumnHead {
    /// A column with these orders, of a list that is in the `present` one. `href` gives the list's address in an order.
    pub(super) fn new<S: Copy + PartialEq, const N: usize>(
        name: &'static str,
        orders: [(S, Direction); N],
        present: S,
        href: impl FnOnce(S) -> String,
    ) -> Self {
        let place = orders.iter().position(|(order, _)| *order == present);
        let next = place.map_or(0, |place| (place + 1) % N);
        Self {
            name,
            href: href(orders[next].0),
            direction: place.map(|place| orders[place].1),
        }
    }
}

/// The address of a page with a query, in which what is not chosen is left out.
pub(super) fn link(path: &str, query: &impl Serialize) -> String {
    let query = serde_urlencoded::to_string(query).unwrap_or_default();
    format!("{path}?{query}").trim_end_matches('?').to_owned()
}

/// What a form sends along to keep a query, by the names that addresses have for it.
pub(super) fn fields(query: &impl Serialize) -> Vec<(String, String)> {
    let query = serde_urlencoded::to_string(query).unwrap_or_default();
    serde_urlencoded::from_str(&query).unwrap_or_default()
}

/// Whether a query leaves this out.
pub(super) fn is_default<T: Default + PartialEq>(chosen: &T) -> bool {
    *chosen == T::default()
}

impl Layout {
    pub(super) fn of(presentation: &Presentation, info: &RunInfo, tab: Tab) -> Self {
        let run = info.title.as_deref().unwrap_or(info.name.as_str());
        let name = Tab::ALL.iter().find(|(one, _, _)| *one == tab);
        let title = match (tab, name) {
            (Tab::Overview | Tab::Story, _) | (_, None) => run.to_owned(),
            (Tab::Join, _) => format!("Join {run}"),
            (Tab::Play, _) => format!("Play against {run}"),
            (_, Some((_, name, _))) => format!("{name} of {run}"),
        };
        let site = Self::plain(presentation, &title);
        Self {
            run: Some(info.name.clone()),
            tab,
            preview: picture_of(info),
            contact: info.contact.as_deref().map(Contact::new).or(site.contact),
            links: match &info.links[..] {
                [] => site.links,
                own => own.to_vec(),
            },
            ..site
        }
    }

    /// The frame of a page that belongs to no run.
    pub(super) fn plain(presentation: &Presentation, title: &str) -> Self {
        let brand = presentation.title.as_deref().unwrap_or(BRAND);
        Self {
            run: None,
            tab: Tab::Other,
            title: title.to_owned(),
            description: DESCRIPTION.to_owned(),
            brand: brand.to_owned(),
            contact: presentation.contact.as_deref().map(Contact::new),
            links: presentation.links.clone(),
            preview: assets::path("picture.png"),
            picture: None,
        }
    }

    /// With the picture that previews of links show, at a coordinator with this address.
    pub(super) fn pictured(mut self, address: &Address) -> Self {
        self.picture = Some(format!("{address}{}", self.preview));
        self
    }

    pub(super) fn titled(self, title: String) -> Self {
        Self { title, ..self }
    }

    /// With a description of its own, unless it is empty.
    pub(super) fn described(mut self, description: &str) -> Self {
        let words: Vec<&str> = description.split_whitespace().collect();
        if !words.is_empty() {
            self.description = words.join(" ").chars().take(DESCRIPTION_CHARS).collect();
        }
        self
    }

    pub(super) fn tabs(&self) -> Vec<Choice> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        Tab::ALL
            .iter()
            .map(|(tab, name, path)| Choice {
                name,
                href: format!("/runs/{run}{path}"),
                current: *tab == self.tab,
            })
            .collect()
    }

    /// The address of an asset.
    #[expect(
        clippy::unused_self,
        reason = "templates call it on the layout they are given"
    )]
    pub(super) fn asset(&self, name: &str) -> String {
        assets::path(name)
    }

    /// The program's version.
    #[expect(
        clippy::unused_self,
        reason = "templates call it on the layout they are given"
    )]
    pub(super) const fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

/// The address of a run's picture below the coordinator's. It changes with the best network: sites keep what they fetched
/// for days.
fn picture_of(run: &RunInfo) -> String {
    match run.best {
        Some(best) => format!("/runs/{}/picture.png?best={best}", run.name),
        None => format!("/runs/{}/picture.png", run.name),
    }
}

/// What a handler gives back.
pub(super) type Page = Result<Response, PageError>;

pub(super) fn page(template: &impl Template) -> Page {
    Ok(Html(template.render()?).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_columns_head_leads_to_its_next_order_and_tells_the_present_one() {
        let orders = [
            ("longest", Direction::Descending),
            ("shortest", Direction::Ascending),
        ];
        let head = |present| {
            let head = ColumnHead::new("Plies", orders, present, str::to_owned);
            (head.href, head.direction)
        };
        assert_eq!(head("newest"), ("longest".to_owned(), None));
        let descending = Some(Direction::Descending);
        assert_eq!(head("longest"), ("shortest".to_owned(), descending));
        let ascending = Some(Direction::Ascending);
        assert_eq!(head("shortest"), ("longest".to_owned(), ascending));
    }
}
