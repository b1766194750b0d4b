//! What a server holds: the leases that the registry has granted it, and what its data directory knows of them. Functions of the
//! registry's answers; the lease worker sends the requests, publishes the slots, and writes the file.

use crate::lease::Span;
use crate::registry::Uuid;
use std::collections::BTreeMap;
use std::fmt;
use std::mem::{replace, take};

/// The lease of a shard, as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The shard.
    pub shard: u32,
    /// The span; empty if the lease is not held.
    pub span: Span,
    /// The serial of the registry's row; `None` if the lease is not held.
    pub serial: Option<i64>,
}

impl Slot {
    /// The slot of a lease that is not held.
    pub fn closed(shard: u32) -> Self {
        Slot { shard, span: Span::default(), serial: None }
    }
}

/// The leases of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    /// This run of the server.
    pub incarnation: Uuid,
    /// Whether the incarnation is older than the memory, which was made anew after a crash of a backend.
    pub is_inherited: bool,
    /// The nonce of the next claim: the same one until a claim has been answered.
    pub nonce: Uuid,
    /// Whether the registry chooses the shard. Then there is one slot, or none.
    pub is_assigned: bool,
    /// In ascending order of the shards.
    pub slots: Vec<Slot>,
}

/// A lease that is closed here, and may still be held at the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed {
    /// The run of the server that held it.
    pub incarnation: Uuid,
    /// The lease.
    pub slot: Slot,
    /// Whether the server wants the shard again.
    pub keep: bool,
}

/// The registry's answer for a shard: the span and the serial, or why there are none.
pub type Verdict<R> = Result<(Span, i64), R>;

/// What the registry has refused, each shard with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused<R> {
    /// The server did not hold any of them. Empty if nothing was refused.
    Denied(Vec<(u32, R)>),
    /// Those that the server held: another server has used its incarnation, a person has barred it, or the registry was rolled back. The
    /// server must take a new incarnation.
    Lost(Vec<(u32, R)>),
}

impl Holder {
    /// How many leases are held.
    pub fn held(&self) -> usize {
        self.slots.iter().filter(|slot| slot.serial.is_some()).count()
    }

    /// Whether the registry is to assign a shard with the next claim.
    pub fn awaits_a_shard(&self) -> bool {
        self.is_assigned && self.slots.is_empty()
    }

    /// Makes the slots those of the configuration, in ascending order; `None` if the registry is to assign a shard. Closes and returns the
    /// others, which the server gives up.
    pub fn follow(&mut self, wanted: Option<&[u32]>, nonce: Uuid) -> Vec<Closed> {
        match wanted {
            Some(shards) => {
                self.is_assigned = false;
                let is_dropped = |slot: &Slot| shards.binary_search(&slot.shard).is_err();
                let closed = self.close(is_dropped, false, nonce);
                let slots = take(&mut self.slots).into_iter();
                let mut slots: BTreeMap<u32, Slot> = slots.map(|slot| (slot.shard, slot)).collect();
                let slot = |&shard| slots.remove(&shard).unwrap_or(Slot::closed(shard));
                self.slots = shards.iter().map(slot).collect();
                closed
            }
            None if !self.is_assigned => {
                let closed = self.close(|_| true, false, nonce);
                self.slots.clear();
                self.is_assigned = true;
                closed
            }
            None => Vec::new(),
        }
    }

    /// Closes slots, and returns what they held. `nonce` is a new one.
    ///
    /// The caller publishes that before it reads the mark and releases them.
    pub fn close(&mut self, is_closed: impl Fn(&Slot) -> bool, keep: bool, nonce: Uuid) -> Vec<Closed> {
        let held_before = self.held();
        let incarnation = self.incarnation;
        let closed: Vec<Closed> = self
            .slots
            .iter_mut()
            .filter(|slot| is_closed(slot))
            .map(|slot| replace(slot, Slot::closed(slot.shard)))
            .filter(|held| held.serial.is_some())
            .map(|slot| Closed { incarnation, slot, keep })
            .collect();
        // A repeated claim would get a span that was closed, from a registry that has forgotten the release. While others are held,
        // a claim without an answer must be repeated to learn their serials.
        if held_before > 0 && self.held() == 0 {
            self.nonce = nonce;
        }
        closed
    }

    /// Takes over what the registry has granted. `nonce` is a new one.
    pub fn apply<R: Clone>(&mut self, answers: Vec<(u32, Verdict<R>)>, nonce: Uuid) -> Refused<R> {
        self.nonce = nonce;
        let (mut refused, mut lost) = (Vec::new(), Vec::new());
        for (shard, verdict) in answers {
            if self.awaits_a_shard() {
                self.slots.push(Slot::closed(shard));
            }
            let Ok(index) = self.slots.binary_search_by_key(&shard, |slot| slot.shard) else {
                continue;
            };
            let slot = &mut self.slots[index];
            match verdict {
                Ok((span, serial)) => *slot = Slot { span, serial: Some(serial), ..*slot },
                Err(reason) => {
                    if slot.serial.is_some() || self.is_inherited {
                        lost.push((shard, reason.clone()));
                    }
                    *slot = Slot::closed(shard);
                    refused.push((shard, reason));
                }
            }
        }
        self.is_inherited = false;
        if self.is_assigned && !refused.is_empty() {
            self.slots.clear();
        }
        if lost.is_empty() { Refused::Denied(refused) } else { Refused::Lost(lost) }
    }

