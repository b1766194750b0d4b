//! Limits to the microsecond and to the serial, and what the search of the test `exhaustive` does not model. The script `registry_claims`
//! has the answers.

use super::*;

const S: i64 = 1_000_000;
const NOW: i64 = 1_800_000_000 * S;
const LENGTH: i64 = 10 * S;

static ORIGIN: Origin = Origin { address: String::new(), started_at_us: Some(NOW) };

/// By incarnation 1 of `a`.
fn by(serial: Option<i64>, nonce: Uuid, now_us: i64) -> Claim<'static> {
    let until_us = now_us + LENGTH;
    Claim { node: "a", incarnation: 1, serial, known_serial: serial, nonce, until_us, length_us: LENGTH, origin: &ORIGIN }
}

/// The end of the span after its holder has released it.
fn end_after_release(row: &Lease, mark_us: i64) -> i64 {
    let request = Release { incarnation: 1, serial: row.serial, mark_us, keep: false };
    release(row, request, NOW).expect("the holder").span.ends_us
}

fn at(now_us: i64) -> Moment {
    Moment { now_us, quiet_until_us: i64::MIN }
}

/// From `NOW` for a lease's length.
fn held() -> Lease {
    claim(None, by(None, 1, NOW), at(NOW)).expect("a free shard")
}

fn span(starts_us: i64, ends_us: i64) -> Span {
    Span { starts_us, ends_us }
}

#[test]
fn the_holder_extends_its_span_or_begins_another() {
    let lease = held();
    assert_eq!(lease.span, span(NOW, NOW + LENGTH));
    let serial = Some(lease.serial);
    for (case, serial, nonce, now_us, expected) in [
        ("a renewal", serial, 2, NOW + 3 * S, span(NOW, NOW + 3 * S + LENGTH)),
        ("a clock that stepped back does not shorten it", serial, 2, NOW - S, lease.span),
        ("after the end: from the clock", serial, 2, NOW + 60 * S, span(NOW + 60 * S, NOW + 60 * S + LENGTH)),
        ("without its serial: from the end", None, 2, NOW + 3 * S, span(NOW + LENGTH, NOW + 3 * S + LENGTH)),
        ("the same request again", None, 1, NOW + S, lease.span),
    ] {
        let granted = claim(Some(&lease), by(serial, nonce, now_us), at(now_us)).unwrap();
        assert_eq!(granted.span, expected, "{case}");
        assert_eq!((granted == lease, granted.serial > lease.serial), (nonce == 1, nonce == 2), "{case}");
    }
}

#[test]
fn a_row_below_what_a_server_has_seen_is_lost() {
    let serial = Some(held().serial);
    let seen = held().serial;
    assert!(!is_lost(serial, seen, 0) && !is_lost(serial, seen - 1, 0));
    assert!(is_lost(serial, seen + 1, 0) && is_lost(None, seen, 0));
    // A quiet time has explained it.
    assert!(!is_lost(serial, seen + 1, seen + 1) && !is_lost(None, seen, seen));
}

#[test]
fn a_span_in_which_nothing_was_used_is_given_back() {
    let lease = held();
    // Both clocks are an hour ahead.
    let ahead_us = NOW + 3600 * S;
    let row = claim(Some(&lease), by(Some(lease.serial), 2, ahead_us), at(ahead_us)).unwrap();
    assert_eq!(row.span, span(ahead_us, ahead_us + LENGTH));
    assert_eq!(end_after_release(&row, NOW + S), NOW + LENGTH);
    assert_eq!(end_after_release(&row, ahead_us), NOW + LENGTH);
    assert_eq!(end_after_release(&row, ahead_us + 1), ahead_us + 1);
    let renewed = claim(Some(&row), by(Some(row.serial), 3, ahead_us + S), at(ahead_us + S)).unwrap();
    assert_eq!(end_after_release(&renewed, NOW), NOW + LENGTH);
}

/// It knows the serial before the row's.
#[test]
fn a_copy_from_before_the_release_waits_while_the_shard_is_kept() {
    let lease = held();
    let request = Release { incarnation: 1, serial: lease.serial, mark_us: NOW + S, keep: true };
    let row = release(&lease, request, NOW + 5 * S).expect("the holder");
    let ask = |known| Claim { incarnation: 2, known_serial: Some(known), ..by(None, 2, NOW + 5 * S) };
    assert!(claim(Some(&row), ask(row.serial), at(NOW + 5 * S)).is_ok());
    let kept = Refusal::KeptFor { node: "a".into(), until_us: NOW + 5 * S + LENGTH };
    assert_eq!(claim(Some(&row), ask(lease.serial), at(NOW + 5 * S)), Err(kept));
}

