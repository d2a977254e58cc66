//! Which SQL ran and what it cost, by the server's own count: per statement where `pg_stat_statements` is loaded, else
//! as a number of transactions.

use std::collections::HashMap;

use serde::Serialize;
use sqlx::{Connection, PgConnection, Row};

use super::super::server::BenchServer;

/// How many statements are named.
const TOP: usize = 10;
/// How much of a statement's text is shown.
const TEXT_CHARS: usize = 160;

/// The statements of a span.
#[derive(Debug, Clone, Serialize)]
pub struct Statements {
    /// `pg_stat_statements`, or `pg_stat_database`, whose unit is a transaction and which is a second late.
    pub source: &'static str,
    /// Statements that clients sent; functions' own statements are not among them.
    pub total: i64,
    pub per_resource: f64,
    /// Those with the highest total execution time; empty where only transactions are known.
    pub top: Vec<Statement>,
}

/// One statement, its constants aside.
#[derive(Debug, Clone, Serialize)]
pub struct Statement {
    pub calls: i64,
    pub rows: i64,
    pub total_ms: f64,
    pub mean_ms: f64,
    /// False: a function ran it, and the function's own time includes it.
    pub toplevel: bool,
    pub query: String,
}

/// What was counted up to a moment.
pub enum Counted {
    Statements(HashMap<(String, bool), Statement>),
    Transactions(i64),
}

impl Counted {
    /// Counts up to now.
    pub async fn now(server: &BenchServer) -> anyhow::Result<Self> {
        let mut connection = server.connect().await?;
        let counted = if server.counts_statements() {
            Self::Statements(statements(&mut connection).await?)
        } else {
            Self::Transactions(transactions(&mut connection).await?)
        };
        connection.close().await?;
        Ok(counted)
    }

    /// What came since `before`.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub fn since(self, before: &Self, resources: u32) -> Statements {
        let per_resource = |total: i64| total as f64 / f64::from(resources.max(1));
        match (self, before) {
            (Self::Statements(now), Self::Statements(before)) => {
                let mut spent: Vec<Statement> = now
                    .into_iter()
                    .map(|(key, now)| now.minus(before.get(&key)))
                    .filter(|statement| statement.calls > 0)
                    .collect();
                spent.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
                let total = spent.iter().filter(|statement| statement.toplevel).map(|s| s.calls).sum();
                spent.truncate(TOP);
                Statements {
                    source: "pg_stat_statements",
                    total,
                    per_resource: per_resource(total),
                    top: spent,
                }
            }
            (now, before) => {
                let of = |counted: &Self| match counted {
                    Self::Transactions(count) => *count,
                    Self::Statements(_) => 0,
                };
                let total = of(&now) - of(before);
                Statements {
                    source: "pg_stat_database",
                    total,
                    per_resource: per_resource(total),
                    top: Vec::new(),
                }
            }
        }
    }
}

impl Statement {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn minus(mut self, before: Option<&Self>) -> Self {
        if let Some(before) = before {
            self.calls -= before.calls;
            self.rows -= before.rows;
            self.total_ms -= before.total_ms;
        }
        self.mean_ms = self.total_ms / self.calls.max(1) as f64;
        self
    }
}

async fn statements(connection: &mut PgConnection) -> anyhow::Result<HashMap<(String, bool), Statement>> {
    let rows = sqlx::query(include_str!("statements.sql")).fetch_all(connection).await?;
    let mut statements = HashMap::with_capacity(rows.len());
    for row in rows {
        let toplevel = row.try_get("toplevel")?;
        let query: String = row.try_get("query")?;
        let statement = Statement {
            calls: row.try_get("calls")?,
            rows: row.try_get("rows")?,
            total_ms: row.try_get("total_ms")?,
            mean_ms: 0.0,
            toplevel,
            query: words(&query),
        };
        let id: Option<String> = row.try_get("id")?;
        statements.insert((id.unwrap_or_default(), toplevel), statement);
    }
    Ok(statements)
}

async fn transactions(connection: &mut PgConnection) -> anyhow::Result<i64> {
    let text = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    Ok(sqlx::query(text).fetch_one(connection).await?.try_get(0)?)
}

/// The statement on one line, comments aside, its beginning only.
fn words(query: &str) -> String {
    let lines = query.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").chars().take(TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(calls: i64, total_ms: f64, toplevel: bool) -> Statement {
        Statement { calls, rows: calls, total_ms, mean_ms: 0.0, toplevel, query: String::new() }
    }

    #[test]
    fn a_span_counts_what_clients_sent_and_names_the_dearest_first() {
        let key = |id: &str, toplevel| (id.to_owned(), toplevel);
        let before = Counted::Statements([(key("a", true), statement(5, 10.0, true))].into());
        let after = Counted::Statements(
            [
                (key("a", true), statement(15, 30.0, true)),
                (key("b", false), statement(100, 50.0, false)),
                (key("c", true), statement(2, 1.0, true)),
            ]
            .into(),
        );
        let spent = after.since(&before, 4);
        assert_eq!((spent.total, spent.per_resource), (12, 3.0));
        let dearest: Vec<f64> = spent.top.iter().map(|statement| statement.total_ms).collect();
        assert_eq!(dearest, [50.0, 20.0, 1.0]);
        assert_eq!(spent.top[1].mean_ms, 2.0);
    }

    #[test]
    fn transactions_are_counted_where_statements_are_not() {
        let spent = Counted::Transactions(30).since(&Counted::Transactions(10), 10);
        assert_eq!((spent.source, spent.total, spent.per_resource), ("pg_stat_database", 20, 2.0));
    }

    #[test]
    fn a_statement_is_shown_on_one_line_without_its_comments() {
        assert_eq!(words("-- why\nSELECT 1, -- one\n   2\n"), "SELECT 1, 2");
    }
}