    /// Closes and returns all slots, and takes a new incarnation.
    pub fn start_anew(&mut self, incarnation: Uuid, nonce: Uuid) -> Vec<Closed> {
        let closed = self.close(|_| true, true, nonce);
        self.incarnation = incarnation;
        closed
    }

    /// Closes and returns leases that begin too far in the future: they were granted while this server's clock and the registry's
    /// were ahead. If nothing of such a span has been used, its release ends it where the span before it ended.
    ///
    /// `latest_us` is the latest begin of a span that is granted by a right clock, `mark_us` as for a release.
    pub fn close_future(&mut self, latest_us: i64, mark_us: i64, nonce: Uuid) -> Vec<Closed> {
        let is_unused = |slot: &Slot| slot.span.starts_us > latest_us && mark_us <= slot.span.starts_us;
        self.close(is_unused, true, nonce)
    }
}

/// The most serials that a claim presents.
const MAX_PRESENTED: usize = 8192;

/// What the data directory knows of a registry: its identity, and the newest serial of each shard of which the server has held the
/// lease. A copy of the directory knows no later one.
///
/// ```
/// use pg_snowflake_policies::holder::Known;
///
/// let text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n5 1800000000000000\n7 1800000003333333\n";
/// let known = Known::of_pages(&[text.into()]).unwrap().unwrap();
/// assert_eq!(known.serials[&5], 1_800_000_000_000_000);
/// assert_eq!(known.newest(), Some((7, 1_800_000_003_333_333)));
/// assert_eq!(known.pages(8000), [text]);
/// let pages = known.pages(60);
/// assert_eq!(pages.len(), 2);
/// assert_eq!(Known::of_pages(&pages), Ok(Some(known.clone())));
/// let of_another = Known { registry: "2".into(), ..known.clone() };
/// assert_eq!(Known::of_pages(&[&of_another.pages(8000)[..], &pages].concat()), Ok(Some(of_another)));
/// assert!(Known::of_pages(&["f81d4fae\n5".into()]).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    /// The identity of the registry.
    pub registry: String,
    /// By shard.
    pub serials: BTreeMap<u32, i64>,
}

impl Known {
    /// The shard with the highest serial. A registry whose row has a lower one was rolled back.
    pub fn newest(&self) -> Option<(u32, i64)> {
        self.serials.iter().map(|(&shard, &serial)| (shard, serial)).max_by_key(|&(_, serial)| serial)
    }

    /// Learns the serials of the slots, and returns whether one is new.
    pub fn learn<'a>(&mut self, slots: impl IntoIterator<Item = &'a Slot>) -> bool {
        let before = self.serials.len();
        let mut is_new = false;
        for slot in slots {
            let Some(serial) = slot.serial else { continue };
            let known = self.serials.entry(slot.shard).or_insert(serial);
            is_new |= *known < serial;
            *known = serial.max(*known);
        }
        is_new || self.serials.len() > before
    }

    /// What a claim of these slots presents: the serials of those that are not held, and the newest one. A held one has its serial in
    /// the claim. Without slots, the registry assigns a shard that the server may know.
    pub fn presented(&self, claimed: &[Slot]) -> BTreeMap<u32, i64> {
        if claimed.is_empty() {
            let serials = self.serials.iter().map(|(&shard, &serial)| (shard, serial)).rev();
            return serials.take(MAX_PRESENTED).collect();
        }
        let not_held = claimed.iter().filter(|slot| slot.serial.is_none()).map(|slot| slot.shard);
        let known = |shard| self.serials.get(&shard).map(|&serial| (shard, serial));
        let held = |&(shard, serial): &(u32, i64)| claimed.iter().any(|slot| slot.shard == shard && slot.serial >= Some(serial));
        let newest = self.newest().filter(|newest| !held(newest));
        not_held.filter_map(known).chain(newest).take(MAX_PRESENTED).collect()
    }
}

impl Known {
    /// Its texts, each of at most `room` bytes. Each begins with the identity, so that one of another registry is recognized.
    pub fn pages(&self, room: usize) -> Vec<String> {
        let empty = || format!("{}\n", self.registry);
        let mut pages = vec![empty()];
        for (shard, serial) in &self.serials {
            let line = format!("{shard} {serial}\n");
            match pages.last_mut() {
                Some(page) if page.len() + line.len() <= room => page.push_str(&line),
                _ => pages.push(empty() + &line),
            }
        }
        pages
    }

