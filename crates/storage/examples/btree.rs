//! Measures the index tree beside `std::collections::BTreeSet` behind a lock, in one run and on the same keys.
//!
//! `cargo run --release -p avocet-storage --example btree -- [million keys, default 10] [threads, default 2]`
//!
//! Keys are 20 bytes: 12 random or ascending ones and a row id. Every figure is nanoseconds per operation and
//! thread; results are compared, not only timed.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::ops::{Bound, ControlFlow};
use std::sync::RwLock;
use std::thread;
use std::time::Instant;

use avocet_storage::index::{BTree, Direction, ScanScratch};

type Key = [u8; 20];

/// What both contenders can do.
trait Set: Sync {
    fn insert(&self, key: &Key) -> bool;
    fn remove(&self, key: &Key) -> bool;
    fn contains(&self, key: &Key) -> bool;
    /// Whether an entry begins with the first twelve bytes.
    fn look_up(&self, key: &Key, scratch: &mut ScanScratch) -> bool;
    /// Sum of the last bytes of up to `limit` entries from `key` on, and their number.
    fn range(&self, key: &Key, limit: u64, direction: Direction, scratch: &mut ScanScratch) -> (u64, u64);
}

impl Set for BTree {
    fn insert(&self, key: &Key) -> bool {
        BTree::insert(self, key)
    }

    fn remove(&self, key: &Key) -> bool {
        BTree::remove(self, key)
    }

    fn contains(&self, key: &Key) -> bool {
        BTree::contains(self, key)
    }

    fn look_up(&self, key: &Key, scratch: &mut ScanScratch) -> bool {
        let mut found = false;
        self.prefix_scan(&key[..12], scratch, &mut |_| {
            found = true;
            ControlFlow::Continue(())
        });
        found
    }

