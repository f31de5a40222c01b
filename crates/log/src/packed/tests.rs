#[path = "../../tests/common/bytes.rs"]
mod bytes;

use proptest::prelude::*;

use self::bytes::noise;
use super::*;
use crate::frame::{Place, Sealer};

fn frames(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, payload) in payloads.iter().enumerate() {
        Record::new(7, payload).put(100 + i as u64, &mut bytes);
    }
    bytes
}

/// Tags and payloads of what is written, in order, and the LSNs that packed frames say they begin at.
fn read(written: &[u8]) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
    let (mut records, mut starts) = (Vec::new(), Vec::new());
    let mut unpacked = Unpacked::default();
    let mut at = 0;
    while at < written.len() {
        let head = Head::decode(1, Place(64 + at as u64), written[at..].first_chunk().unwrap()).unwrap();
        let payload = &written[at + HEAD..][..head.payload_len];
        if head.is_packed().unwrap() {
            starts.push(head.tag);
            unpacked.fill(payload).unwrap();
            while let Some((inner, at)) = unpacked.next_frame() {
                records.push((inner.tag, unpacked.payload(at, inner.payload_len).to_vec()));
            }
        } else {
            records.push((head.tag, payload.to_vec()));
        }
        at += head.frame_len();
    }
    (records, starts)
}

fn round_trip(payloads: &[Vec<u8>], from: usize) -> (usize, usize, Vec<u64>) {
    let mut group = frames(payloads);
    let raw = group.len();
    let mut packer = Packer::new(from);
    let written = packer.pack(&mut group, Lsn(1 << 20));
    let len = written.len();
    Sealer { log_id: 1, chain: 0 }.seal(written, Place(64), Place(64));
    let (records, starts) = read(written);
    let expected: Vec<(u64, Vec<u8>)> = (100..).zip(payloads.iter().cloned()).collect();
    assert!(records == expected, "other records come out");
    (raw, len, starts)
}

#[test]
fn compressions_are_read_and_shown() {
    for compression in [Compression::None, Compression::Lz4] {
        assert_eq!(compression.to_string().to_ascii_uppercase().parse(), Ok(compression));
    }
    assert!("zstd".parse::<Compression>().is_err());
}

#[test]
fn what_pays_is_packed_and_the_rest_stays_as_it_is() {
    let alike = |n: usize| vec![b"a row of some table, like others of it ".repeat(8); n];
    // A small group, and one that is like nothing, are themselves.
    let (raw, written, starts) = round_trip(&alike(3), 4096);
    assert_eq!((raw, starts.len()), (written, 0));
    let (raw, written, starts) = round_trip(&[noise(20_000, 1), noise(300, 2)], 4096);
    assert_eq!((raw, starts.len()), (written, 0));
    // One that pays is a frame.
    let (raw, written, starts) = round_trip(&alike(20), 4096);
    assert!(written * 5 < raw, "{written} of {raw} bytes");
    assert_eq!(starts, [1 << 20]);
    // Of a long one, each chunk is what it pays to be.
    let mixed = [alike(300), vec![noise(70_000, 3), noise(70_000, 4)], alike(300)].concat();
    let (_, written, starts) = round_trip(&mixed, 4096);
    assert!(starts.len() >= 4 && (140_000..160_000).contains(&written), "{starts:?} {written}");
}

#[test]
fn large_frames_are_chunks_of_their_own_up_to_a_limit() {
    let (raw, written, starts) = round_trip(&[vec![1; 10], vec![7; MAX_PACKED - HEAD], vec![2; 9000]], 4096);
    assert!(written * 100 < raw);
    assert_eq!(starts.len(), 2);
    let (_, written, starts) = round_trip(&[vec![7; MAX_PACKED]], 4096);
    assert_eq!((written, starts.len()), (MAX_PACKED + HEAD, 0));
}

#[test]
fn what_does_not_come_out_right_does_not_come_out() {
    let mut group = frames(&vec![vec![5; 400]; 20]);
    let mut packer = Packer::new(0);
    let written = packer.pack(&mut group, Lsn(0)).to_vec();
    let head = Head::unsealed(written.first_chunk().unwrap()).unwrap();
    let payload = &written[HEAD..][..head.payload_len];
    let mut unpacked = Unpacked::default();
    assert_eq!(unpacked.fill(payload), Ok(()));
    let wrong_length = [&(group.len() as u32 - 8).to_le_bytes(), &payload[4..]].concat();
    let endless = [&u32::MAX.to_le_bytes(), &payload[4..]].concat();
    for wrong in [&wrong_length[..], &endless, &payload[..3], b""] {
        assert_eq!(unpacked.fill(wrong), Err(Flaw::Packed));
        assert!(unpacked.next_frame().is_none());
    }
    // Compressed as they should be, but no frames, or frames of a kind that is not carried.
    let mut closed = Vec::new();
    Record::closed().put(0, &mut closed);
    for content in [vec![0; 64], group[..group.len() - 8].to_vec(), closed] {
        let block = lz4_flex::block::compress(&content);
        let payload = [&(content.len() as u32).to_le_bytes()[..], &block].concat();
        assert_eq!(unpacked.fill(&payload), Err(Flaw::Packed));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), raw in 0u32..3000) {
        let mut unpacked = Unpacked::default();
        let _ = unpacked.fill(&bytes);
        let _ = unpacked.fill(&[&raw.to_le_bytes()[..], &bytes].concat());
        while unpacked.next_frame().is_some() {}
    }

    /// Records of any lengths, of bytes alike or not, in any order: they come out as they were, and never take more.
    #[test]
    fn groups_round_trip(sizes in prop::collection::vec((0usize..20_000, any::<bool>()), 1..20), from in 0usize..5000) {
        let payloads: Vec<Vec<u8>> = sizes.iter().enumerate()
            .map(|(i, (len, random))| if *random { noise(*len, i as u64) } else { vec![i as u8; *len] })
            .collect();
        let (raw, written, _) = round_trip(&payloads, from);
        prop_assert!(written <= raw);
    }
}
