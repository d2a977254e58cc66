//! Children of many owners in one query, so that a list with children costs two queries and not a thousand.

use super::{Answer, FIRST_ID, Key, ListRow, Page, RawRow, ReadError, Reader, cut};
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
    ) -> Result<Answer<HashMap<ResourceId, Page<ListRow, Key>>>, ReadError> {
        let (mut tx, position) = self.snapshot().await?;
        let owners: Vec<Uuid> = owners.iter().map(|id| id.0).collect();
        let rows = sqlx::query_as::<_, ChildRow>(include_str!("../children.sql"))
            .bind(&owners)
            .bind(after.map_or("", |key| &key.kind))
            .bind(after.map_or("", |key| &key.name))
            .bind(after.map_or(FIRST_ID, |key| key.id).0)
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *tx)
            .await?;
        drop(tx);
        let mut states = self.states(rows.iter().map(|child| &child.row)).await?;
        let mut raw: HashMap<ResourceId, Vec<RawRow>> = HashMap::new();
        for child in rows {
            raw.entry(ResourceId(child.parent)).or_default().push(child.row);
        }
        let mut value = HashMap::with_capacity(raw.len());
        for (owner, mut children) in raw {
            // The query orders within each owner but promises nothing across the lateral join.
            children.sort_by_cached_key(RawRow::key);
            let next = cut(&mut children, limit, RawRow::key);
            let live = children.iter().filter_map(|row| states.remove(&row.id));
            value.insert(owner, Page { rows: live.map(|state| ListRow { state }).collect(), next });
        }
        Ok(Answer { position, value })
    }
}