    /// What the texts say that name the same registry as the first one; `None` if that is empty. Of a shard in two of them, the higher serial
    /// is the newer one.
    ///
    /// # Errors
    /// A line is not a shard and a serial.
    pub fn of_pages(pages: &[String]) -> Result<Option<Known>, InvalidLine> {
        let mut known: Option<Known> = None;
        for page in pages.iter().take_while(|page| !page.is_empty()) {
            let page: Known = page.parse()?;
            match &mut known {
                None => known = Some(page),
                Some(known) if known.registry == page.registry => {
                    for (shard, serial) in page.serials {
                        known.serials.entry(shard).and_modify(|known| *known = serial.max(*known)).or_insert(serial);
                    }
                }
                Some(_) => {}
            }
        }
        Ok(known)
    }
}

/// A line that is not a shard and a serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidLine(pub String);

impl fmt::Display for InvalidLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "invalid line: {}", self.0)
    }
}

impl std::error::Error for InvalidLine {}

impl std::str::FromStr for Known {
    type Err = InvalidLine;

    fn from_str(text: &str) -> Result<Self, InvalidLine> {
        let mut lines = text.lines();
        let registry = lines.next().unwrap_or_default().trim().to_owned();
        let pair = |line: &str| {
            let (shard, serial) = line.split_once(' ')?;
            Some((shard.parse().ok()?, serial.parse().ok()?))
        };
        let serials = lines.map(|line| pair(line).ok_or_else(|| InvalidLine(line.to_owned())));
        Ok(Known { registry, serials: serials.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { starts_us: 100, ends_us: 200 };

    fn holder(slots: &[(u32, Option<i64>)]) -> Holder {
        let slot = |&(shard, serial): &(u32, Option<i64>)| match serial {
            Some(_) => Slot { shard, span: SPAN, serial },
            None => Slot::closed(shard),
        };
        Holder { incarnation: 1, nonce: 1, slots: slots.iter().map(slot).collect(), ..Holder::default() }
    }

    fn shards(closed: &[Closed]) -> Vec<(u32, bool)> {
        closed.iter().map(|closed| (closed.slot.shard, closed.keep)).collect()
    }

    #[test]
    fn a_shard_that_is_removed_is_given_up() {
        let mut held = holder(&[(5, Some(1)), (6, None), (7, Some(2))]);
        assert_eq!(shards(&held.follow(Some(&[6, 7, 8]), 2)), [(5, false)]);
        assert_eq!(held, Holder { nonce: 1, ..holder(&[(6, None), (7, Some(2)), (8, None)]) });
        assert_eq!(shards(&held.follow(None, 2)), [(7, false)]);
        assert_eq!((held.slots.len(), held.is_assigned, held.nonce), (0, true, 2));
    }

    #[test]
    fn a_lease_that_was_held_and_is_refused_is_lost() {
        let mut held = holder(&[(5, Some(1)), (6, None)]);
        let answers = vec![(5, Ok((SPAN, 3))), (6, Err("no"))];
        assert_eq!(held.apply(answers, 2), Refused::Denied(vec![(6, "no")]));
        assert_eq!(held, Holder { nonce: 2, ..holder(&[(5, Some(3)), (6, None)]) });
        assert_eq!(held.apply(vec![(5, Err("no"))], 3), Refused::Lost(vec![(5, "no")]));
        // After a crash of a backend, the memory no longer has what was held.
        let mut held = Holder { is_inherited: true, ..holder(&[(5, None)]) };
        assert_eq!(held.apply(vec![(5, Err("no"))], 3), Refused::Lost(vec![(5, "no")]));
    }

    #[test]
    fn a_future_span_is_closed_unless_it_was_used() {
        for (latest_us, mark_us, is_closed) in [(99, 100, true), (100, 100, false), (99, 101, false)] {
            let mut held = holder(&[(5, Some(1))]);
            let closed = held.close_future(latest_us, mark_us, 2);
            assert_eq!(!closed.is_empty(), is_closed, "{latest_us}, {mark_us}");
        }
    }

    #[test]
    fn a_claim_presents_what_it_does_not_hold_and_the_newest_serial() {
        let held = holder(&[(5, Some(10)), (6, None)]);
        let mut known = Known::default();
        assert!(known.learn(&held.slots) && !known.learn(&held.slots));
        assert_eq!(known.presented(&held.slots), BTreeMap::new());
        known.serials.extend([(6, 3), (9, 7)]);
        assert_eq!(known.presented(&held.slots), BTreeMap::from([(6, 3)]));
        known.serials.insert(9, 11);
        assert_eq!(known.presented(&held.slots), BTreeMap::from([(6, 3), (9, 11)]));
        assert_eq!(known.presented(&[]), known.serials);
    }
}