    fn range(&self, key: &Key, limit: u64, direction: Direction, scratch: &mut ScanScratch) -> (u64, u64) {
        let (lower, upper) = match direction {
            Direction::Ascending => (Bound::Included(&key[..]), Bound::Unbounded),
            Direction::Descending => (Bound::Unbounded, Bound::Included(&key[..])),
        };
        let (mut sum, mut count) = (0, 0);
        self.scan(lower, upper, direction, scratch, &mut |entry| {
            sum += u64::from(entry[19]);
            count += 1;
            if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (sum, count)
    }
}

impl Set for RwLock<BTreeSet<Key>> {
    fn insert(&self, key: &Key) -> bool {
        self.write().expect("not poisoned").insert(*key)
    }

    fn remove(&self, key: &Key) -> bool {
        self.write().expect("not poisoned").remove(key)
    }

    fn contains(&self, key: &Key) -> bool {
        self.read().expect("not poisoned").contains(key)
    }

    fn look_up(&self, key: &Key, _: &mut ScanScratch) -> bool {
        let mut from = [0; 20];
        from[..12].copy_from_slice(&key[..12]);
        let set = self.read().expect("not poisoned");
        set.range(from..).next().is_some_and(|entry| entry[..12] == key[..12])
    }

    fn range(&self, key: &Key, limit: u64, direction: Direction, _: &mut ScanScratch) -> (u64, u64) {
        let set = self.read().expect("not poisoned");
        let fold = |(sum, count): (u64, u64), entry: &Key| (sum + u64::from(entry[19]), count + 1);
        match direction {
            Direction::Ascending => set.range(*key..).take(limit as usize).fold((0, 0), fold),
            Direction::Descending => set.range(..=*key).rev().take(limit as usize).fold((0, 0), fold),
        }
    }
}

#[derive(Clone, Copy)]
enum Order {
    Random,
    Ascending,
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The `i`-th key; in ascending order, as order lines are: a warehouse, an order, a line.
fn key(i: u64, order: Order) -> Key {
    let mut key = [0; 20];
    match order {
        Order::Random => key[..8].copy_from_slice(&mix(i).to_be_bytes()),
        Order::Ascending => {
            key[3] = 1;
            key[4..8].copy_from_slice(&((i / 10) as u32).to_be_bytes());
            key[11] = (i % 10) as u8;
        }
    }
    key[12..].copy_from_slice(&i.to_be_bytes());
    key
}

/// Nanoseconds that this thread has run, where the system tells it (Linux): a busy machine distorts less.
fn cpu_ns() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split(' ').next()?.parse().ok()
}

/// Runs `work` for each number below `n`, divided among threads; ns per operation of a thread, and the sum of
/// the results. One thread is measured by its processor time.
fn timed(n: u64, threads: u64, work: impl Fn(u64, &mut ScanScratch) -> u64 + Sync) -> (f64, u64) {
    if threads == 1 {
        let mut scratch = ScanScratch::new();
        let (cpu, start) = (cpu_ns(), Instant::now());
        let sum = (0..n).map(|i| work(i, &mut scratch)).sum();
        let wall = start.elapsed().as_nanos() as u64;
        let ns = cpu_ns().zip(cpu).map_or(wall, |(end, start)| end - start);
        return (ns as f64 / n as f64, sum);
    }
    let start = Instant::now();
    let sum = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let work = &work;
                scope.spawn(move || {
                    let mut scratch = ScanScratch::new();
                    (t..n).step_by(threads as usize).map(|i| work(i, &mut scratch)).sum::<u64>()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).sum()
    });
    (start.elapsed().as_nanos() as f64 * threads as f64 / n as f64, sum)
}

fn measure(name: &str, set: &dyn Set, n: u64, threads: u64, order: Order) -> u64 {
    let random = |i: u64| mix(i ^ 0x5555) % n;
    let (insert, added) = timed(n, threads, |i, _| u64::from(set.insert(&key(i, order))));
    let (contains, found) = timed(n, threads, |i, _| u64::from(set.contains(&key(random(i), order))));
    let (look_up, hits) =
        timed(n, threads, |i, scratch| u64::from(set.look_up(&key(random(i), order), scratch)));
    assert_eq!((added, found, hits), (n, n, n), "every key is found");
    let mut scans = [0.0; 2];
    let mut check = 0;
    for (ns, direction) in scans.iter_mut().zip([Direction::Ascending, Direction::Descending]) {
        let per_scan = 1_000;
        let (time, sum) = timed(n / per_scan, threads, |i, scratch| {
            let (sum, count) = set.range(&key(random(i), order), per_scan, direction, scratch);
            black_box(count) << 32 | sum
        });
        *ns = time / ((sum >> 32) as f64 / (n / per_scan) as f64);
        check = mix(check ^ sum);
    }
    let (remove, removed) = timed(n / 4, threads, |i, _| u64::from(set.remove(&key(random(i), order))));
    println!(
        "{name:<10} {threads} thread(s): insert {insert:6.0}  contains {contains:6.0}  prefix look-up {look_up:6.0}  \
         scan {:5.1} up {:5.1} down  remove {remove:6.0}",
        scans[0], scans[1],
    );
    mix(check ^ removed)
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let n = args.next().unwrap_or(10) * 1_000_000;
    let threads = args.next().unwrap_or(2);
    for (order, name) in [(Order::Random, "random"), (Order::Ascending, "ascending")] {
        println!("{n} keys of 20 bytes, {name}; ns per operation of a thread");
        for threads in 1..=threads {
            let tree = BTree::new();
            let ours = measure("BTree", &tree, n, threads, order);
            let (bytes, len) = (tree.bytes(), tree.len());
            tree.check().expect("a sound tree");
            drop(tree);
            let theirs = measure("BTreeSet", &RwLock::new(BTreeSet::new()), n, threads, order);
            assert_eq!(ours, theirs, "both saw the same entries");
            println!("{:<10} {bytes} bytes for {len} entries after the removals", "");
        }
        let mut keys: Vec<Key> = (0..n).map(|i| key(i, order)).collect();
        keys.sort_unstable();
        let start = Instant::now();
        let tree = BTree::bulk_build(keys.iter(), 0.9);
        let build = start.elapsed().as_nanos() as f64 / n as f64;
        println!("bulk_build {build:.0} ns per entry, {:.1} bytes per entry", tree.bytes() as f64 / n as f64);
        let start = Instant::now();
        let added = BTree::new().bulk_insert_sorted(keys.iter());
        println!("bulk_insert_sorted {:.0} ns per entry", start.elapsed().as_nanos() as f64 / added as f64);
    }
}
