//! Answers on stdout, in the form that was asked for.

pub mod age;
pub mod story;
pub mod table;
pub mod view;

use clap::ValueEnum;

/// `-o` for things.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Columns for a human.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// One JSON document; stable.
    Json,
    /// YAML; several things are several documents.
    Yaml,
    /// TYPE/NAME, one a line.
    Name,
}

/// `value` as YAML text without the final line break.
///
/// # Errors
/// Never for JSON values; serde's signature keeps the possibility.
pub fn yaml(value: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_yaml_ng::to_string(value)?.trim_end().to_owned())
}
