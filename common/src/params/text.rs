//! Parameters as people write them: TOML or JSON, each name one that there is, each value in its
//! range.
//!
//! What comes over the API may hold names of a newer version; what a person has written may not: an
//! unknown name there is a typo, and would leave a default in force without a word.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::range::ParamsError;
use super::run::RunParams;
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
    /// It names something that is not a parameter; the name as a dotted path.
    #[error("{0:?} is no parameter; docs/parameters.md lists them all")]
    Unknown(String),
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
        let params: Self = read(text)?;
        params.check()?;
        params.check_effect()?;
        Ok(params)
    }

    /// A text of which [`Self::from_text`] makes these parameters again: TOML, or JSON where TOML
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
    /// Training parameters from the text of a run's file, of which `[training]` counts, or of a file
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
        let params: Self = read(text)?;
        params.check()?;
        Ok(params)
    }
}

/// Parameters all of whose names are known.
fn read<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, TextError> {
    let (params, given): (T, Value) = (parse(text)?, parse(text)?);
    match unknown_name(&given, &tree(&params)?) {
        None => Ok(params),
        Some(name) => Err(TextError::Unknown(name)),
    }
}

/// No TOML begins with a brace, and the JSON of parameters does.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TextError> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| TextError::Json(error.to_string()))
    } else {
        toml::from_str(text).map_err(|error| TextError::Toml(error.to_string()))
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
        (_, Some(_)) => None,
        (_, None) => Some(name.clone()),
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
            ("[training]\nbatch_size = \"big\"", "line 2"),
            ("{\"training\": {\"batch_size\": \"big\"}}", "column"),
            ("selfplay", "line 1"),
        ] {
            let refused = RunParams::from_text(text).unwrap_err().to_string();
            assert!(refused.contains(error), "{text}: {refused}");
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
