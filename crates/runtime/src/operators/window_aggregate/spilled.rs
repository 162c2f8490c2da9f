//! A window of which not all groups are in memory, on its way out: what the store and memory have of its panes,
//! merged in the order of the keys. Holds a batch of groups at a time, and keeps its place between two.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int64Type;

use super::super::windows::Span;
use super::pane::Pane;
use super::store::{PaneStore, prefix};
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::operator::MAX_BATCH_ROWS;
use crate::state::store::Scan;
use crate::state::{KeyRows, VnodeSet};

pub struct SpilledWindow {
    panes: Vec<Part>,
    accumulators: Accumulators,
    /// Virtual partitions not done yet, the current one last.
    vnodes: Vec<u8>,
    /// Key bytes of the last group that went out, within the current vnode.
    last: Option<Vec<u8>>,
    only_present: bool,
}

/// What a window has of one pane.
struct Part {
    span: Span,
    stored: VnodeSet,
    memory: Sorted,
}

/// The groups of a pane that are in memory, by vnode and key.
struct Sorted {
    slots: Vec<u32>,
    vnodes: Vec<u8>,
    keys: KeyRows,
    order: Vec<u32>,
    next: usize,
}

/// The next batch of groups of a window.
pub struct Groups {
    pub keys: Vec<ArrayRef>,
    pub results: Vec<ArrayRef>,
    pub n: usize,
}

impl SpilledWindow {
    /// The window that these panes make up. They stay as they are until it has gone out.
    pub fn new(
        panes: &[Span],
        open: &BTreeMap<Span, Pane>,
        store: &PaneStore,
        only_present: bool,
    ) -> Result<Self, RuntimeError> {
        let mut vnodes = VnodeSet::default();
        let mut parts = Vec::with_capacity(panes.len());
        for &span in panes {
            let pane = &open[&span];
            let memory = Sorted::new(pane)?;
            vnodes.extend(&memory.vnodes.iter().copied().collect());
            vnodes.extend(&pane.vnodes);
            // What the store has of a pane that is all in memory is at best the same.
            let stored = if pane.is_spilled {
                pane.vnodes
            } else {
                VnodeSet::default()
            };
            parts.push(Part {
                span,
                stored,
                memory,
            });
        }
        let mut vnodes: Vec<u8> = vnodes.iter().collect();
        vnodes.reverse();
        Ok(Self {
            panes: parts,
            accumulators: store.accumulators()?,
            vnodes,
            last: None,
            only_present,
        })
    }

    /// The next groups; `None` when all have gone out.
    pub fn next(
        &mut self,
        open: &mut BTreeMap<Span, Pane>,
        store: &PaneStore,
    ) -> Result<Option<Groups>, RuntimeError> {
        while !self.vnodes.is_empty() {
            let mut gathered = Gathered::new(self.panes.len());
            while let Some(&vnode) = self.vnodes.last() {
                let before = gathered.n();
                let is_done = self.gather(vnode, open, store, &mut gathered)?;
                if !is_done {
                    let n = gathered.n();
                    self.last = (n > before).then(|| gathered.keys.row(n - 1).to_vec());
                    break;
                }
                self.last = None;
                self.vnodes.pop();
            }
            let groups = self.evaluate(gathered, open, store)?;
            if groups.n > 0 {
                return Ok(Some(groups));
            }
        }
        Ok(None)
    }

    /// Gathers groups of one vnode until a batch is full; whether it came to the end.
    fn gather(
        &mut self,
        vnode: u8,
        open: &BTreeMap<Span, Pane>,
        store: &PaneStore,
        gathered: &mut Gathered,
    ) -> Result<bool, RuntimeError> {
        let mut cursors = Vec::with_capacity(self.panes.len());
        for part in &self.panes {
            cursors.push(part.scan(vnode, self.last.as_deref(), store));
        }
        let mut heads = BinaryHeap::new();
        for (i, (part, cursor)) in self.panes.iter().zip(&mut cursors).enumerate() {
            heads.extend(Head::of_memory(i).moved(&part.memory, vnode));
            if let Some(scan) = cursor {
                heads.extend(Head::of_store(i).advanced(scan)?);
            }
        }
        let mut started = false;
        while let Some(head) = heads.peek() {
            let is_new = !started || gathered.keys.row(gathered.n() - 1) != head.key;
            if is_new {
                if gathered.n() == MAX_BATCH_ROWS {
                    return Ok(false);
                }
                gathered.keys.push(&head.key);
                started = true;
            }
            let Some(head) = heads.pop() else {
                break;
            };
            let group = gathered.n() as u32 - 1;
            let part = &mut self.panes[head.pane];
            if head.is_stored {
                let is_overruled = gathered.overruled[head.pane] == Some(group);
                if !is_overruled {
                    gathered.stored_groups.push(group);
                    gathered.stored.push(&head.value);
                }
                if let Some(scan) = &mut cursors[head.pane] {
                    heads.extend(head.advanced(scan)?);
                }
            } else {
                let slot = part.memory.take();
                // Else the store has an earlier state of the group, or the same.
                if !open[&part.span].is_spilled || !open[&part.span].is_unread[slot as usize] {
                    gathered.overruled[head.pane] = Some(group);
                }
                gathered.memory[head.pane].push((slot, group));
                heads.extend(head.moved(&part.memory, vnode));
            }
        }
        Ok(true)
    }

