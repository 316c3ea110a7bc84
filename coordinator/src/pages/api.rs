//! The calls of the API, for people: what the OpenAPI document says, by subject.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use askama::Template;
use axum::extract::State;
use serde_json::Value;

use super::PagesState;
use super::layout::{Layout, Page, page};
use super::text;
use crate::api;
use crate::server::address::Address;

/// The calls of this program, which do not change while it runs.
static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let document = serde_json::to_value(api::document());
    subjects(&document.unwrap_or_default())
});

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    layout: Layout,
    address: Address,
    subjects: &'static [Subject],
}

/// Calls with one tag.
#[derive(Debug, PartialEq, Eq)]
struct Subject {
    name: String,
    calls: Vec<Call>,
}

#[derive(Debug, PartialEq, Eq)]
struct Call {
    method: String,
    path: String,
    /// The scope that its token needs, or `any`; nothing if everybody may call.
    token: Option<String>,
    summary: String,
    details: Option<String>,
    parameters: Vec<Parameter>,
}

#[derive(Debug, PartialEq, Eq)]
struct Parameter {
    name: String,
    meaning: String,
}

/// `GET /api`
pub(super) async fn calls(State(state): State<PagesState>, address: Address) -> Page {
    page(&ApiPage {
        layout: Layout::plain(&state.presentation, "API")
            .described(
                "The calls of this coordinator's API, and the scope of the token that each needs.",
            )
            .pictured(&address),
        address,
        subjects: &SUBJECTS,
    })
}

/// The calls of a document by their tags, each tag's in the document's order.
fn subjects(document: &Value) -> Vec<Subject> {
    let mut subjects: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, methods) in paths {
        for (method, said) in methods.as_object().into_iter().flatten() {
            let name = said["tags"][0].as_str().unwrap_or("other");
            let calls = subjects.entry(capitalised(name)).or_default();
            calls.push(Call::read(method, path, said));
        }
    }
    let subjects = subjects.into_iter();
    subjects
        .map(|(name, calls)| Subject { name, calls })
        .collect()
}

impl Call {
    fn read(method: &str, path: &str, said: &Value) -> Self {
        let parameters = said["parameters"].as_array().into_iter().flatten();
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            token: token(&said["security"]),
            summary: words(&said["summary"]),
            details: Some(words(&said["description"])).filter(|text| !text.is_empty()),
            parameters: parameters.map(Parameter::read).collect(),
        }
    }
}

impl Parameter {
    fn read(said: &Value) -> Self {
        Self {
            name: words(&said["name"]),
            meaning: words(&said["description"]),
        }
    }
}

/// The scope that a call needs of its token.
fn token(needs: &Value) -> Option<String> {
    let needs = needs.as_array()?;
    let scopes = needs.iter().filter_map(|need| need["token"].as_array());
    let scopes: Vec<&str> = scopes.flatten().filter_map(Value::as_str).collect();
    Some(match &scopes[..] {
        [] => "any".to_owned(),
        scopes => scopes.join(", "),
    })
}

/// Text on one line.
fn words(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_subject_with_their_tokens_and_parameters() {
        let document = serde_json::json!({"paths": {
            "/b": {"post": {"tags": ["jobs"], "summary": "Leases\n a job.", "security": [{"token": ["contribute"]}]}},
            "/c": {"get": {"tags": ["jobs"], "summary": "Says.", "description": "More.", "security": [{"token": []}],
                "parameters": [{"name": "run", "description": "Of this\nrun."}]}},
            "/d": {"get": {"tags": ["events"], "summary": "Tells."}},
        }});
        let told = subjects(&document);
        let names: Vec<&str> = told.iter().map(|subject| subject.name.as_str()).collect();
        assert_eq!(names, ["Events", "Jobs"]);
        assert_eq!(told[0].calls[0].token, None);
        let [lease, say] = &told[1].calls[..] else {
            panic!("{told:?}");
        };
        assert_eq!(
            [lease.method.as_str(), &lease.path, &lease.summary],
            ["POST", "/b", "Leases a job."]
        );
        assert_eq!(lease.token.as_deref(), Some("contribute"));
        assert_eq!(say.token.as_deref(), Some("any"));
        assert_eq!(say.details.as_deref(), Some("More."));
        assert_eq!(say.parameters[0].meaning, "Of this run.");
    }

    #[test]
    fn every_call_of_the_document_is_told() {
        let calls = SUBJECTS.iter().flat_map(|subject| &subject.calls);
        assert!(calls.clone().count() > 40);
        for call in calls {
            assert!(!call.summary.is_empty(), "{call:?}");
            let meant = |parameter: &Parameter| !parameter.meaning.is_empty();
            assert!(call.parameters.iter().all(meant), "{call:?}");
        }
    }
}
