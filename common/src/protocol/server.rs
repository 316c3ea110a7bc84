//! What a coordinator says about itself, and how operators present coordinators and runs: title, contact, links.

use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::runs::RunInfo;
use crate::names::names;
use crate::text::is_plain;

/// Most characters of a title.
pub const TITLE_CHARS: usize = 80;
/// Most characters of a contact.
pub const CONTACT_CHARS: usize = 200;
/// Most links of a run or a coordinator.
pub const LINKS: usize = 8;
/// Most characters of a link's text.
pub const LINK_TEXT_CHARS: usize = 60;
/// Most characters of a link's address.
pub const LINK_URL_CHARS: usize = 500;

names! {
    /// Who may register.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
    #[cfg_attr(feature = "command-line", derive(clap::ValueEnum))]
    #[serde(rename_all = "kebab-case")]
    pub enum Registration {
        /// Anyone.
        #[default]
        Open = "open",
        /// People with an invitation of the operator.
        Invitation = "invitation",
        /// No one: the operator creates users.
        Closed = "closed",
    }
}

/// A link that the operator sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What people read, at most 60 characters.
    pub text: String,
    /// Its target: an http or https URL, at most 500 characters.
    pub url: String,
}

/// How the operator presents a run or the whole coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presentation {
    /// The name that people read.
    pub title: Option<String>,
    /// The operator's address or page.
    pub contact: Option<String>,
    /// Where else to look.
    pub links: Vec<Link>,
}

/// `GET /server`: the coordinator as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerInfo {
    /// The coordinator's version, for example `0.1.0`.
    pub version: String,
    /// The newest protocol version that it serves.
    pub protocol: u32,
    /// The oldest protocol version that it serves.
    pub oldest_protocol: u32,
    /// Who may register.
    #[serde(default)]
    pub registration: Registration,
    /// The name that people read, at most 80 characters; absent if the operator set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How to reach the operator: an address such as `ann@example.org`, or a page's URL. At most 200 characters; absent
    /// if the operator set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Links that the operator set, for example to a chat; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

impl Link {
    /// Reads `TEXT=URL`.
    ///
    /// # Errors
    ///
    /// A sentence that says what is missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (text, url) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is no link: write TEXT=https://example.org/page"))?;
        let (text, url) = (text.trim().to_owned(), url.trim().to_owned());
        let link = Self { text, url };
        link.check()?;
        Ok(link)
    }

    /// Checks text and address.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.text.trim().is_empty() || !is_plain(&self.text, LINK_TEXT_CHARS) {
            return Err(format!(
                "a link's text has 1 to {LINK_TEXT_CHARS} characters, none of them of control or of \
                 the direction of writing"
            ));
        }
        if !is_web_address(&self.url, LINK_URL_CHARS) {
            return Err(format!(
                "the address of the link {:?} is not an http or https address of at most \
                 {LINK_URL_CHARS} characters, such as https://example.org/page",
                self.text
            ));
        }
        Ok(())
    }
}

impl Presentation {
    /// Gives a run what it has none of: title, contact, links.
    pub fn complete(&self, run: &mut RunInfo) {
        run.title = run.title.take().or_else(|| self.title.clone());
        run.contact = run.contact.take().or_else(|| self.contact.clone());
        if run.links.is_empty() {
            run.links.clone_from(&self.links);
        }
    }

    /// Checks title, contact and links.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.title.as_deref().map_or(Ok(()), check_title)?;
        self.contact.as_deref().map_or(Ok(()), check_contact)?;
        check_links(&self.links)
    }
}

/// Checks a title; an empty one takes the title away.
///
/// # Errors
///
/// A sentence that says what a title may be.
pub fn check_title(title: &str) -> Result<(), String> {
    if is_plain(title, TITLE_CHARS) {
        return Ok(());
    }
    Err(format!(
        "a title has at most {TITLE_CHARS} characters, none of them of control or of the direction of \
         writing"
    ))
}

