//! Phase counts.

use super::{Answer, ReadError, Reader};
use converge_domain::ResourceId;
use converge_domain::resource::Phase;

/// How many resources of a kind are in a phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseTally {
    pub kind: String,
    pub phase: Phase,
    pub count: u64,
}

impl Reader {
    /// Phase counts by kind: of one tree, or of everything. Zeros are left out.
    ///
    /// # Errors
    /// As [`Reader::page`].
    pub async fn tally(&self, root: Option<ResourceId>) -> Result<Answer<Vec<PhaseTally>>, ReadError> {
        let (mut tx, position) = self.snapshot().await?;
        let query = match root {
            Some(root) => sqlx::query_as(include_str!("../tally_root.sql")).bind(root.0),
            None => sqlx::query_as(include_str!("../tally_all.sql")),
        };
        let rows: Vec<(String, String, i64)> = query.fetch_all(&mut *tx).await?;
        drop(tx);
        let value = rows
            .into_iter()
            .map(|(kind, phase, count)| {
                let phase = phase.parse().map_err(|error: String| sqlx::Error::Decode(error.into()))?;
                Ok(PhaseTally { kind, phase, count: count.unsigned_abs() })
            })
            .collect::<Result<_, sqlx::Error>>()?;
        Ok(Answer { position, value })
    }
}
