use proptest::prelude::*;

use super::*;

fn sealed(log_id: u64, start: Place, payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, payload) in payloads.iter().enumerate() {
        Record::new(i as u8, payload).put(100 + i as u64, &mut bytes);
    }
    Sealer { log_id, chain: 0 }.seal(&mut bytes, start, start);
    bytes
}

fn decode(log_id: u64, place: Place, bytes: &[u8]) -> Result<Head, Flaw> {
    let head = Head::decode(log_id, place, bytes.first_chunk().ok_or(Flaw::CutOff)?)?;
    head.check_body(bytes.get(HEAD..head.frame_len()).ok_or(Flaw::CutOff)?)?;
    Ok(head)
}

#[test]
fn a_group_is_chained_and_knows_its_start() {
    let bytes = sealed(9, Place(4096), &[b"", b"12345678", b"x"]);
    assert_eq!(bytes.len(), 32 + 40 + 40);
    let heads = [0, 32, 72].map(|at| decode(9, Place(4096 + at as u64), &bytes[at..]).unwrap());
    assert_eq!(heads.map(|h| h.group_start), [Place(4096); 3]);
    assert_eq!(heads.map(|h| h.chain), [0, heads[0].crc, heads[1].crc]);
    assert_eq!(heads.map(|h| (h.kind, h.tag, h.payload_len)), [(0, 100, 0), (1, 101, 8), (2, 102, 1)]);
}

#[test]
fn a_frame_is_none_at_another_place_or_in_another_log() {
    let bytes = sealed(9, Place(4096), &[b"abc"]);
    assert_eq!(decode(9, Place(4104), &bytes), Err(Flaw::HeadCrc));
    assert_eq!(decode(8, Place(4096), &bytes), Err(Flaw::HeadCrc));
    assert_eq!(decode(9, Place(4096), &[0; 64]), Err(Flaw::Unwritten));
}

#[test]
fn marks_are_found_at_every_place_of_a_frame() {
    let frame = sealed(1, Place(0), &[b""]);
    for before in (0..200).step_by(ALIGN) {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(&frame);
        assert_eq!(find_mark(&bytes), Some(before));
        bytes.pop();
        assert_eq!(find_mark(&bytes), None, "the head is cut off");
    }
    assert_eq!(find_mark(&[]), None);
}

#[test]
fn every_flipped_bit_and_every_cut_is_seen() {
    let bytes = sealed(1, Place(64), &[b"some payload"]);
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(1, Place(64), &bad).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(decode(1, Place(64), &bytes[..len]).is_err(), "length {len}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_nor_pass(bytes in prop::collection::vec(any::<u8>(), 0..200), place: u64, log_id: u64) {
        prop_assert!(decode(log_id, Place(place), &bytes).is_err());
    }

    /// Bytes that look right but for the checksums, so that decoding gets further.
    #[test]
    fn a_forged_head_never_panics(mut bytes in prop::collection::vec(any::<u8>(), HEAD..200), len in 0u32..400, group in 0u32..400) {
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..16].copy_from_slice(&group.to_le_bytes());
        bytes[18..20].copy_from_slice(&MARK.to_le_bytes());
        let place = Place(160);
        let crc = head_crc(5, place, bytes[..HEAD].try_into().unwrap());
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        let claimed = (u64::from(group) <= place.0).then_some(());
        prop_assert_eq!(Head::decode(5, place, bytes.first_chunk().unwrap()).ok().map(|_| ()), claimed);
        prop_assert!(decode(5, place, &bytes).is_err());
    }

    #[test]
    fn records_round_trip(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..6), start in 0u64..1 << 40) {
        let start = Place(start & !7);
        let refs: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let bytes = sealed(3, start, &refs);
        let mut at = 0;
        for payload in &payloads {
            let head = decode(3, Place(start.0 + at as u64), &bytes[at..]).unwrap();
            prop_assert_eq!(&bytes[at + HEAD..][..head.payload_len], &payload[..]);
            prop_assert_eq!(head.group_start, start);
            at += head.frame_len();
        }
        prop_assert_eq!(at, bytes.len());
    }
}
