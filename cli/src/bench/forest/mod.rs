//! `forest`: N children below as many roots as they need, each of 1000, until all roots are Ready.

use super::args::ForestArgs;
use super::fanout;

/// `converge bench forest`.
pub async fn scenario(args: ForestArgs) -> anyhow::Result<()> {
    fanout::run("forest", args.tree, args.children).await
}
