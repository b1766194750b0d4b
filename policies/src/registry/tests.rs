//! The rules case by case, beside those that the script `registry_claims` shows on a server.

use super::*;

const S: i64 = 1_000_000;
const NOW: i64 = 1_800_000_000 * S;
const LENGTH: i64 = 10 * S;

static ORIGIN: Origin = Origin { address: String::new(), started_at_us: Some(NOW) };

fn by(node: &str, incarnation: Uuid, serial: Option<i64>, nonce: Uuid, now_us: i64) -> Claim<'_> {
    Claim { node, incarnation, serial, known_serial: serial, nonce, until_us: now_us + LENGTH, length_us: LENGTH, origin: &ORIGIN }
}

/// The same by a server whose data directory has the serial.
fn knowing(known: i64, claim: Claim) -> Claim {
    Claim { known_serial: Some(known), ..claim }
}

fn by_its_mark(lease: &Lease, incarnation: Uuid, serial: i64, mark_us: i64) -> Option<Lease> {
    release(lease, Release { incarnation, serial, mark_us, keep: false }, NOW)
}

fn at(now_us: i64) -> Moment {
    Moment { now_us, quiet_until_us: i64::MIN }
}

/// Held by incarnation 1 of `a`, from `NOW` for a lease's length.
fn held() -> Lease {
    claim(None, by("a", 1, None, 1, NOW), at(NOW)).expect("a free shard")
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
        let granted = claim(Some(&lease), by("a", 1, serial, nonce, now_us), at(now_us)).unwrap();
        assert_eq!(granted.span, expected, "{case}");
        assert_eq!((granted == lease, granted.serial > lease.serial), (nonce == 1, nonce == 2), "{case}");
    }
}

#[test]
fn another_server_waits_for_the_end() {
    let lease = held();
    let ask = |now_us| claim(Some(&lease), by("b", 2, None, 2, now_us), at(now_us));
    let held_by = Refusal::HeldBy { node: "a".into(), ends_us: NOW + LENGTH, origin: ORIGIN.clone(), is_copy: false };
    assert_eq!(ask(NOW + LENGTH - 1), Err(held_by));
    let kept = Refusal::KeptFor { node: "a".into(), until_us: NOW + 2 * LENGTH };
    assert_eq!(ask(NOW + LENGTH), Err(kept.clone()));
    assert_eq!(ask(NOW + 2 * LENGTH - 1), Err(kept));
    assert_eq!(ask(NOW + 2 * LENGTH).unwrap().span, span(NOW + 2 * LENGTH, NOW + 3 * LENGTH));
}

#[test]
fn the_former_holder_comes_first() {
    let lease = held();
    let release = |keep| {
        let request = Release { incarnation: 1, serial: lease.serial, mark_us: NOW + S, keep };
        release(&lease, request, NOW + 5 * S).expect("the holder")
    };
    let ask = |row: &Lease, known: i64, now_us| claim(Some(row), knowing(known, by("a", 2, None, 2, now_us)), at(now_us));
    for (row, since_us) in [(&lease, NOW + LENGTH), (&release(true), NOW + 5 * S)] {
        let until_us = since_us + LENGTH;
        let kept = Refusal::KeptFor { node: "a".into(), until_us };
        for now_us in [since_us, until_us - 1] {
            assert_eq!(ask(row, row.serial, now_us).unwrap().span.starts_us, now_us);
            assert_eq!(ask(row, row.serial - 1, now_us), Err(kept.clone()));
        }
        assert!(ask(row, row.serial - 1, until_us).is_ok());
    }
    // A server that gives the shard up leaves it to anybody.
    assert!(ask(&release(false), 0, NOW + 5 * S).is_ok());
    // A person decides who gets it.
    let reserved = take_over(Some(&lease), "a");
    assert!(ask(&reserved, 0, NOW + LENGTH).is_ok());
}

#[test]
fn two_servers_that_know_the_same_serial_learn_of_each_other() {
    let lease = held();
    let ask = |row: &Lease, incarnation, known, now_us| claim(Some(row), knowing(known, by("a", incarnation, None, 2, now_us)), at(now_us));
    let now_us = NOW + LENGTH;
    let row = ask(&lease, 2, lease.serial, now_us).unwrap();
    let is_copy = |row: &Lease, known| match ask(row, 3, known, now_us + S) {
        Err(Refusal::HeldBy { is_copy, .. }) => is_copy,
        other => panic!("{other:?}"),
    };
    assert!(is_copy(&row, lease.serial) && !is_copy(&row, lease.serial - 1));
    let other = Origin { address: "192.0.2.7".into(), started_at_us: Some(NOW + S) };
    let copy = Claim { origin: &other, ..by("a", 3, None, 3, now_us) };
    let noted = with_copy(&row, copy, at(now_us + S));
    // The holder renews with its serial, also after a gap, and the note stays.
    for later_us in [now_us + S, now_us + 5 * LENGTH] {
        let renewal = by("a", 2, Some(row.serial), 4, later_us);
        let renewed = claim(Some(&noted), renewal, at(later_us)).unwrap();
        assert!(is_copy(&renewed, lease.serial) || later_us > now_us + S);
        let note = (later_us == now_us + S).then(|| (other.clone(), now_us + S));
        assert_eq!(renewed.copy, note);
    }
}

