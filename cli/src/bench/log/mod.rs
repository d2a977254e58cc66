//! The log in numbers: a rate of work that was lost or done twice is no rate, and the log is where that shows.

use std::collections::HashMap;

use anyhow::ensure;
use serde::Serialize;
use sqlx::{Connection, Row};

use super::server::BenchServer;

/// What a span appended.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// The log's last position.
    pub last: i64,
    /// Append calls.
    pub batches: i64,
    /// From the first append to the last, on the database's clock.
    pub seconds: f64,
    /// Events of resources by type, and how many resources they are of.
    counts: HashMap<String, (i64, i64)>,
    /// Events of everything.
    events: i64,
}

/// The part of a span that reports show.
#[derive(Debug, Clone, Serialize)]
pub struct Appended {
    pub events: i64,
    pub events_per_second: f64,
    /// Append calls that wrote them.
    pub batches: i64,
    pub events_per_batch: f64,
    /// From the first append to the last: without what came before and after in clients and read models.
    pub log_seconds: f64,
    /// Attempts that failed and were made again, and answers that came under a dead fence.
    pub attempts_failed: i64,
    pub outcomes_fenced: i64,
}

impl Span {
    /// Counts what is behind `after`, and makes sure that nothing is missing there.
    pub async fn behind(server: &BenchServer, after: i64) -> anyhow::Result<Self> {
        let mut connection = server.connect().await?;
        let row = sqlx::query(include_str!("span.sql")).bind(after).fetch_one(&mut connection).await?;
        let mut span = Self {
            last: row.try_get("last")?,
            batches: row.try_get("batches")?,
            seconds: row.try_get("seconds")?,
            ..Self::default()
        };
        let rows = sqlx::query(include_str!("counts.sql")).bind(after).fetch_all(&mut connection).await?;
        connection.close().await?;
        for row in rows {
            let (events, aggregates): (i64, i64) = (row.try_get("events")?, row.try_get("aggregates")?);
            span.events += events;
            if row.try_get::<String, _>("aggregate_type")? == "resource" {
                span.counts.insert(row.try_get("event_type")?, (events, aggregates));
            }
        }
        ensure!(
            span.events == span.last - after,
            "the log has gaps: {} events lie between {after} and {}",
            span.events,
            span.last
        );
        Ok(span)
    }

    /// Events of resources of one type.
    pub fn count(&self, event_type: &str) -> i64 {
        self.counts.get(event_type).map_or(0, |(events, _)| *events)
    }

    /// Makes sure that exactly `n` resources have exactly one such event each.
    pub fn once_each(&self, event_type: &str, n: u32) -> anyhow::Result<()> {
        let (events, aggregates) = self.counts.get(event_type).copied().unwrap_or_default();
        ensure!(
            events == i64::from(n) && aggregates == events,
            "{event_type} should be there once for each of {n} resources: {events} events of {aggregates} resources"
        );
        Ok(())
    }

    /// For a report; `seconds` is how long the span took.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub fn appended(&self, seconds: f64) -> Appended {
        Appended {
            events: self.events,
            events_per_second: self.events as f64 / seconds,
            batches: self.batches,
            events_per_batch: self.events as f64 / self.batches.max(1) as f64,
            log_seconds: self.seconds,
            attempts_failed: self.count("AttemptFailed"),
            outcomes_fenced: self.count("OutcomeFenced"),
        }
    }
}

/// The log's last position.
pub async fn end(server: &BenchServer) -> anyhow::Result<i64> {
    let mut connection = server.connect().await?;
    let row = sqlx::query(include_str!("span.sql")).bind(0_i64).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(row.try_get("last")?)
}

impl Appended {
    /// For people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![(
            "events",
            format!(
                "{} in {} batches ({:.0} each), {:.0} events/s, {:.2} s from the first append to the last",
                self.events, self.batches, self.events_per_batch, self.events_per_second, self.log_seconds
            ),
        )];
        if self.attempts_failed + self.outcomes_fenced > 0 {
            lines.push((
                "trouble",
                format!("{} attempts failed, {} outcomes fenced", self.attempts_failed, self.outcomes_fenced),
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(events: i64, aggregates: i64) -> Span {
        Span { counts: [("Worked".to_owned(), (events, aggregates))].into(), ..Span::default() }
    }

    #[test]
    fn a_run_that_lost_or_doubled_work_gives_no_figure() {
        assert!(span(10, 10).once_each("Worked", 10).is_ok());
        assert!(span(9, 9).once_each("Worked", 10).is_err());
        assert!(span(11, 10).once_each("Worked", 10).is_err());
        assert!(span(10, 9).once_each("Worked", 10).is_err());
        assert!(span(10, 10).once_each("Created", 10).is_err());
    }
}
