//! Leaves: whatever the kind, an id is issued and nothing else happens.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use converge_sdk::{Outcome, Provider, Reaction, Request, TaskError, async_trait, terminal};
use serde_json::json;

use super::kinds::PROBE;
use super::ledger::Ledger;

/// The provider of one kind.
pub struct Leaf {
    kind: &'static str,
    ledger: Arc<Ledger>,
}

/// The part of a spec that this worker heeds.
#[derive(serde::Deserialize)]
struct Pause {
    #[serde(default)]
    pause_ms: u64,
}

impl Leaf {
    pub fn new(kind: &'static str, ledger: &Arc<Ledger>) -> Self {
        Self { kind, ledger: Arc::clone(ledger) }
    }
}

#[async_trait]
impl Provider for Leaf {
    fn kind(&self) -> &str {
        self.kind
    }

    async fn work(&self, request: Request) -> Result<Outcome, TaskError> {
        let seen = SystemTime::now();
        match request.reaction {
            Reaction::Work => {
                let pause: Pause = request.spec.parse()?;
                // The pause lies behind the effect: a worker that is killed in it has done what nobody knows of.
                self.ledger.perform(&request)?;
                if pause.pause_ms > 0 {
                    tokio::time::sleep(Duration::from_millis(pause.pause_ms)).await;
                }
                // A status like a real one's: an id that the outside gave.
                let mut status = json!({ "id": format!("{}-{}", self.kind, request.id) });
                if self.kind == PROBE {
                    let seen = seen.duration_since(UNIX_EPOCH).unwrap_or_default();
                    status["seen_us"] = json!(u64::try_from(seen.as_micros()).unwrap_or(u64::MAX));
                }
                Ok(Outcome::new().status(status))
            }
            Reaction::Teardown => {
                self.ledger.perform(&request)?;
                Ok(Outcome::new())
            }
            other => Err(terminal(format!("{} has no reaction `{}`", request.kind, other.as_str()))),
        }
    }
}