#[test]
fn a_lease_is_not_renewed_under_another_name() {
    let lease = held();
    let ask = |node, serial| claim(Some(&lease), by(node, 1, serial, 2, NOW + S), at(NOW + S)).map(|lease| lease.node);
    assert_eq!(ask("a", Some(lease.serial)), Ok("a".into()));
    assert_eq!(ask("b", Some(lease.serial)), Err(Refusal::Superseded));
    assert!(matches!(ask("b", None), Err(Refusal::HeldBy { node, .. }) if node == "a"));
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
    let renewal = by("a", 1, Some(lease.serial), 2, ahead_us);
    let row = claim(Some(&lease), renewal, at(ahead_us)).unwrap();
    assert_eq!(row.span, span(ahead_us, ahead_us + LENGTH));
    let released = |mark_us| by_its_mark(&row, 1, row.serial, mark_us).unwrap().span.ends_us;
    assert_eq!(released(NOW + S), NOW + LENGTH);
    assert_eq!(released(ahead_us), NOW + LENGTH);
    assert_eq!(released(ahead_us + 1), ahead_us + 1);
    let renewal = by("a", 1, Some(row.serial), 3, ahead_us + S);
    let renewed = claim(Some(&row), renewal, at(ahead_us + S)).unwrap();
    assert_eq!(by_its_mark(&renewed, 1, renewed.serial, NOW).unwrap().span.ends_us, NOW + LENGTH);
}

#[test]
fn a_wrong_clock_is_refused() {
    let ask_for = |length_us, behind_us| {
        let until_us = NOW - behind_us + length_us;
        claim(None, Claim { until_us, length_us, ..by("a", 1, None, 1, NOW) }, at(NOW))
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
        let claimed = claim(None, Claim { until_us, ..by("a", 1, None, 1, NOW) }, at(NOW));
        let refusal = claimed.expect_err("centuries");
        assert_eq!(matches!(refusal, Refusal::ClockBehind { .. }), is_behind);
        assert_eq!(matches!(refusal, Refusal::ClockAhead { .. }), !is_behind);
    }
}

/// Its memory does not say that it held the lease: the answer to its claim was lost, or it has released the lease.
#[test]
fn a_server_that_holds_nothing_gets_a_lease_that_a_person_took_from_it_for_its_own_node() {
    let (lease, later) = (held(), NOW + LENGTH);
    for row in [take_over(Some(&lease), "a"), retire(&lease)] {
        let ask = |serial, now_us| claim(Some(&row), by("a", 1, serial, 2, now_us), at(now_us));
        assert_eq!(ask(Some(lease.serial), later), Err(Refusal::Barred));
        let ends_us = NOW + LENGTH;
        assert_eq!(ask(None, later - 1), Err(Refusal::EndsLater { ends_us }));
        assert_eq!(ask(None, later).unwrap().span, span(later, later + LENGTH));
    }
}

#[test]
fn a_restarted_registry_grants_new_spans_after_its_quiet_time() {
    let (lease, later) = (held(), NOW + 2 * LENGTH);
    let moment = Moment { now_us: later, quiet_until_us: later + LENGTH };
    let next = claim(Some(&lease), by("b", 2, None, 2, later), moment).unwrap();
    assert_eq!(next.span, span(later + LENGTH, later + LENGTH));
    let renewal = by("b", 2, Some(next.serial), 3, later + S);
    let renewed = claim(Some(&next), renewal, Moment { now_us: later + S, ..moment }).unwrap();
    assert_eq!(renewed.span, span(later + LENGTH, later + S + LENGTH));
}

/// A registry that then loses the lease grants no other server a part of the span.
#[test]
fn a_span_ends_before_a_quiet_time_that_begins_after_it_is_granted() {
    let lease = held();
    let longest_us = NOW + LENGTH + S;
    let of_quiet_time = Moment { now_us: NOW, quiet_until_us: longest_us };
    for (row, claimed, moment) in [
        (None, by("a", 1, None, 1, NOW + S), at(NOW)),
        (None, by("a", 1, None, 1, NOW), of_quiet_time),
        (Some(&lease), by("a", 1, Some(lease.serial), 2, NOW + S), at(NOW)),
        (Some(&lease), by("a", 1, None, 2, NOW - S), at(NOW)),
    ] {
        let granted = claim(row, claimed, moment).unwrap();
        assert!(granted.span.ends_us <= longest_us, "{granted:?}");
    }
}

#[test]
fn a_node_gets_the_number_that_it_had_or_the_lowest_that_nobody_had() {
    let assign = |rows: &[(i32, &'static str, bool)]| assign(rows.iter().copied(), "a", 3);
    assert_eq!(assign(&[]), Some(0));
    assert_eq!(assign(&[(1, "c", true), (0, "b", true)]), Some(2));
    assert_eq!(assign(&[(0, "b", true), (2, "c", true)]), Some(1));
    assert_eq!(assign(&[(0, "b", true), (2, "a", false)]), Some(2));
    // A number that it listed, and that no layout of the registry's has.
    assert_eq!(assign(&[(7, "a", true), (0, "b", true), (5, "a", false)]), Some(1));
    assert_eq!(assign(&[(0, "b", true), (1, "c", true), (2, "d", true), (9, "e", true)]), None);
    // That of a retired node whose span has ended.
    assert_eq!(assign(&[(0, "", false), (1, "", true)]), Some(1));
    assert_eq!(assign(&[(0, "b", true), (1, "", false)]), Some(2));
}
