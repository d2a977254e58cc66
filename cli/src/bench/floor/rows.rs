//! The rows of one batch, with the sizes that the product's rows have: about 300 bytes of payload and metadata an
//! event, about 700 bytes a head. Built before the clock starts for the batch's transaction, as the product
//! too has them in memory when it calls the server.

use serde_json::json;
use uuid::Uuid;

/// Column arrays of one batch.
pub struct Rows {
    pub ids: Vec<Uuid>,
    pub names: Vec<String>,
    pub created_states: Vec<String>,
    pub ready_states: Vec<String>,
    pub created: Vec<String>,
    pub claimed: Vec<String>,
    pub worked: Vec<String>,
}

/// What every event of a request carries.
pub fn metadata() -> String {
    let id = Uuid::now_v7();
    json!({"actor": "bench", "command_id": id, "correlation_id": id}).to_string()
}

impl Rows {
    /// The rows of resources `first .. first + count`.
    pub fn of(first: u32, count: u32) -> Self {
        let mut rows = Self {
            ids: Vec::new(),
            names: Vec::new(),
            created_states: Vec::new(),
            ready_states: Vec::new(),
            created: Vec::new(),
            claimed: Vec::new(),
            worked: Vec::new(),
        };
        for number in first..first + count {
            rows.push(number);
        }
        rows
    }

    fn push(&mut self, number: u32) {
        // Ids that rise with time, as the product makes them: random ones would spread the index inserts.
        let id = Uuid::now_v7();
        let claim_id = Uuid::new_v4();
        let at = 1_700_000_000_000_i64 + i64::from(number);
        let name = format!("leaf-{number:08}");
        let spec = json!({"cidr": "10.0.0.0/16", "size": number, "region": "eu-central-1"});
        let labels = json!({"team": "payments", "env": "prod"});
        let shape = json!({"works": true, "composes": false, "rolls_up": false, "finalizers": []});
        let status = json!({"vpc_id": format!("vpc-{}", claim_id.simple()), "observed": number});
        let state = |phase: &str, sequence: u32, done: bool| {
            json!({
                "identity": {"id": id, "kind": "bench-leaf", "name": name}, "kind_version": 1,
                "spec": spec, "labels": labels, "phase": phase, "generation": 1,
                "synced_gen": u32::from(done), "epoch": u32::from(done), "healthy": true,
                "status_own": if done { status.clone() } else { json!(null) },
                "created_at": at, "updated_at": at, "sequence": sequence,
            })
            .to_string()
        };
        self.created_states.push(state("Reconciling", 1, false));
        self.ready_states.push(state("Ready", 3, true));
        self.created.push(
            json!({"Created": {"id": id, "kind": "bench-leaf", "kind_version": 1, "name": name,
                               "spec": spec, "labels": labels, "shape": shape, "at": at}})
            .to_string(),
        );
        self.claimed.push(
            json!({"Claimed": {"epoch": 1, "claim_id": claim_id, "session": claim_id, "worker": "127.0.0.1:54321",
                               "reaction": "work", "generation": 1, "round": 0, "deadline_secs": 60, "at": at}})
            .to_string(),
        );
        self.worked.push(
            json!({"Worked": {"epoch": 1, "claim_id": claim_id, "generation": 1, "round": 0,
                              "status": status, "at": at}})
            .to_string(),
        );
        self.ids.push(id);
        self.names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_have_the_sizes_that_were_agreed() {
        let rows = Rows::of(0, 10);
        let events = rows.created.iter().chain(&rows.claimed).chain(&rows.worked);
        let mean = events.map(|payload| payload.len() + metadata().len()).sum::<usize>() / 30;
        assert!((250..=450).contains(&mean), "{mean} bytes an event");
        let state = rows.ready_states[0].len();
        assert!((380..=600).contains(&state), "{state} bytes a state");
        assert_eq!(rows.ids.len(), 10);
    }
}
