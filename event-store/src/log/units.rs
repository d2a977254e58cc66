//! Units: which groups of a batch stand or fall together.

use std::collections::HashMap;

/// A union-find over the groups of one batch.
#[derive(Default)]
pub(super) struct Units {
    parent: Vec<usize>,
}

impl Units {
    /// Adds a group that stands alone so far; returns its index.
    pub(super) fn add(&mut self) -> usize {
        self.parent.push(self.parent.len());
        self.parent.len() - 1
    }

    /// Puts two groups into one unit. The earlier group leads, so that leaders keep the batch's order.
    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.leader(a), self.leader(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high] = low;
    }

    /// The group that leads `group`'s unit.
    pub(super) fn leader(&mut self, mut group: usize) -> usize {
        while self.parent[group] != group {
            self.parent[group] = self.parent[self.parent[group]];
            group = self.parent[group];
        }
        group
    }

    /// Dense numbers for units, by group, in the order of their leaders.
    pub(super) fn number(&mut self) -> Vec<u32> {
        let mut numbers = HashMap::new();
        (0..self.parent.len())
            .map(|group| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(self.leader(group)).or_insert(next)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_joined_through_others_share_a_unit() {
        let mut units = Units::default();
        for _ in 0..5 {
            units.add();
        }
        units.join(4, 2);
        units.join(2, 0);
        assert_eq!(units.number(), [0, 1, 0, 2, 0]);
    }
}