#[test]
fn two_servers_that_know_the_same_serial_learn_of_each_other() {
    let lease = held();
    let now_us = NOW + LENGTH;
    let by_another = |incarnation, known, now_us| Claim { incarnation, known_serial: Some(known), ..by(None, 2, now_us) };
    let row = claim(Some(&lease), by_another(2, lease.serial, now_us), at(now_us)).unwrap();
    let is_copy = |row: &Lease, known| match claim(Some(row), by_another(3, known, now_us + S), at(now_us + S)) {
        Err(Refusal::HeldBy { is_copy, .. }) => is_copy,
        other => panic!("{other:?}"),
    };
    assert!(is_copy(&row, lease.serial) && !is_copy(&row, lease.serial - 1));
    let other = Origin { address: "192.0.2.7".into(), started_at_us: Some(NOW + S) };
    let copy = Claim { origin: &other, ..by_another(3, lease.serial, now_us) };
    let noted = with_copy(&row, copy, at(now_us + S));
    // The holder renews with its serial, also after a gap, and the note stays for the rest of the span.
    for (later_us, note) in [(now_us + S, Some((other.clone(), now_us + S))), (now_us + 5 * LENGTH, None)] {
        let renewed = claim(Some(&noted), Claim { incarnation: 2, ..by(Some(row.serial), 4, later_us) }, at(later_us)).unwrap();
        assert!(note.is_none() || is_copy(&renewed, lease.serial));
        assert_eq!(renewed.copy, note);
    }
}

/// Its memory does not say that it held the lease: the answer to its claim was lost, or it has released the lease.
#[test]
fn a_server_that_holds_nothing_gets_a_lease_that_a_person_took_from_it_for_its_own_node() {
    let (lease, later) = (held(), NOW + LENGTH);
    for row in [take_over(Some(&lease), "a"), retire(&lease)] {
        assert_eq!(row.serial, lease.serial + 1);
        let ask = |serial, now_us| claim(Some(&row), by(serial, 2, now_us), at(now_us));
        assert_eq!(ask(Some(lease.serial), later), Err(Refusal::Barred));
        let ends_us = NOW + LENGTH;
        assert_eq!(ask(None, later - 1), Err(Refusal::EndsLater { ends_us }));
        assert_eq!(ask(None, later).unwrap().span, span(later, later + LENGTH));
    }
}

/// Those of a retired node, before its span has ended and after it.
#[test]
fn the_number_of_a_node_that_was_retired_is_assigned_after_its_span() {
    let assign = |rows: &[(i32, &'static str, bool)]| assign(rows.iter().copied(), "a", 3);
    assert_eq!(assign(&[(0, "b", true), (1, "", false)]), Some(2));
    assert_eq!(assign(&[(0, "", false), (1, "", true)]), Some(1));
}

#[test]
fn a_wrong_clock_is_refused() {
    let ask_for = |length_us, behind_us| {
        let until_us = NOW - behind_us + length_us;
        claim(None, Claim { until_us, length_us, ..by(None, 1, NOW) }, at(NOW))
    };
    for (length_us, most_behind_us) in [(LENGTH, S), (3 * S, S), (2 * S, 666_666), (MIN_LEASE_US, 333_333)] {
        let ask = |behind_us| ask_for(length_us, behind_us);
        assert!(ask(-S).is_ok());
        assert_eq!(ask(-S - 1), Err(Refusal::ClockAhead { us: S + 1 }));
        assert!(ask(most_behind_us).is_ok());
        for us in [most_behind_us + 1, length_us, NOW] {
            assert_eq!(ask(us), Err(Refusal::ClockBehind { us }));
        }
    }
    for (until_us, is_behind) in [(i64::MIN, true), (i64::MAX, false)] {
        let claimed = claim(None, Claim { until_us, ..by(None, 1, NOW) }, at(NOW));
        let refusal = claimed.expect_err("centuries");
        assert_eq!(matches!(refusal, Refusal::ClockBehind { .. }), is_behind);
        assert_eq!(matches!(refusal, Refusal::ClockAhead { .. }), !is_behind);
    }
}