/// Checks a contact; an empty one takes the contact away.
///
/// # Errors
///
/// A sentence that says what a contact may be.
pub fn check_contact(contact: &str) -> Result<(), String> {
    let is_address = is_plain(contact, CONTACT_CHARS)
        && contact.contains('@')
        && !contact.contains(|c: char| c.is_whitespace() || c == '/')
        && !contact.to_ascii_lowercase().starts_with("mailto:");
    if contact.is_empty() || is_address || is_web_address(contact, CONTACT_CHARS) {
        return Ok(());
    }
    Err(format!(
        "a contact is an address such as ann@example.org or a page such as https://example.org/contact, \
         at most {CONTACT_CHARS} characters"
    ))
}

/// Checks links.
///
/// # Errors
///
/// A sentence that says what is wrong with the first that is refused.
pub fn check_links(links: &[Link]) -> Result<(), String> {
    if links.len() > LINKS {
        return Err(format!("{} links, at most {LINKS} are taken", links.len()));
    }
    links.iter().try_for_each(Link::check)
}

/// Where a contact leads on a page: the page itself, or a `mailto:` for an address of mail; nothing
/// for an address of another kind, such as Matrix's `@ann:example.org`.
pub fn contact_href(contact: &str) -> Option<String> {
    if is_web_address(contact, CONTACT_CHARS) {
        return Some(contact.to_owned());
    }
    let (user, host) = contact.split_once('@')?;
    let is_mail = !user.is_empty() && !host.is_empty() && check_contact(contact).is_ok();
    is_mail.then(|| format!("mailto:{contact}"))
}

/// Whether a browser finds a page under this text.
fn is_web_address(text: &str, most: usize) -> bool {
    let is_http = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    is_plain(text, most)
        && !text.contains(char::is_whitespace)
        && Url::parse(text).is_ok_and(is_http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_and_nowhere_else() {
        let link = Link::parse("Chat=https://example.org/a?b=c").unwrap();
        assert_eq!(
            (&*link.text, &*link.url),
            ("Chat", "https://example.org/a?b=c")
        );
        for text in [
            "https://example.org",
            "=https://example.org",
            "Chat=javascript:alert(1)",
            "Chat=data:text/html,x",
            "Chat=example.org",
            "Chat=https://",
            "Chat=https://example.org/a b",
            "Ch\u{202e}at=https://example.org",
            "Ch\u{7}at=https://example.org",
            "Chat=https://example.org/\u{202e}",
        ] {
            assert!(Link::parse(text).is_err(), "{text:?}");
        }
        let long = format!("Chat=https://example.org/{}", "a".repeat(LINK_URL_CHARS));
        assert!(Link::parse(&long).is_err());
        assert!(check_links(&vec![link.clone(); LINKS]).is_ok());
        assert!(check_links(&vec![link; LINKS + 1]).is_err());
    }

    #[test]
    fn contacts_are_addresses_or_pages() {
        for (contact, href) in [
            ("ann@example.org", Some("mailto:ann@example.org")),
            (
                "https://example.org/contact",
                Some("https://example.org/contact"),
            ),
            ("@ann:example.org", None),
        ] {
            assert_eq!(check_contact(contact), Ok(()), "{contact}");
            assert_eq!(contact_href(contact).as_deref(), href, "{contact}");
        }
        for contact in [
            "ann",
            "write to ann@example.org",
            "mailto:ann@example.org",
            "javascript:alert(1)@x",
            "ann@example.org\u{202e}",
        ] {
            let refused = check_contact(contact);
            let is_safe = contact_href(contact).is_none_or(|href| href.starts_with("mailto:"));
            assert!(refused.is_err() || is_safe, "{contact}");
        }
        assert!(check_contact("write to ann@example.org").is_err());
    }

    #[test]
    fn old_and_new_answers_are_read() {
        let json = r#"{"version": "0.1.0", "protocol": 1, "oldest_protocol": 1}"#;
        let info: ServerInfo = serde_json::from_str(json).unwrap();
        assert_eq!((info.title, info.links), (None, Vec::new()));
        assert_eq!(info.registration, Registration::Open);
    }
}
