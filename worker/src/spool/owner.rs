//! Whose a job is: the coordinator that leased it, and the account that it was leased to. No other
//! can upload its games.

use std::fmt;

use rookery_common::ids::RunName;
use rookery_common::protocol::people::is_user_name;
use rookery_common::protocol::user_name::in_url;
use serde::{Deserialize, Serialize};

use crate::api::{Server, Token};

/// A coordinator and an account there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// The coordinator's address as it was given.
    server: String,
    /// The contributor's name; not known where the user gave the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The token's fingerprint.
    token: String,
}

impl Owner {
    /// The account with this token, and this name if it is known.
    pub fn new(server: &Server, name: Option<&str>, token: &Token) -> Self {
        Self {
            server: server.to_string(),
            name: name.map(str::to_owned),
            token: token.fingerprint(),
        }
    }

    /// Whether it can upload what was leased to `other`. The same token is the same account,
    /// wherever its coordinator has moved to.
    pub(super) fn can_send_for(&self, other: &Self) -> bool {
        let may_be_same = match (&self.name, &other.name) {
            (Some(name), Some(other)) => name == other,
            _ => true,
        };
        self.token == other.token || (self.server == other.server && may_be_same)
    }

    /// The coordinator's page on which games in a run are counted for this owner: the own one, or
    /// that of all where the name is not known. It came from outside: what can be no name leads nowhere.
    pub fn page(&self, run: &RunName) -> String {
        let name = self.name.as_deref().filter(|name| is_user_name(name));
        let own = name.map_or_else(String::new, |name| format!("/{}", in_url(name)));
        format!("runs/{run}/contributors{own}")
    }

    /// How to upload this owner's finished games, for a user who runs with `server`.
    pub fn way_to_send(&self, games: usize, server: &Server) -> String {
        let here = server.to_string();
        let how = if self.server == here {
            "run with its token (ROOKERY_TOKEN=TOKEN, which an operator makes with `user add-token`) to \
             upload them"
                .to_owned()
        } else {
            format!(
                "run with --server {} to upload them; if that coordinator has moved to {here}, write \
                 the new address in its place in tokens.toml",
                self.server
            )
        };
        format!("RK-0508: finished games wait for {self}: {games}; {how}")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("another account");
        write!(f, "{name} at {}", self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(server: &str, name: Option<&str>, token: &str) -> Owner {
        let token = Token::parse(token).unwrap();
        Owner::new(&server.parse().unwrap(), name, &token)
    }

    #[test]
    fn an_account_is_known_by_its_token_or_by_address_and_name() {
        let ann = owner("http://a", Some("ann"), "rk_1");
        for (other, can) in [
            (owner("http://a", Some("ann"), "rk_2"), true),
            (owner("http://a", None, "rk_2"), true),
            (owner("http://b", None, "rk_1"), true),
            (owner("http://a", Some("bob"), "rk_2"), false),
            (owner("http://b", Some("ann"), "rk_2"), false),
        ] {
            assert_eq!(ann.can_send_for(&other), can, "{other}");
            assert_eq!(other.can_send_for(&ann), can, "{other}");
        }
    }

    #[test]
    fn games_are_counted_on_a_page_of_ones_own_where_the_name_is_known() {
        let run = "main".parse().unwrap();
        for (name, page) in [
            (Some("ann"), "runs/main/contributors/ann"),
            (None, "runs/main/contributors"),
            (Some("../trust"), "runs/main/contributors"),
        ] {
            assert_eq!(owner("http://a", name, "rk_1").page(&run), page);
        }
    }

    #[test]
    fn whoever_has_left_games_elsewhere_hears_how_to_send_them() {
        let ann = owner("http://a", Some("ann"), "rk_1");
        let elsewhere = ann.way_to_send(3, &"http://b".parse().unwrap());
        assert!(
            elsewhere.contains("finished games wait for ann at http://a: 3; run with --server"),
            "{elsewhere}"
        );
        let here = ann.way_to_send(3, &"http://a".parse().unwrap());
        assert!(here.contains("ROOKERY_TOKEN"), "{here}");
        assert!(!here.contains(&ann.token), "{here}");
    }
}
