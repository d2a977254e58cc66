//! The resource aggregate's rules, given / when / then.

#[path = "resource/support.rs"]
mod support;

#[path = "resource/claims.rs"]
mod claims;
#[path = "resource/composites.rs"]
mod composites;
#[path = "resource/declaring.rs"]
mod declaring;
#[path = "resource/deleting.rs"]
mod deleting;
#[path = "resource/failing.rs"]
mod failing;
#[path = "resource/flows.rs"]
mod flows;
#[path = "resource/reporting.rs"]
mod reporting;
