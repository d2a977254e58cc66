//! The pretended cloud: slow and faulty on demand, and idempotent like a real one.

use crate::effects::Effects;
use crate::knobs::Knobs;
use converge_sdk::TaskError;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// What the leaf providers call.
pub(crate) struct Cloud {
    latency: Duration,
    fault_rate: f64,
    fault_seed: u64,
    effects: Option<Arc<Effects>>,
}

/// When in a call a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Before anything happened.
    Refused,
    /// After the effect, before the answer: the case that idempotency keys exist for.
    AnswerLost,
}

impl Cloud {
    pub(crate) fn open(knobs: &Knobs) -> anyhow::Result<Self> {
        let effects = knobs.ledger.as_deref().map(Effects::open).transpose()?.map(Arc::new);
        let Knobs { latency, fault_rate, fault_seed, .. } = *knobs;
        Ok(Self { latency, fault_rate, fault_seed, effects })
    }

    /// One call with an effect. The same key has its effect once, however often it comes. Answers whether this call
    /// had it.
    pub(crate) async fn call(&self, key: &str, attempt: u32, what: &str) -> Result<bool, TaskError> {
        let fault = self.fault(key, attempt);
        tokio::time::sleep(self.latency).await;
        if fault == Some(Fault::Refused) {
            return Err(TaskError::transient(format!("the cloud refused to {what}; it does that at times")));
        }
        let performed = match &self.effects {
            None => true,
            Some(effects) => {
                let (effects, key, what) = (Arc::clone(effects), key.to_owned(), what.to_owned());
                tokio::task::spawn_blocking(move || effects.perform(&key, &what)).await??
            }
        };
        if fault == Some(Fault::AnswerLost) {
            return Err(TaskError::transient(format!("the cloud's answer to {what} was lost")));
        }
        Ok(performed)
    }

    /// Drawn from the seed, the key and the attempt alone, so that a run can be repeated and a retry has its own luck.
    fn fault(&self, key: &str, attempt: u32) -> Option<Fault> {
        let [draw, kind, ..] = words(&format!("{}/{key}/{attempt}", self.fault_seed));
        #[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
        let share = draw as f64 / u64::MAX as f64;
        (share < self.fault_rate).then_some(if kind % 2 == 0 { Fault::Refused } else { Fault::AnswerLost })
    }
}

/// An id as the cloud would issue it: stable for a resource, different between resources.
pub(crate) fn issued_id(prefix: &str, resource_id: &str) -> String {
    let digest = Sha256::digest(format!("{prefix}/{resource_id}"));
    format!("{prefix}-{}", hex::encode(digest.get(..9).unwrap_or(&digest)))
}

/// As [`issued_id`], in the form of an account id: 12 digits.
pub(crate) fn account_id(resource_id: &str) -> String {
    let [word, ..] = words(&format!("account/{resource_id}"));
    format!("{:012}", word % 1_000_000_000_000)
}

fn words(text: &str) -> [u64; 4] {
    let digest = Sha256::digest(text);
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.chunks_exact(8)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(fault_rate: f64) -> Cloud {
        Cloud { latency: Duration::ZERO, fault_rate, fault_seed: 7, effects: None }
    }

    #[test]
    fn faults_come_at_their_rate_of_both_kinds_and_the_same_way_each_time() {
        let draw = || (0..10_000).map(|i| cloud(0.2).fault(&format!("key-{i}"), 1)).collect::<Vec<_>>();
        let faults = draw();
        assert_eq!(faults, draw());
        let count = |wanted| faults.iter().filter(|fault| **fault == wanted).count();
        assert!((800..1200).contains(&count(Some(Fault::Refused))));
        assert!((800..1200).contains(&count(Some(Fault::AnswerLost))));
        assert!((0..10_000).all(|i| cloud(0.0).fault(&i.to_string(), 1).is_none()));
    }

    #[test]
    fn a_retry_has_its_own_luck() {
        let cloud = cloud(0.5);
        let lucky = (1..50).any(|attempt| cloud.fault("key", attempt).is_none());
        let unlucky = (1..50).any(|attempt| cloud.fault("key", attempt).is_some());
        assert!(lucky && unlucky);
    }

    #[test]
    fn account_ids_have_twelve_digits_and_ids_are_stable() {
        for id in ["a", "b", "c"] {
            let account = account_id(id);
            assert!(account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()), "{account}");
            assert_eq!(account, account_id(id));
            assert_eq!(issued_id("vpc", id), issued_id("vpc", id));
        }
        assert_ne!(issued_id("vpc", "a"), issued_id("vpc", "b"));
        assert_ne!(account_id("a"), account_id("b"));
    }
}
