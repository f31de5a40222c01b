use std::path::Path;

use super::*;

const DIR: &str = "/d";

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    disk
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

/// A file with durable contents under a durable name.
fn file(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.create(&path(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    file
}

#[test]
fn synced_data_and_names_survive_every_crash() {
    let disk = disk();
    let f = file(&disk, "a", b"old");
    f.write_at(&[9; 2000], 100).unwrap();
    disk.create(&path("b")).unwrap();
    for seed in 0..50 {
        let after = disk.crash(seed);
        let bytes = after.contents(&path("a")).unwrap();
        assert_eq!(&bytes[..3], b"old", "seed {seed}");
        // What a crash leaves is durable: a second one changes nothing.
        assert_eq!(after.crash(seed + 1).contents(&path("a")).unwrap(), bytes);
    }
    assert_eq!(disk.crash(0).list(Path::new(DIR)).unwrap(), ["a"]);
    assert_eq!(disk.crash(1).list(Path::new(DIR)).unwrap(), ["a", "b"]);
    assert_eq!(disk.crash(1).contents(&path("a")).unwrap().len(), 2100);
}

#[test]
fn unsynced_writes_are_kept_dropped_or_torn_between_sectors() {
    let disk = disk();
    let f = file(&disk, "a", &[0; 4 * SECTOR]);
    f.write_at(&[1; 4 * SECTOR], 0).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in (0..600).filter(|seed| seed % 4 != 3) {
        let bytes = disk.crash(seed).contents(&path("a")).unwrap();
        let sectors: Vec<u8> = bytes
            .chunks(SECTOR)
            .map(|sector| {
                assert!(sector.iter().all(|b| b == &sector[0]), "seed {seed}: a torn sector");
                sector[0]
            })
            .collect();
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 16, "every combination of four sectors");
}

#[test]
fn some_seeds_tear_sectors_and_leave_what_is_synced_alone() {
    let disk = disk();
    let f = file(&disk, "a", &[0; 2 * SECTOR]);
    f.write_at(&[1; SECTOR], SECTOR as u64).unwrap();
    let mut tears = 0;
    for seed in (3..200).step_by(4) {
        let bytes = disk.crash(seed).contents(&path("a")).unwrap();
        let written = bytes.iter().filter(|byte| **byte == 1).count();
        assert!(
            bytes[SECTOR..SECTOR + written].iter().all(|byte| *byte == 1),
            "seed {seed}: not its beginning"
        );
        tears += u64::from(written > 0 && written < SECTOR);
    }
    assert!(tears > 10, "{tears}");
}

#[test]
fn every_call_is_listed_with_its_path() {
    let disk = disk();
    let f = file(&disk, "a", b"1");
    f.write_at(b"2", 0).unwrap();
    let written = disk.calls(DiskOp::Write);
    assert_eq!(written.len() as u64, disk.count(DiskOp::Write));
    assert!(written.iter().all(|of| **of == *path("a")));
}

#[test]
fn a_sector_holds_one_of_its_states_and_time_is_ordered_for_even_seeds() {
    let disk = disk();
    let f = file(&disk, "a", &[0; 2 * SECTOR]);
    for i in 1..=5u8 {
        f.write_at(&[i], 0).unwrap();
        f.write_at(&[i], SECTOR as u64).unwrap();
    }
    for seed in (2..100).step_by(2) {
        let bytes = disk.crash(seed).contents(&path("a")).unwrap();
        let (first, second) = (bytes[0], bytes[SECTOR]);
        assert!(first == second || first == second + 1, "seed {seed}: {first} {second}");
    }
}

#[test]
fn names_need_a_sync_of_their_directory_and_renames_are_atomic() {
    let disk = disk();
    file(&disk, "a", b"1");
    let b = disk.create(&path("b.tmp")).unwrap();
    b.write_at(b"2", 0).unwrap();
    b.sync_data().unwrap();
    disk.rename(&path("b.tmp"), &path("a")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let after = disk.crash(seed);
        let contents = after.contents(&path("a")).unwrap();
        seen.insert((after.list(Path::new(DIR)).unwrap().len(), contents));
    }
    let all = [(1, b"1".to_vec()), (1, b"2".to_vec()), (2, b"1".to_vec())];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
    disk.sync_dir(Path::new(DIR)).unwrap();
    assert_eq!(disk.crash(0).contents(&path("a")).unwrap(), b"2");
}

#[test]
fn a_removed_file_comes_back_unless_its_directory_was_synced() {
    let disk = disk();
    let f = file(&disk, "a", b"1");
    disk.remove(&path("a")).unwrap();
    assert!(disk.open(&path("a"), false).is_err());
    let mut byte = [0];
    f.read_at(&mut byte, 0).unwrap();
    assert_eq!(disk.crash(0).contents(&path("a")).unwrap(), b"1");
    disk.sync_dir(Path::new(DIR)).unwrap();
    assert!(disk.crash(0).contents(&path("a")).is_err());
}

#[test]
fn lengths_are_durable_with_a_sync_and_cut_bytes_do_not_come_back() {
    let disk = disk();
    let f = file(&disk, "a", &[7; 1000]);
    f.set_size(10).unwrap();
    f.set_size(1000).unwrap();
    for seed in 0..60 {
        let bytes = disk.crash(seed).contents(&path("a")).unwrap();
        assert!([10, 1000].contains(&bytes.len()), "seed {seed}");
        assert_eq!(bytes[..10], [7; 10]);
    }
    f.sync_data().unwrap();
    let bytes = disk.crash(0).contents(&path("a")).unwrap();
    assert_eq!((bytes.len(), bytes[10], bytes[999]), (1000, 0, 0));
}

#[test]
fn a_cut_stops_everything_before_that_sync_takes_effect() {
    let disk = disk();
    let f = file(&disk, "a", b"1");
    let before = disk.syncs();
    assert_eq!(before, 2);
    disk.cut_at_sync(before + 1);
    f.write_at(b"2", 0).unwrap();
    assert!(f.sync_data().is_err() && disk.is_cut());
    assert!(f.write_at(b"3", 0).is_err());
    assert!(disk.open(&path("a"), false).is_err());
    assert_eq!(disk.crash(0).contents(&path("a")).unwrap(), b"1");
    assert_eq!(disk.crash(1).contents(&path("a")).unwrap(), b"2");
    assert!(disk.crash(0).open(&path("a"), true).is_ok());
}

#[test]
fn a_killed_process_leaves_what_it_wrote_but_not_durably() {
    let disk = disk();
    let f = file(&disk, "a", b"1");
    let guard = disk.lock(Path::new(DIR), Some("a")).unwrap();
    f.write_at(b"2", 0).unwrap();
    disk.cut();
    let next = disk.kill();
    assert_eq!(next.contents(&path("a")).unwrap(), b"2");
    drop(next.lock(Path::new(DIR), Some("a")).unwrap());
    assert_eq!(next.crash(0).contents(&path("a")).unwrap(), b"1");
    next.open(&path("a"), true).unwrap().sync_data().unwrap();
    assert_eq!(next.crash(0).contents(&path("a")).unwrap(), b"2");
    drop(guard);
}

#[test]
fn planned_failures_happen_once_and_as_told() {
    let disk = disk();
    let f = file(&disk, "a", &[0; 4]);
    disk.fail(DiskOp::Write, 2, DiskError::Io);
    f.write_at(&[1; 4], 0).unwrap();
    assert!(f.write_at(&[2; 4], 0).is_err());
    assert_eq!(disk.contents(&path("a")).unwrap(), [2, 2, 1, 1]);
    f.write_at(&[3; 4], 0).unwrap();
    disk.fail(DiskOp::Create, 1, DiskError::NoSpace);
    let full = disk.create(&path("b")).err().unwrap();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.count(DiskOp::Create), 2);
}

#[test]
fn after_a_failed_sync_data_is_seen_but_not_durable() {
    let disk = disk();
    let f = file(&disk, "a", b"1");
    f.write_at(b"2", 0).unwrap();
    disk.fail(DiskOp::Sync, 1, DiskError::Io);
    assert!(f.sync_data().is_err());
    f.sync_data().unwrap();
    assert_eq!(disk.contents(&path("a")).unwrap(), b"2");
    assert_eq!(disk.crash(1).contents(&path("a")).unwrap(), b"1");
    f.write_at(b"2", 0).unwrap();
    f.sync_data().unwrap();
    assert_eq!(disk.crash(0).contents(&path("a")).unwrap(), b"2");
}

#[test]
fn a_full_disk_refuses_to_grow_files_only() {
    let disk = disk();
    let f = file(&disk, "a", &[1; 1000]);
    disk.set_capacity(Some(1500));
    assert_eq!(f.allocate(1501).err().unwrap().kind(), io::ErrorKind::StorageFull);
    f.allocate(1500).unwrap();
    f.write_at(&[2; 1500], 0).unwrap();
    assert!(f.write_at(&[2], 1500).is_err());
    assert_eq!(disk.used(), 1500);
    disk.remove(&path("a")).unwrap();
    assert_eq!(disk.used(), 0);
}

#[test]
fn locks_exclude_and_end_with_their_guard() {
    let disk = disk();
    let guard = disk.lock(Path::new(DIR), Some("lock")).unwrap();
    assert_eq!(disk.lock(Path::new(DIR), Some("lock")).err().unwrap().kind(), io::ErrorKind::WouldBlock);
    drop(guard);
    drop(disk.lock(Path::new(DIR), Some("lock")).unwrap());
}

#[test]
fn missing_directories_and_files_are_errors() {
    let disk = SimDisk::new();
    assert!(disk.create(&path("a")).is_err());
    assert!(disk.sync_dir(Path::new(DIR)).is_err());
    assert_eq!(disk.list(Path::new(DIR)).unwrap(), [] as [&str; 0]);
    disk.create_dir_all(Path::new(DIR)).unwrap();
    let a = disk.create(&path("a")).unwrap();
    assert!(disk.create(&path("a")).is_err());
    assert!(a.read_at(&mut [0], 0).is_err());
    assert!(disk.open(&path("a"), false).unwrap().write_at(&[1], 0).is_err());
}

#[test]
fn the_clock_ticks_and_advances() {
    let clock = SimClock::default();
    let first = clock.monotonic();
    assert!(clock.monotonic() > first);
    clock.advance(Duration::from_secs(5));
    assert!(clock.monotonic() >= first + Duration::from_secs(5));
    assert!(clock.wall_us() > SimClock::EPOCH_US);
}
