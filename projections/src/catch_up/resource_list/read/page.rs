//! Pages of the list.

use super::filter::{Filter, Key};
use super::{Answer, FIRST_ID, ListRow, Page, RawRow, ReadError, Reader, Scan, cut, find_row};
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, PgConnection, Postgres};

/// Above every kind and every name: the highest character there is.
const BEHIND_ALL: &str = "\u{10FFFF}";

/// How often a page is filled up after rows were left out. A list that lags far behind, in a rebuild for instance,
/// may name many that have moved on; then the page stays short and says where it ends.
const ROUNDS_MAX: usize = 4;

impl Reader {
    /// Up to `limit` resources behind `after`, in (kind, name, id) order.
    ///
    /// A page starts behind a *key*, not at an offset: resources that come or go between two pages shift
    /// nothing, so one that stays is shown exactly once.
    ///
    /// # Errors
    /// When the database fails or a head cannot be read.
    pub async fn page(
        &self,
        filter: &Filter,
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Answer<Page<ListRow, Key>>, ReadError> {
        let (mut tx, position) = self.snapshot_for(access(filter).scan()).await?;
        let mut page = Page { rows: Vec::new(), next: after.cloned() };
        let Some(access) = choose(&mut tx, filter).await? else {
            page.next = None;
            return Ok(Answer { position, value: page });
        };
        for _ in 0..ROUNDS_MAX {
            let wanted = limit.saturating_sub(u32::try_from(page.rows.len()).unwrap_or(u32::MAX));
            let (sql, arguments) = query(access, filter, page.next.as_ref(), wanted.saturating_add(1))?;
            let mut rows =
                sqlx::query_as_with::<Postgres, RawRow, _>(sql, arguments).fetch_all(&mut *tx).await?;
            page.next = cut(&mut rows, wanted, RawRow::key);
            let mut states = self.states(rows.iter()).await?;
            let states = rows.iter().filter_map(|row| states.remove(&row.id));
            page.rows.extend(states.filter(|state| filter.admits(state)).map(|state| ListRow { state }));
            if page.next.is_none() || page.rows.len() >= limit as usize {
                break;
            }
        }
        drop(tx);
        Ok(Answer { position, value: page })
    }

    /// The listed resource of that name; while an old one is still going away, the newer of the two.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub async fn find(&self, kind: &str, name: &str) -> Result<Answer<Option<ListRow>>, ReadError> {
        let (mut tx, position) = self.snapshot().await?;
        let row = find_row(&mut tx, kind, name).await?.map(|(row, _)| row);
        drop(tx);
        let state = self.states(row.iter()).await?.into_values().next();
        Ok(Answer { position, value: state.map(|state| ListRow { state }) })
    }
}

/// Resources in some phases, at most, that are looked up one by one to see whether they carry some labels.
const LOOKED_UP_MAX: i64 = 20_000;

/// The way into the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Name,
    Prefix,
    Phase,
    Label,
    Owner,
    Root,
}

impl Access {
    pub(super) const fn scan(self) -> Scan {
        match self {
            Self::Label => Scan::Inverted,
            Self::Name | Self::Prefix | Self::Phase | Self::Owner | Self::Root => Scan::Ordered,
        }
    }
}

/// The way that reads least, as far as the filter alone tells, phases beside something else aside.
pub(super) fn access(filter: &Filter) -> Access {
    if filter.owner.is_some() {
        Access::Owner
    } else if filter.root.is_some() {
        Access::Root
    } else if !filter.labels.is_empty() {
        Access::Label
    } else if !filter.phases.is_empty() {
        Access::Phase
    } else if filter.kind.is_none() && filter.name_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty()) {
        Access::Prefix
    } else {
        Access::Name
    }
}

/// The way that reads least. None: nothing can match.
///
/// A phase in a tree is found along the tree, looking up phases, or along the phase, looking up trees. Of every match, the first reads
/// `tree / here` rows and the second `everywhere / here` (if matches are spread evenly), and neither
/// more than `tree` or `everywhere`: the smaller one wins. In a tree of a million where nine have failed that is the
/// difference between nine look-ups and a million.
async fn choose(tx: &mut PgConnection, filter: &Filter) -> Result<Option<Access>, sqlx::Error> {
    let usual = access(filter);
    if filter.phases.is_empty() || usual == Access::Phase {
        return Ok(Some(usual));
    }
    let phases: Vec<&str> = filter.phases.iter().map(|phase| phase.as_str()).collect();
    let (everywhere, here, tree): (i64, i64, i64) = sqlx::query_as(include_str!("../weigh.sql"))
        .bind(phases)
        .bind(&filter.kind)
        .bind(filter.root.map(|id| id.0))
        .bind(filter.owner.map(|id| id.0))
        .fetch_one(tx)
        .await?;
    Ok(match usual {
        Access::Label if everywhere <= LOOKED_UP_MAX => Some(Access::Phase),
        Access::Owner | Access::Root if here == 0 => None,
        Access::Owner | Access::Root if everywhere <= tree => Some(Access::Phase),
        _ => Some(usual),
    })
}

/// The query for a filter by some way. All share one parameter list.
pub(super) fn query(
    access: Access,
    filter: &Filter,
    after: Option<&Key>,
    limit: u32,
) -> Result<(&'static str, PgArguments), sqlx::Error> {
    let sql = match access {
        Access::Name => include_str!("../page_by_name.sql"),
        Access::Prefix => include_str!("../page_by_prefix.sql"),
        Access::Phase => include_str!("../page_by_phase.sql"),
        Access::Label => include_str!("../page_by_label.sql"),
        Access::Owner => include_str!("../page_by_owner.sql"),
        Access::Root => include_str!("../page_by_root.sql"),
    };

    let prefix = filter.name_prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let prefix_end = prefix.map(|prefix| format!("{prefix}{BEHIND_ALL}"));
    // Within one kind the order is that of names: a page starts no earlier than the one before it ended.
    let after_name =
        after.filter(|after| filter.kind.as_ref() == Some(&after.kind)).map(|after| after.name.as_str());
    let least = prefix.max(after_name);
    let start = after.cloned().unwrap_or_else(|| Key {
        kind: filter.kind.clone().unwrap_or_default(),
        name: String::new(),
        id: FIRST_ID,
    });
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
        arguments.add(&filter.kind)?;
        arguments.add(&labels)?;
        arguments.add(&phases)?;
        arguments.add(filter.owner.map(|id| id.0))?;
        arguments.add(filter.root.map(|id| id.0))?;
        arguments.add(least)?;
        arguments.add(&prefix_end)?;
        arguments.add(i64::from(limit))
    };
    add().map_err(sqlx::Error::Encode)?;
    Ok((sql, arguments))
}
