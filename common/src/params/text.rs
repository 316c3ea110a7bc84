//! Parameters as people write them: TOML or JSON, each name one that there is, each value in its
//! range.
//!
//! What comes over the API may hold names of a newer version; what a person has written may not: an
//! unknown name there is a typo, and would leave a default in force without a word.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::mistakes::{nearest_name, outside_type};
use super::range::ParamsError;
use super::run::RunParams;
use super::search::SearchParams;
use super::training::TrainingParams;

/// A text that is no set of parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It is no TOML, or a value is of the wrong kind.
    #[error("{0}")]
    Toml(String),
    /// It is no JSON, or a value is of the wrong kind.
    #[error("JSON parse error: {0}")]
    Json(String),
    /// It names something that is not a parameter; names as dotted paths.
    #[error(
        "{name:?} is no parameter{}; docs/parameters.md lists them all",
        nearest.as_ref().map(|name| format!(", did you mean {name:?}?")).unwrap_or_default()
    )]
    Unknown {
        /// The name.
        name: String,
        /// The parameter whose name is most like it, if one is.
        nearest: Option<String>,
    },
    /// A parameter is outside its range, or can have no effect.
    #[error(transparent)]
    Range(#[from] ParamsError),
}

impl RunParams {
    /// Parameters of a run from the text of a file, TOML or, if it begins with a brace, JSON. What
    /// it does not name has its default.
    ///
    /// # Errors
    ///
    /// [`TextError`], the first thing that is wrong.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let mut params = read(text, Self::check)?;
        // A message that does not name it is older than it; a file is not.
        let given: Value = parse(text)?;
        for (place, search) in [
            ("/selfplay/search/solver", &mut params.selfplay.search),
            ("/puzzle/search/solver", &mut params.puzzle.search),
            ("/matches/search/solver", &mut params.matches.search),
        ] {
            if given.pointer(place).is_none() {
                search.solver = SearchParams::default().solver;
            }
        }
        params.check_effect()?;
        // It never counts, and a file that names another part of the search would seem to ask for it.
        params.matches.search.noise = None;
        Ok(params)
    }

    /// A text that [`Self::from_text`] reads as these parameters: TOML, or JSON where TOML
    /// cannot tell them, as it has no word for a parameter that is left out and has a default.
    ///
    /// # Errors
    ///
    /// [`TextError::Json`] if there is no such text.
    pub fn to_text(&self) -> Result<String, TextError> {
        if let Ok(text) = toml::to_string(self)
            && Self::from_text(&text).is_ok_and(|read| read.means(self))
        {
            return Ok(text);
        }
        serde_json::to_string_pretty(self).map_err(|error| TextError::Json(error.to_string()))
    }

    /// Whether these are the same parameters, but for the noise of matches, which never counts.
    fn means(mut self, other: &Self) -> bool {
        self.matches.search.noise = other.matches.search.noise.clone();
        self == *other
    }
}

impl TrainingParams {
    /// Training parameters from the `[training]` section of a run's file, or from the text of a file
    /// that holds nothing but training parameters. As no section of a run has the name of a training
    /// parameter, a file that names a section is a run's.
    ///
    /// # Errors
    ///
    /// [`TextError`], the first thing that is wrong.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let sections = tree(&RunParams::default())?;
        let given: Value = parse(text)?;
        if names(&given).any(|name| sections.get(name).is_some()) {
            return Ok(RunParams::from_text(text)?.training);
        }
        read(text, Self::check)
    }
}

/// Parameters all of whose names are known, and all of whose values are in their ranges.
fn read<T: DeserializeOwned + Serialize + Default>(
    text: &str,
    check: impl Fn(&T) -> Result<(), ParamsError>,
) -> Result<T, TextError> {
    let given: Value = parse(text)?;
    let params: T = parse(text).map_err(|error| match outside_type(&given, &check) {
        Some(range) => TextError::Range(range),
        None => error,
    })?;
    let understood = tree(&params)?;
    if let Some(name) = unknown_name(&given, &understood) {
        let nearest = nearest_name(&name, &understood);
        return Err(TextError::Unknown { name, nearest });
    }
    check(&params)?;
    Ok(params)
}

/// No TOML begins with a brace, and the JSON of parameters does.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    // People know no types of Rust.
    let said = |error: String| error.replace("expected u32", "expected a whole number");
    let said = |error: String| said(error).replace("expected u64", "expected a whole number");
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| TextError::Json(said(error.to_string())))
    } else {
        toml::from_str(text).map_err(|error| TextError::Toml(said(error.to_string())))
    }
}

fn tree(params: &impl Serialize) -> Result<Value, TextError> {
    serde_json::to_value(params).map_err(|error| TextError::Json(error.to_string()))
}

fn names(given: &Value) -> impl Iterator<Item = &String> {
    given
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
}

/// The first name in `given` that was lost on the way to the parameters.
fn unknown_name(given: &Value, understood: &Value) -> Option<String> {
    names(given).find_map(|name| match (given.get(name), understood.get(name)) {
        (Some(value), Some(inner)) if inner.is_object() => {
            unknown_name(value, inner).map(|rest| format!("{name}.{rest}"))
        }
        (Some(value), Some(inner)) => lost_item(value, inner).map(|rest| format!("{name}{rest}")),
        (_, None) => Some(name.clone()),
        (None, Some(_)) => None,
    })
}

