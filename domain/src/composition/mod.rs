//! Composition: what composers return, checked as a whole and compared with what is there.

mod cycle;
mod diff;
mod graph;
mod output;

pub use diff::{Diff, Node, diff};
pub use graph::{Children, ERRORS_MAX, Graph, GraphBuilder, GraphError};
pub use output::{ChildItem, EdgeItem};
