//! Pages of the list.

use super::filter::{Filter, Key};
use super::{Answer, FIRST_ID, ListRow, RawRow, Reader, find_row};
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, Postgres};

/// Above every kind and every name: the highest character there is.
const BEHIND_ALL: &str = "\u{10FFFF}";

impl Reader {
    /// Up to `limit` resources behind `after`, in (kind, name, id) order.
    ///
    /// A page starts behind a *key*, not at an offset: resources that come or go between two pages shift
    /// nothing, so one that stays is shown exactly once.
    ///
    /// # Errors
    /// When the database fails or a stored state cannot be read.
    pub async fn page(
        &self,
        filter: &Filter,
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Answer<Vec<ListRow>>, sqlx::Error> {
        let (mut tx, position) = self.snapshot().await?;
        let (sql, arguments) = query(filter, after, limit)?;
        // Not persistent: a prepared statement might settle on a generic plan, which could not see that an
        // absent filter filters nothing and might leave the index this query was chosen for.
        let rows = sqlx::query_as_with::<Postgres, RawRow, _>(sql, arguments)
            .persistent(false)
            .fetch_all(&mut *tx)
            .await?;
        tx.commit().await?;
        let value = rows.iter().map(RawRow::decode).collect::<Result<_, _>>()?;
        Ok(Answer { position, value })
    }

    /// The listed resource of that name; while an old one is still going away, the newer of the two.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub async fn find(&self, kind: &str, name: &str) -> Result<Answer<Option<ListRow>>, sqlx::Error> {
        let (mut tx, position) = self.snapshot().await?;
        let row = find_row(&mut tx, kind, name).await?;
        tx.commit().await?;
        Ok(Answer { position, value: row.map(|row| row.decode()).transpose()? })
    }
}

/// The query for a filter: the one whose index narrows most, by what is given. All share one parameter list.
pub(super) fn query(
    filter: &Filter,
    after: Option<&Key>,
    limit: u32,
) -> Result<(&'static str, PgArguments), sqlx::Error> {
    let sql = if filter.owner.is_some() {
        include_str!("../page_by_owner.sql")
    } else if filter.root.is_some() {
        include_str!("../page_by_root.sql")
    } else if !filter.labels.is_empty() {
        include_str!("../page_by_label.sql")
    } else if !filter.phases.is_empty() {
        include_str!("../page_by_phase.sql")
    } else {
        include_str!("../page_by_name.sql")
    };

    // One kind is a range of the order, and a name prefix within it a narrower one. Without a kind the
    // prefix is no range, so it filters instead.
    let prefix = filter.name_prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let prefix_end = prefix.map(|prefix| format!("{prefix}{BEHIND_ALL}"));
    let start = Key {
        kind: filter.kind.clone().unwrap_or_default(),
        name: filter.kind.as_ref().and(prefix).unwrap_or_default().to_owned(),
        id: FIRST_ID,
    };
    let start = after.map_or_else(|| start.clone(), |after| after.clone().max(start.clone()));
    let (kind_end, name_end) = match &filter.kind {
        Some(kind) => (kind.as_str(), prefix_end.as_deref().unwrap_or(BEHIND_ALL)),
        None => (BEHIND_ALL, ""),
    };
    let labels = if filter.labels.is_empty() {
        None
    } else {
        Some(serde_json::to_value(&filter.labels).map_err(|error| sqlx::Error::Encode(error.into()))?)
    };
    let phases = (!filter.phases.is_empty())
        .then(|| filter.phases.iter().map(|phase| phase.as_str().to_owned()).collect::<Vec<String>>());

    let mut arguments = PgArguments::default();
    let mut add = || {
        arguments.add(&start.kind)?;
        arguments.add(&start.name)?;
        arguments.add(start.id.0)?;
        arguments.add(kind_end)?;
        arguments.add(name_end)?;
        arguments.add(&labels)?;
        arguments.add(&phases)?;
        arguments.add(filter.owner.map(|id| id.0))?;
        arguments.add(filter.root.map(|id| id.0))?;
        arguments.add(prefix)?;
        arguments.add(&prefix_end)?;
        arguments.add(i64::from(limit))
    };
    add().map_err(sqlx::Error::Encode)?;
    Ok((sql, arguments))
}