/// The place of the first item of a list, or of a list in it, that was lost. TOML's reader drops what a pair has too many.
fn lost_item(given: &Value, understood: &Value) -> Option<String> {
    let (given, understood) = (given.as_array()?, understood.as_array()?);
    given.iter().enumerate().find_map(|(place, item)| {
        let rest = match understood.get(place) {
            Some(inner) => lost_item(item, inner)?,
            None => String::new(),
        };
        Some(format!("[{place}]{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_toml_and_json() {
        let toml = RunParams::from_text("[selfplay.search]\nvisits = 32\n").unwrap();
        let json = RunParams::from_text("\n {\"selfplay\": {\"search\": {\"visits\": 32}}}");
        assert_eq!(toml, json.unwrap());
        assert_eq!(toml.selfplay.search.visits, 32);
        assert_eq!(toml.matches, RunParams::default().matches);
        assert_eq!(RunParams::from_text("").unwrap(), RunParams::default());
    }

    #[test]
    fn the_solver_is_on_in_files_and_off_in_messages_of_before_it() {
        let text = "{\"selfplay\": {\"search\": {\"visits\": 32}}}";
        let of = |params: &RunParams| (params.selfplay.search.solver, params.puzzle.search.solver);
        assert_eq!(of(&RunParams::from_text(text).unwrap()), (true, true));
        assert_eq!(of(&serde_json::from_str(text).unwrap()), (false, true));
        let off = "[selfplay.search]\nsolver = false\n";
        assert_eq!(of(&RunParams::from_text(off).unwrap()), (false, true));
    }

    #[test]
    fn parameters_are_written_as_they_are_read() {
        let mut params = RunParams::default();
        params.scheduling.puzzle_share = 0.3;
        params.rollback = Some(0.999);
        let text = params.to_text().unwrap();
        assert!(text.contains("puzzle_share = 0.3\n"), "{text}");
        assert!(text.contains("[training.window]"), "{text}");
        assert!(
            RunParams::from_text(&text).unwrap().means(&params),
            "{text}"
        );
        params.training.gradient_clip = None;
        let text = params.to_text().unwrap();
        assert!(text.starts_with('{'), "TOML has no null: {text}");
        assert_eq!(RunParams::from_text(&text).unwrap(), params);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_name() {
        for (text, error) in [
            ("[selfplay.search]\nvisit = 32", "\"selfplay.search.visit\""),
            ("[selfplay.root]\nkind = \"puct\"", "\"selfplay.root\""),
            ("{\"trainig\": {}}", "\"trainig\""),
            (
                "[gate]\nkind = \"none\"\nmax_pairs = 5",
                "\"gate.max_pairs\"",
            ),
            (
                "[selfplay.search]\nvisits = 0",
                "selfplay.search.visits is 0",
            ),
            (
                "[training]\ngrow = [[0, \"4x32\"], [5, \"6x64\", 9]]",
                "\"training.grow[1][2]\" is no parameter",
            ),
            (
                "[training.learning_rate]\ndrops = [[10, 0.1, 0.5]]",
                "\"training.learning_rate.drops[0][2]\"",
            ),
            ("[training]\nbatch_size = \"big\"", "line 2"),
            ("{\"training\": {\"batch_size\": \"big\"}}", "column"),
            ("selfplay", "line 1"),
            (
                "[selfplay.search]\nvisits = \"many\"",
                "expected a whole number",
            ),
            ("{\"training\": {\"batch_size\": 1.5}}", "a whole number"),
        ] {
            let refused = RunParams::from_text(text).unwrap_err().to_string();
            assert!(refused.contains(error), "{text}: {refused}");
        }
    }

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest_one() {
        for (text, nearest) in [
            ("[selfplay.search]\nvisit = 32", "selfplay.search.visits"),
            ("[selfplay]\nvisits = 32", "selfplay.search.visits"),
            ("[selfplay]\nvisitz = 32", "selfplay.search.visits"),
            ("{\"trainig\": {}}", "training"),
            ("[training]\nbatchsize = 32", "training.batch_size"),
            ("[match.search]\nvisits = 32", "matches"),
            ("batch_size = 32", "training.batch_size"),
        ] {
            let refused = RunParams::from_text(text).unwrap_err().to_string();
            let expected = format!("is no parameter, did you mean {nearest:?}?");
            assert!(refused.contains(&expected), "{text}: {refused}");
        }
        let refused = RunParams::from_text("zyxwv = 1").unwrap_err().to_string();
        assert!(!refused.contains("did you mean"), "{refused}");
    }

    #[test]
    fn numbers_that_no_type_holds_are_answered_with_the_range() {
        for (text, error) in [
            (
                "[selfplay.search]\nvisits = -3",
                "selfplay.search.visits is -3, allowed is 2 to ",
            ),
            (
                "{\"selfplay\": {\"search\": {\"visits\": 99999999999}}}",
                "selfplay.search.visits is 99999999999, allowed is 2 to ",
            ),
            (
                "[scheduling]\njob_seconds = -1",
                "scheduling.job_seconds is -1, allowed is 10 to 3600",
            ),
            (
                "[gate]\nkind = \"sprt\"\nmax_pairs = -5\nparams = { elo0 = -5, elo1 = 5, alpha = 0.05, \
                 beta = 0.05 }",
                "gate.max_pairs is -5, allowed is 1 to ",
            ),
            (
                "[selfplay]\nopening_plies = -2",
                "selfplay.opening_plies is -2, allowed is 0 to ",
            ),
        ] {
            let refused = RunParams::from_text(text).unwrap_err().to_string();
            assert!(refused.starts_with(error), "{text}: {refused}");
        }
        let refused = TrainingParams::from_text("batch_size = -1").unwrap_err();
        assert!(
            refused.to_string().starts_with("batch_size is -1, allowed"),
            "{refused}"
        );
    }

    #[test]
    fn both_spellings_of_the_model_are_taken() {
        for word in ["normalised", "normalized"] {
            let text = format!(
                "[gate]\nkind = \"sprt\"\nmax_pairs = 5\nparams = {{ elo0 = 0, elo1 = 5, alpha = 0.05, beta = 0.05, \
                 model = \"{word}\" }}\n"
            );
            let params = RunParams::from_text(&text).unwrap();
            let written = serde_json::to_string(&params.gate).unwrap();
            assert!(written.contains("\"normalised\""), "{written}");
        }
    }

    #[test]
    fn a_search_that_could_never_end_early_is_refused_but_runs_that_have_it_go_on() {
        for section in ["selfplay.search", "puzzle.search", "matches.search"] {
            let text = format!("[{section}]\nkld_stop = {{ interval = 60 }}\n");
            let error = RunParams::from_text(&text).unwrap_err().to_string();
            let expected =
                "kld_stop.interval is 60, allowed is at most half of the visits, which are 100";
            assert_eq!(error, format!("{section}.{expected}"));
            for more in ["visits = 120\n", "root = { kind = \"gumbel\" }\n"] {
                let read = RunParams::from_text(&(text.clone() + more));
                assert!(read.is_ok(), "{section}: {read:?}");
            }
            let of_run: RunParams = toml::from_str(&text).unwrap();
            assert_eq!(of_run.check(), Ok(()), "{section}");
        }
    }

    #[test]
    fn training_parameters_come_from_a_runs_file_or_their_own() {
        let of_run = "rollback = 0.99\n[training]\nbatch_size = 32\n";
        for text in [of_run, "batch_size = 32", "{\"batch_size\": 32}"] {
            let params = TrainingParams::from_text(text).unwrap();
            assert_eq!(params.batch_size, 32, "{text}");
        }
        let other = "[gate]\nkind = \"none\"\n";
        assert_eq!(
            TrainingParams::from_text(other).unwrap(),
            TrainingParams::default()
        );
        for (text, error) in [
            (
                "batch_size = 32\n[training]\nema_decay = 0.5",
                "\"batch_size\"",
            ),
            ("bach_size = 32", "\"bach_size\""),
            ("[training]\nbach_size = 32", "\"training.bach_size\""),
            ("[window]\nmin = 0", "window.min is 0"),
            ("[training.window]\nmin = 0", "training.window.min is 0"),
        ] {
            let refused = TrainingParams::from_text(text).unwrap_err().to_string();
            assert!(refused.starts_with(error), "{text}: {refused}");
        }
    }

    #[test]
    fn the_files_of_deploy_are_parameters() {
        for run in [
            include_str!("../../../deploy/runs/demo.toml"),
            include_str!("../../../deploy/runs/from-zero.toml"),
            include_str!("../../../deploy/runs/from-zero-2.toml"),
            include_str!("../../../deploy/runs/from-zero-3.toml"),
            include_str!("../../../deploy/runs/after-warm-start.toml"),
        ] {
            RunParams::from_text(run).unwrap();
        }
        for plan in [
            include_str!("../../../deploy/runs/ablation.toml"),
            include_str!("../../../deploy/runs/training-ablation.toml"),
        ] {
            let mut plan: toml::Table = toml::from_str(plan).unwrap();
            let Some(toml::Value::Table(mut arms)) = plan.remove("arms") else {
                panic!("a plan has arms")
            };
            arms.extend(plan);
            assert!(arms.len() > 2);
            for (name, mut params) in arms {
                // Words for the making of the first network.
                params.as_table_mut().unwrap().remove("init");
                let text = toml::to_string(&params).unwrap();
                let read = RunParams::from_text(&text);
                assert!(read.is_ok(), "{name}: {read:?}");
            }
        }
    }

    #[test]
    fn no_section_of_a_run_has_the_name_of_a_training_parameter() {
        let sections = tree(&RunParams::default()).unwrap();
        let training = tree(&TrainingParams::default()).unwrap();
        assert!(names(&training).all(|name| sections.get(name).is_none()));
    }
}
