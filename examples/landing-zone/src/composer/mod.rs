//! The composer of `classicbom`: a bill of materials in, a graph of resources out, a table of teams back.

mod compose;
mod rollup;

use converge_sdk::{Outcome, Provider, Reaction, Request, TaskError, async_trait, terminal};

/// Labels that tie a resource to its place in the bill of materials; the rollup reads what the composer wrote.
const DOMAIN_LABEL: &str = "fd";
const TEAM_LABEL: &str = "team";

/// See the module.
pub struct ClassicBom;

#[async_trait]
impl Provider for ClassicBom {
    fn kind(&self) -> &str {
        "classicbom"
    }

    async fn work(&self, mut request: Request) -> Result<Outcome, TaskError> {
        match request.reaction {
            Reaction::Compose => {
                let bom = request.spec.parse()?;
                Ok(Outcome::new().composition(compose::compose(&bom)))
            }
            Reaction::Rollup => {
                let mut teams = rollup::Rollup::default();
                while let Some((_, nodes)) = request.input.next_page().await? {
                    for node in nodes {
                        teams.add(node.parse()?);
                    }
                }
                Ok(Outcome::new().status(teams.status()))
            }
            // Its children are torn down by the engine; the bill itself has nothing outside.
            Reaction::Teardown => Ok(Outcome::new()),
            other => Err(terminal(format!("classicbom has no reaction `{}`", other.as_str()))),
        }
    }
}
