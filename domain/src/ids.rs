//! The typed names of things.
//!
//! A bare `i64` or `Uuid` never crosses a crate boundary: swapping a sequence for a generation, or a
//! claim for a pass, must not compile.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The value after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

uuid_id!(
    /// Identity of any aggregate in the log: a resource, a kind version, a provider config, a binding.
    AggregateId
);
uuid_id!(
    /// Identity of one resource, for its whole life; a re-made resource has a new one.
    ResourceId
);
uuid_id!(
    /// The random half of a claim's fence: epochs alone can repeat after a failover.
    ClaimId
);
uuid_id!(
    /// One composition pass: from an accepted composer output to `Composed` or abandonment.
    PassId
);
uuid_id!(
    /// A broker's membership session; its lease backs every claim made under it.
    SessionId
);
uuid_id!(
    /// Names a command for deduplication: the same id executes once.
    CommandId
);
uuid_id!(
    /// Names one append batch, known before the log lock is taken.
    BatchId
);

counter!(
    /// Dense, contiguous place of an event in the log; the first event is 1, 0 means "before everything".
    Position
);
counter!(
    /// Place of an event in its own aggregate's stream; the first event is 1.
    Sequence
);
counter!(
    /// Strictly rising number of a resource's claims.
    Epoch
);
counter!(
    /// Rises with every effective spec change of a resource; the first is 1.
    Generation
);
counter!(
    /// Rises with each declared edit of a resource; the first is 1.
    Revision
);
counter!(
    /// Counts the repetitions of work or composition inside one generation.
    Round
);

impl From<ResourceId> for AggregateId {
    fn from(id: ResourceId) -> Self {
        Self(id.0)
    }
}

/// Milliseconds since the Unix epoch on the database's clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant moved later by `ms` milliseconds.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, UTC, millisecond precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp_millis(self.0) {
            Some(t) => f.write_str(&t.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// A kind at one version, written `vpc/v1`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KindRef {
    /// The kind's name.
    pub kind: String,
    /// Its version, 1 to 32767.
    pub kind_version: u16,
}

impl KindRef {
    /// A reference to `kind` at `kind_version`.
    pub fn new(kind: impl Into<String>, kind_version: u16) -> Self {
        Self { kind: kind.into(), kind_version }
    }

    /// The identity of this kind version's aggregate, the same on every host.
    pub fn aggregate_id(&self) -> AggregateId {
        AggregateId(named("kind", &self.to_string()))
    }
}

impl fmt::Display for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/v{}", self.kind, self.kind_version)
    }
}

impl fmt::Debug for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `(kind, name)`: what users call a resource; unique among live ones.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ResourceRef {
    /// The kind's name, without a version.
    pub kind: String,
    /// The resource's name.
    pub name: String,
}

impl ResourceRef {
    /// A reference to the resource `name` of `kind`.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }

    /// What stands for the name itself in edges: whoever waits for the name to be taken or freed has one to it. No aggregate ever
    /// has this id.
    pub fn name_id(&self) -> ResourceId {
        ResourceId(named("name", &self.to_string()))
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The identity of a named singleton (`type`, `name`), derived so that every process agrees.
pub fn named(aggregate_type: &str, name: &str) -> Uuid {
    const NAMESPACE: Uuid = Uuid::from_u128(0x6b1f_77a3_0c4e_5d5e_9a51_3c04_f7c6_b2d1);
    Uuid::new_v5(&NAMESPACE, format!("{aggregate_type}/{name}").as_bytes())
}
