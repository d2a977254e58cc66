//! Deleting downward: what a Deleting resource owns, and what depends on it inside its root, goes too.
//!
//! Only marks are set here. The order of the teardown itself is not planned anywhere: a node's teardown opens
//! when nothing depends on it and it owns nothing, which is decided node by node under guards. So a crash
//! anywhere leaves a state from which the same end is reached.

mod cascade;