    fn evaluate(
        &mut self,
        gathered: Gathered,
        open: &mut BTreeMap<Span, Pane>,
        store: &PaneStore,
    ) -> Result<Groups, RuntimeError> {
        let n = gathered.n();
        let all: Vec<u32> = (0..n as u32).collect();
        let mut n_rows = vec![0i64; n];
        self.accumulators.resize(n);
        if !gathered.stored_groups.is_empty() {
            let columns = store.values.decode(gathered.stored.iter())?;
            let counts = columns[0].as_primitive::<Int64Type>().values();
            for (&group, count) in gathered.stored_groups.iter().zip(counts) {
                n_rows[group as usize] += count;
            }
            self.accumulators
                .merge(&gathered.stored_groups, &columns[1..])?;
        }
        for (part, found) in self.panes.iter().zip(&gathered.memory) {
            let Some(pane) = open.get_mut(&part.span).filter(|_| !found.is_empty()) else {
                continue;
            };
            let (slots, groups): (Vec<u32>, Vec<u32>) = found.iter().copied().unzip();
            for (group, count) in groups.iter().zip(pane.counts(&slots).iter()) {
                n_rows[*group as usize] += count;
            }
            self.accumulators.merge(&groups, &pane.state(&slots)?)?;
        }
        let is_shown = |&group: &u32| !self.only_present || n_rows[group as usize] > 0;
        let shown: Vec<u32> = all.iter().copied().filter(is_shown).collect();
        let results = self.accumulators.evaluate(&shown)?;
        self.accumulators.reset(&all);
        let keys = shown.iter().map(|&g| gathered.keys.row(g as usize));
        Ok(Groups {
            keys: store.keys.decode(keys)?,
            results,
            n: shown.len(),
        })
    }
}

impl Part {
    fn scan<'a>(&self, vnode: u8, last: Option<&[u8]>, store: &'a PaneStore) -> Option<Scan<'a>> {
        if !self.stored.contains(vnode) {
            return None;
        }
        let (table, prefix) = (store.table(), prefix(self.span));
        Some(match last {
            Some(last) => {
                let after = [&prefix, last].concat();
                store.store.scan_after(table, vnode, &prefix, &after)
            }
            None => store.store.scan(table, vnode, &prefix),
        })
    }
}

impl Sorted {
    fn new(pane: &Pane) -> Result<Self, RuntimeError> {
        let slots = pane.all_slots();
        let (vnodes, keys) = (pane.keys.vnodes(&slots)?, pane.keys.key_rows(&slots)?);
        let mut order: Vec<u32> = (0..slots.len() as u32).collect();
        let place = |i: u32| (vnodes[i as usize], keys.row(i as usize));
        order.sort_unstable_by(|&a, &b| place(a).cmp(&place(b)));
        Ok(Self {
            slots,
            vnodes,
            keys,
            order,
            next: 0,
        })
    }

    /// The next key of this vnode.
    fn head(&self, vnode: u8) -> Option<&[u8]> {
        let &i = self.order.get(self.next)?;
        (self.vnodes[i as usize] == vnode).then(|| self.keys.row(i as usize))
    }

    /// Passes the next key, and gives its slot.
    fn take(&mut self) -> u32 {
        let i = self.order[self.next];
        self.next += 1;
        self.slots[i as usize]
    }
}

/// What a batch is made of. Groups are numbered in the order of their keys.
struct Gathered {
    keys: KeyRows,
    /// Entries of the store, and the groups that they belong to.
    stored: KeyRows,
    stored_groups: Vec<u32>,
    /// By pane: slots in memory, and the groups that they belong to.
    memory: Vec<Vec<(u32, u32)>>,
    /// By pane: the last group for which memory has all there is.
    overruled: Vec<Option<u32>>,
}

impl Gathered {
    fn new(n_panes: usize) -> Self {
        Self {
            keys: KeyRows::default(),
            stored: KeyRows::default(),
            stored_groups: Vec::new(),
            memory: vec![Vec::new(); n_panes],
            overruled: vec![None; n_panes],
        }
    }

    fn n(&self) -> usize {
        self.keys.n_rows()
    }
}

/// The next entry of a pane, in memory or in the store.
#[derive(PartialEq, Eq)]
struct Head {
    key: Vec<u8>,
    pane: usize,
    is_stored: bool,
    value: Vec<u8>,
}

impl Head {
    fn of_memory(pane: usize) -> Self {
        Self {
            key: Vec::new(),
            pane,
            is_stored: false,
            value: Vec::new(),
        }
    }

    fn of_store(pane: usize) -> Self {
        Self {
            is_stored: true,
            ..Self::of_memory(pane)
        }
    }

    /// Moved to the next key in memory, if there is one.
    fn moved(mut self, memory: &Sorted, vnode: u8) -> Option<Self> {
        self.key.clear();
        self.key.extend_from_slice(memory.head(vnode)?);
        Some(self)
    }

    /// Moved to the next entry of the store, if there is one.
    fn advanced(mut self, scan: &mut Scan<'_>) -> Result<Option<Self>, RuntimeError> {
        let Some(entry) = scan.advance()? else {
            return Ok(None);
        };
        self.key.clear();
        self.key.extend_from_slice(&entry.key[PREFIX_BYTES..]);
        self.value.clear();
        self.value.extend_from_slice(entry.value);
        Ok(Some(self))
    }
}

const PREFIX_BYTES: usize = 16;

/// The greatest comes out of a heap first: the least key, and of equal ones the pane's in memory before its own in the
/// store.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |head: &Self| (head.pane, head.is_stored);
        let by_key = other.key.cmp(&self.key);
        by_key.then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
