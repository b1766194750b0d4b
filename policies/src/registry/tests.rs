//! Limits to the microsecond and to the serial. The test `exhaustive` searches what the rules hold, and needs each of them; the script
//! `registry_claims` has the answers.

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
