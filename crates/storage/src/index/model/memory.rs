//! Memory of nodes that knows what is freed: it is overwritten and kept until the schedule ends, so that whoever still
//! uses it is found. Retired nodes are freed as early as the rules of epochs allow: as soon as nobody is pinned who was
//! when they were retired.
//!
//! Nodes are as small as the layout allows, so that few entries make a tree of three levels.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::atomics::FREED;
use super::{Rule, breaks};

/// 32 and 64 words: eight keys of the greatest length fit the larger, as they must.
pub const MIN_CLASS: u32 = 5;
pub const MAX_CLASS: u32 = 6;
pub const MAX_KEY_LEN: usize = 32;

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

#[derive(Default)]
struct World {
    /// Every block there was, by address, and whether it lives.
    blocks: HashMap<usize, (Layout, bool)>,
    /// Goes on with every pin and every retirement.
    time: u64,
    /// Since when each guard is pinned, by its number.
    pins: BTreeMap<u64, u64>,
    retired: Vec<(u64, Box<dyn FnOnce()>)>,
}

/// How many nodes there were so far.
pub fn nodes() -> u64 {
    WORLD.with_borrow(|world| world.blocks.len() as u64)
}

/// Begins a schedule.
pub fn begin() {
    end_blocks(WORLD.take());
}

/// Ends one in which the tree is gone: so must be its nodes.
pub fn end() {
    free_unpinned();
    let world = WORLD.take();
    let living = world.blocks.values().filter(|(_, lives)| *lives).count();
    end_blocks(world);
    assert_eq!(living, 0, "nodes that nobody has freed");
}

fn end_blocks(world: World) {
    for (address, (layout, _)) in world.blocks {
        // SAFETY: allocated below with this layout, and given back nowhere else.
        unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
    }
}

/// # Safety
/// The layout has a size above zero.
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    let block = unsafe { std::alloc::alloc_zeroed(layout) };
    WORLD.with_borrow_mut(|world| world.blocks.insert(block.expose_provenance(), (layout, true)));
    block
}

/// # Safety
/// The block was allocated above with this layout.
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    WORLD.with_borrow_mut(|world| {
        let known = world.blocks.get_mut(&block.addr()).expect("only nodes are freed");
        assert_eq!(*known, (layout, true), "a node is freed once");
        known.1 = false;
    });
    let words = block.cast::<u64>();
    (0..layout.size() / 8).for_each(|i| {
        // SAFETY: the block has that many words, and stays allocated until the schedule ends.
        unsafe { words.add(i).write(FREED) };
    });
}

/// A pointer as read from a node: to a node, whether living or freed.
#[track_caller]
pub fn with_exposed_provenance<T>(address: usize) -> *const T {
    let known = WORLD.with_borrow(|world| world.blocks.contains_key(&address));
    assert!(known, "a pointer to {address:#x} is followed, where no node ever was");
    std::ptr::with_exposed_provenance(address)
}

pub struct Guard {
    number: u64,
}

pub fn pin() -> Guard {
    WORLD.with_borrow_mut(|world| {
        world.time += 1;
        let now = world.time;
        world.pins.insert(now, now);
        Guard { number: now }
    })
}

impl Guard {
    pub fn repin(&mut self) {
        WORLD.with_borrow_mut(|world| {
            world.time += 1;
            world.pins.insert(self.number, world.time);
        });
        free_unpinned();
    }

    /// # Safety
    /// Nobody who is not pinned now comes across what is freed.
    pub unsafe fn defer_unchecked(&self, free: impl FnOnce() + 'static) {
        if breaks(Rule::WaitForPins) {
            return free();
        }
        WORLD.with_borrow_mut(|world| {
            world.time += 1;
            world.retired.push((world.time, Box::new(free)));
        });
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        WORLD.with_borrow_mut(|world| world.pins.remove(&self.number));
        free_unpinned();
    }
}

/// Frees what was retired before the oldest pin.
fn free_unpinned() {
    let ready = WORLD.with_borrow_mut(|world| {
        let oldest = world.pins.values().min().copied().unwrap_or(u64::MAX);
        let all = std::mem::take(&mut world.retired);
        let (ready, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(time, _)| *time < oldest);
        world.retired = rest;
        ready
    });
    ready.into_iter().for_each(|(_, free)| free());
}
