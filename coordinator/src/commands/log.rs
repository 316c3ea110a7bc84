//! `log`: what operators did.

use anyhow::Context as _;
use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use rookery_common::protocol::people::OperatorAct;

use super::{say, say_json, with_database};
use crate::config::Settings;
use crate::db::LogFilter;

/// `log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Show only what this one did: a user's name, or "command line".
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Show only such acts, for example change-run or block-user.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Show only what was done since: a time such as 2026-11-20T14:00:00Z, a day (2026-11-20), or how long
    /// ago (7d, 12h).
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Show at most this many entries, the newest.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
    /// Print a JSON array.
    #[arg(long)]
    pub json: bool,
}

/// Shows the operator log, the newest entry first.
pub async fn run(settings: &Settings, args: LogArgs) -> anyhow::Result<()> {
    let since = args.since.as_deref();
    let since = since
        .map(|text| moment(text, Timestamp::now()))
        .transpose()?;
    let filter = LogFilter {
        before: None,
        actor: args.actor,
        action: args.action,
        since,
        limit: args.limit,
    };
    let acts = with_database(settings, async |db| Ok(db.operator_log(filter).await?)).await?;
    if args.json {
        return say_json(&acts);
    }
    acts.iter().try_for_each(|act| say(&line(act)))
}

/// An entry; what changed is below it, a line each.
fn line(act: &OperatorAct) -> String {
    let at = act.at.get(..19).unwrap_or(&act.at).replace('T', " ");
    let head = format!("{at}  {:16}  {:17}  {}", act.actor, act.action, act.subject);
    if act.changes.is_empty() {
        return format!("{head}  {}", act.detail).trim_end().to_owned();
    }
    let changes = act.changes.iter().map(|change| format!("\n    {change}"));
    head + &changes.collect::<String>()
}

/// A moment, a day, or how long before `now`.
fn moment(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(day) = text.parse::<Date>() {
        return Ok(day.to_zoned(TimeZone::UTC)?.timestamp());
    }
    let ago = text.parse::<Span>().ok();
    let then = ago.and_then(|ago| now.to_zoned(TimeZone::UTC).checked_sub(ago).ok());
    then.map(|then| then.timestamp()).with_context(|| {
        format!("{text:?} is no time: write 2026-11-20T14:00:00Z, 2026-11-20, or how long ago, such as 7d or 12h")
    })
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::people::Change;

    use super::*;

    #[test]
    fn moments_are_times_days_and_spans() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-20T14:00:00Z", "2026-11-20T14:00:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("7d", "2026-11-18T12:00:00Z"),
            ("90 minutes", "2026-11-25T10:30:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(moment(text, now).unwrap(), expected, "{text}");
        }
        let error = moment("yesterday", now).unwrap_err().to_string();
        assert!(error.contains("2026-11-20"), "{error}");
    }

    #[test]
    fn a_change_is_shown_entry_by_entry() {
        let act = OperatorAct {
            id: 1,
            at: "2026-11-25T12:00:00.123Z".to_owned(),
            actor: "ann".to_owned(),
            action: "change-run".to_owned(),
            subject: "main".to_owned(),
            detail: "params.a: 1 → 2".to_owned(),
            changes: vec![Change {
                key: "params.a".to_owned(),
                from: Some("1".to_owned()),
                to: Some("2".to_owned()),
            }],
        };
        let shown = line(&act);
        assert!(shown.starts_with("2026-11-25 12:00:00  ann"), "{shown}");
        assert!(shown.ends_with("main\n    params.a: 1 → 2"), "{shown}");
    }
}
