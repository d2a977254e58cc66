//! The bill of materials, as far as the demo reads it.

use serde::Deserialize;

/// A `classicbom` spec.
#[derive(Debug, Deserialize)]
pub(crate) struct Bom {
    pub(crate) deployment_instance: Instance,
}

/// One deployment.
#[derive(Debug, Deserialize)]
pub(crate) struct Instance {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) functional_domains: Vec<Domain>,
}

/// A functional domain: teams that share a gateway.
#[derive(Debug, Deserialize)]
pub(crate) struct Domain {
    pub(crate) name: String,
    /// Its teams get accounts and nothing else.
    #[serde(default)]
    pub(crate) accounts_only: bool,
    #[serde(default)]
    aws_transit_gateway: Gateway,
    #[serde(default)]
    pub(crate) service_teams: Vec<Team>,
}

impl Domain {
    /// Whether the domain has a transit gateway of its own.
    pub(crate) fn has_gateway(&self) -> bool {
        self.aws_transit_gateway.enabled && !self.accounts_only
    }
}

#[derive(Debug, Default, Deserialize)]
struct Gateway {
    #[serde(default)]
    enabled: bool,
}

/// A team.
#[derive(Debug, Deserialize)]
pub(crate) struct Team {
    pub(crate) name: String,
}
