//! Which devices compute, as `--device` names them.

use std::fmt;
use std::str::FromStr;

use rookery_engine::DeviceChoice;

/// The devices that compute side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelection {
    /// One, or what measures fastest.
    One(DeviceChoice),
    /// GPUs of these numbers, at least two, each named once.
    Gpus(Vec<usize>),
    /// All GPUs that are hardware.
    AllGpus,
}

impl Default for DeviceSelection {
    fn default() -> Self {
        Self::One(DeviceChoice::Auto)
    }
}

impl FromStr for DeviceSelection {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == "gpu:all" {
            return Ok(Self::AllGpus);
        }
        let mut numbers = Vec::new();
        for name in text.split(',') {
            let device = name.trim().parse()?;
            let DeviceChoice::Gpu(number) = device else {
                anyhow::ensure!(
                    !text.contains(','),
                    "{name:?} cannot compute beside other devices; write a list of GPUs such as gpu:0,gpu:1, or gpu:all"
                );
                return Ok(Self::One(device));
            };
            anyhow::ensure!(
                !numbers.contains(&number),
                "gpu:{number} is named twice in {text:?}"
            );
            numbers.push(number);
        }
        Ok(match numbers[..] {
            [number] => Self::One(DeviceChoice::Gpu(number)),
            _ => Self::Gpus(numbers),
        })
    }
}

impl fmt::Display for DeviceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(device) => device.fmt(f),
            Self::AllGpus => f.write_str("gpu:all"),
            Self::Gpus(numbers) => {
                let names = numbers.iter().map(|number| format!("gpu:{number}"));
                f.write_str(&names.collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_read_as_they_are_written() {
        for text in ["auto", "cpu", "cuda:1", "gpu:3", "gpu:0,gpu:2", "gpu:all"] {
            let selection: DeviceSelection = text.parse().unwrap();
            assert_eq!(selection.to_string(), text);
        }
        let spaced: DeviceSelection = "gpu, gpu:1".parse().unwrap();
        assert_eq!(spaced, DeviceSelection::Gpus(vec![0, 1]));
        for (text, named) in [
            ("tpu", "\"tpu\""),
            ("gpu:0,", "\"\""),
            ("gpu:0,cpu", "\"cpu\""),
            ("cpu,gpu:0", "\"cpu\""),
            ("gpu:0,gpu:all", "\"gpu:all\""),
            ("gpu:1,gpu:1", "named twice"),
        ] {
            let error = text.parse::<DeviceSelection>().unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
