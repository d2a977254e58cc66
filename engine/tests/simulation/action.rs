//! What users do, and what befalls the processes meanwhile. A new kind of action is a variant here, its weight in
//! [`actions`], and its arm in `run.rs`.

use super::desired::{TEAM, Tree, tree};
use super::mortal::Moment;
use proptest::prelude::*;

/// Roots that users declare.
pub const ROOTS: [&str; 2] = ["r", "s"];

#[derive(Clone, Debug)]
pub enum Action {
    /// Declares a root anew: an apply or an edit of whatever was there.
    Declare {
        root: usize,
        tree: Tree,
    },
    /// Applies what is declared once more.
    ApplyAgain {
        root: usize,
    },
    DeleteRoot {
        root: usize,
    },
    /// Deletes one child by name: of the root, or of the team in it.
    DeleteChild {
        root: usize,
        in_team: bool,
        place: usize,
    },
    /// An operator acts by hand on the root, or on one child by name.
    Operate {
        root: usize,
        in_team: bool,
        /// None: the root itself.
        place: Option<usize>,
        what: Operation,
    },
    /// Time passes on the paused clock.
    Wait {
        ms: u64,
    },
    /// A process dies at its `appends`-th append from now.
    Crash {
        process: usize,
        appends: u64,
        moment: Moment,
    },
    /// The second process starts, if it does not run.
    Join,
    /// The second process is killed, wherever it is.
    Leave,
}

/// What an operator does.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Quarantine,
    Release,
    Resync,
    /// Without a look whether anything is stuck: mostly it is refused.
    Abandon,
}

/// A run: its actions in order.
pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    let root = 0..ROOTS.len();
    let moment = prop_oneof![Just(Moment::Before), Just(Moment::After)];
    let action = prop_oneof![
        6 => (root.clone(), tree(2)).prop_map(|(root, tree)| Action::Declare { root, tree }),
        1 => root.clone().prop_map(|root| Action::ApplyAgain { root }),
        2 => root.clone().prop_map(|root| Action::DeleteRoot { root }),
        2 => (root.clone(), any::<bool>(), 0..=TEAM)
            .prop_map(|(root, in_team, place)| Action::DeleteChild { root, in_team, place }),
        4 => (
            root.clone(),
            any::<bool>(),
            prop::option::weighted(0.8, 0..=TEAM),
            prop_oneof![
                2 => Just(Operation::Quarantine),
                3 => Just(Operation::Release),
                3 => Just(Operation::Resync),
                1 => Just(Operation::Abandon)
            ]
        )
            .prop_map(|(root, in_team, place, what)| Action::Operate { root, in_team, place, what }),
        6 => prop_oneof![0_u64..200, 200_u64..5000, 5000_u64..60_000].prop_map(|ms| Action::Wait { ms }),
        3 => (0_usize..2, 1_u64..40, moment)
            .prop_map(|(process, appends, moment)| Action::Crash { process, appends, moment }),
        1 => Just(Action::Join),
        1 => Just(Action::Leave),
    ];
    // The first is a declaration: nothing else does anything in an empty world.
    let first = tree(2).prop_map(|tree| Action::Declare { root: 0, tree });
    (first, prop::collection::vec(action, 2..14))
        .prop_map(|(first, rest)| std::iter::once(first).chain(rest).collect())
}
