//! What a worker says when it has its first job: for whom it plays, whom to write to, where its games are counted.

use std::time::Duration;

use rookery_common::ids::RunName;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::server::{CONTACT_CHARS, TITLE_CHARS};
use rookery_common::protocol::trust::TrustLevel;
use rookery_common::text::{is_blank, printable};

use super::Shared;

/// How long the coordinator may take to say this.
const PATIENCE: Duration = Duration::from_secs(30);

/// Logs it all, as far as the coordinator tells it.
pub(super) async fn log(shared: &Shared, run: &RunName) {
    let server = shared.client.server();
    let (runs, trust) = tokio::join!(
        tokio::time::timeout(PATIENCE, shared.client.runs()),
        tokio::time::timeout(PATIENCE, shared.client.trust()),
    );
    if let Ok(Ok(runs)) = runs {
        let info = runs.iter().find(|info| info.name == *run);
        if let Some(words) = info.and_then(words) {
            tracing::info!("{words}");
        }
    }
    match trust {
        Ok(Ok(trust)) if trust.level == TrustLevel::Quarantined => {
            // The notice that comes with the job says why.
            tracing::info!("see what is held back: {}", server.page("trust"));
        }
        _ => {
            let page = server.page(&shared.owner.page(run));
            tracing::info!("see your games counted: {page}");
        }
    }
}

/// The run's title and whom to write to, if its operator has set them.
fn words(info: &RunInfo) -> Option<String> {
    let set = |text: &Option<String>, most: usize| {
        let text = text.as_deref().map(|text| printable(text, most));
        text.filter(|text| !is_blank(text))
    };
    let title = set(&info.title, TITLE_CHARS);
    let contact = set(&info.contact, CONTACT_CHARS);
    let contact = contact.map(|contact| format!("questions to {contact}"));
    let words: Vec<String> = title.into_iter().chain(contact).collect();
    (!words.is_empty()).then(|| format!("run {}: {}", info.name, words.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(title: Option<&str>, contact: Option<&str>) -> RunInfo {
        let run = json!({
            "name": "main", "title": title, "contact": contact, "description": "", "status": "open",
            "params": {}, "networks": 0, "games": 0, "training_positions": 0, "positions": 0, "chunks": 0,
            "chunk_bytes": 0, "created_at": "",
        });
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn a_run_is_introduced_by_what_its_operator_has_set() {
        for (title, contact, expected) in [
            (None, None, None),
            (Some(" "), Some(""), None),
            (Some("The Den"), None, Some("run main: The Den")),
            (None, Some("a@b"), Some("run main: questions to a@b")),
            (
                Some("D\u{1b}[2Jen"),
                Some("a@b"),
                Some("run main: D[2Jen; questions to a@b"),
            ),
        ] {
            assert_eq!(words(&run(title, contact)).as_deref(), expected);
        }
    }
}
