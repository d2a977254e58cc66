//! Children of many owners in one query, so that a list with children costs two queries and not a thousand.

use super::{Answer, FIRST_ID, Key, ListRow, RawRow, Reader};
use converge_domain::ResourceId;
use std::collections::HashMap;
use uuid::Uuid;

#[derive(sqlx::FromRow)]
struct ChildRow {
    parent: Uuid,
    #[sqlx(flatten)]
    row: RawRow,
}

impl Reader {
    /// Per owner up to `limit` direct children behind `after`, in (kind, name, id) order. Owners without
    /// children are absent.
    ///
    /// # Errors
    /// As [`Reader::page`].
    pub async fn children(
        &self,
        owners: &[ResourceId],
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Answer<HashMap<ResourceId, Vec<ListRow>>>, sqlx::Error> {
        let (mut tx, position) = self.snapshot().await?;
        let owners: Vec<Uuid> = owners.iter().map(|id| id.0).collect();
        let rows = sqlx::query_as::<_, ChildRow>(include_str!("../children.sql"))
            .bind(&owners)
            .bind(after.map_or("", |key| &key.kind))
            .bind(after.map_or("", |key| &key.name))
            .bind(after.map_or(FIRST_ID, |key| key.id).0)
            .bind(i64::from(limit))
            .fetch_all(&mut *tx)
            .await?;
        tx.commit().await?;
        let mut value: HashMap<ResourceId, Vec<ListRow>> = HashMap::new();
        for child in rows {
            value.entry(ResourceId(child.parent)).or_default().push(child.row.decode()?);
        }
        // The query orders within each owner but promises nothing across the lateral join.
        for children in value.values_mut() {
            children.sort_by_key(ListRow::key);
        }
        Ok(Answer { position, value })
    }
}
