//! Tells a log: events as the engine would append them, without an engine.

#![allow(dead_code, reason = "each test binary uses its part")]

use converge_domain::resource::{
    Claim, Configured, Created, Deleted, Reaction, ResourceEvent, Shape, Worked,
};
use converge_domain::{
    AggregateType, AnyEvent, ClaimId, Epoch, Generation, Position, ResourceId, Round, Sequence, SessionId,
    Timestamp,
};
use converge_event_store::StoredEvent;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// The past, as it grows.
#[derive(Default)]
pub struct Story {
    pub events: Vec<StoredEvent>,
    sequences: HashMap<ResourceId, u64>,
    ancestors: HashMap<ResourceId, Vec<ResourceId>>,
    born: u128,
}

impl Story {
    /// Appends one fact.
    pub fn tell(&mut self, id: ResourceId, fact: ResourceEvent) -> Position {
        let sequence = self.sequences.entry(id).or_default();
        *sequence += 1;
        let position = Position(self.events.len() as u64 + 1);
        self.events.push(StoredEvent {
            position,
            aggregate_type: AggregateType::Resource,
            aggregate_id: id.into(),
            sequence: Sequence(*sequence),
            event: AnyEvent::Resource(fact),
            metadata: Arc::new(BTreeMap::from([("actor".to_owned(), "storyteller".to_owned())])),
            committed_at: self.now(),
            before: Default::default(),
        });
        position
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000 + self.events.len() as i64 * 1000)
    }

    pub fn create(&mut self, kind: &str, name: &str, owner: Option<ResourceId>) -> ResourceId {
        self.create_labelled(kind, name, owner, &[])
    }

    /// Ids are scrambled, so that no order by id agrees with one by name by accident.
    pub fn create_labelled(
        &mut self,
        kind: &str,
        name: &str,
        owner: Option<ResourceId>,
        labels: &[(&str, &str)],
    ) -> ResourceId {
        self.born += 1;
        let id =
            ResourceId(Uuid::from_u128(self.born.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)));
        let ancestors: Vec<ResourceId> =
            owner.map(|owner| [vec![owner], self.ancestors[&owner].clone()].concat()).unwrap_or_default();
        self.ancestors.insert(id, ancestors.clone());
        let created = Created {
            id,
            kind: kind.to_owned(),
            kind_version: 1,
            name: name.to_owned(),
            ancestors,
            spec: Arc::new(serde_json::json!({"name": name})),
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            provider_config_ref: None,
            deletion_protection: false,
            edges: Vec::new(),
            shape: Arc::new(Shape { works: true, ..Shape::default() }),
            pass_id: None,
            behind: None,
            at: self.now(),
        };
        self.tell(id, ResourceEvent::Created(created));
        id
    }

    pub fn claim(&mut self, id: ResourceId) -> Position {
        let claim = Claim {
            epoch: Epoch(1),
            claim_id: ClaimId(Uuid::from_u128(7)),
            reaction: Reaction::Work,
            generation: Generation(1),
            round: Round(0),
            subtree_digest: None,
            finalizer: None,
            session: SessionId(Uuid::from_u128(8)),
            worker: "worker-1".to_owned(),
            claimed_at: self.now(),
            deadline_at: None,
        };
        self.tell(id, ResourceEvent::Claimed(claim))
    }

    /// Its work succeeds: it is Ready.
    pub fn work(&mut self, id: ResourceId) -> Position {
        let worked = Worked {
            epoch: Epoch(1),
            generation: Generation(1),
            round: Round(0),
            status: Some(Arc::new(serde_json::json!({"done": true}))),
            conditions: None,
            healthy: true,
            changed: None,
            at: self.now(),
        };
        self.tell(id, ResourceEvent::Worked(worked))
    }

    pub fn label(&mut self, id: ResourceId, labels: &[(&str, &str)]) -> Position {
        let configured = Configured {
            generation: Generation(1),
            kind_version: None,
            shape: None,
            spec: None,
            labels: Some(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
            provider_config_ref: None,
            deletion_protection: None,
            edges: None,
            released: Vec::new(),
            pass_id: None,
            at: self.now(),
        };
        self.tell(id, ResourceEvent::Configured(configured))
    }

    pub fn request_deletion(&mut self, id: ResourceId) -> Position {
        let at = self.now();
        self.tell(id, ResourceEvent::DeletionRequested { at })
    }

    pub fn delete(&mut self, id: ResourceId) -> Position {
        let (at, owner) = (self.now(), self.ancestors[&id].first().copied());
        self.tell(
            id,
            ResourceEvent::Deleted(Deleted {
                owner,
                upstreams: Vec::new(),
                reference: None,
                wanted: false,
                at,
            }),
        )
    }
}

/// Two trees with everything that can happen to a listed resource: born, worked, relabelled, moved through
/// phases, gone, and a name borne a second time.
pub fn a_varied_story() -> Story {
    let mut story = Story::default();
    let zone = story.create_labelled("zone", "z", None, &[("env", "prod")]);
    let mut children = Vec::new();
    for n in 0..12 {
        let child =
            story.create_labelled("account", &format!("a{n:02}"), Some(zone), &[("n", &n.to_string())]);
        story.claim(child);
        children.push(child);
    }
    let team = story.create("team", "nested", Some(zone));
    let leaf = story.create("vpc", "deep", Some(team));
    for child in &children {
        story.work(*child);
    }
    story.claim(leaf);
    story.work(leaf);
    story.label(zone, &[("env", "test"), ("tier", "1")]);
    let gone = children[3];
    story.request_deletion(gone);
    story.delete(gone);
    let brief = story.create("account", "brief", Some(zone));
    story.request_deletion(brief);
    story.delete(brief);
    let again = story.create("account", "a03", Some(zone));
    story.claim(again);
    story.work(again);
    story.request_deletion(children[4]);
    let lone = story.create("vpc", "lone", None);
    story.claim(lone);
    story
}
