//! Leases, searched exhaustively: every order of steps and events within bounds, by the functions that the lease worker and the registry
//! run. The rules of the protocol hold the properties, and each rule is needed: without it, the search finds a counterexample.
//!
//! Random walks go further, without seeing everything. `docs/proof.md` has the results.
#![cfg(not(miri))]

mod exhaustive {
    pub mod model;
    pub mod rules;
    pub mod state;
}

use exhaustive::model::Event::{Copy, Crash, Failover, Lost, RegistryClock, Repeated, Restart, Retire, Rollback, ServerClock, TakeOver};
use exhaustive::model::{Action, Bounds, Event, KEPT, ORIGINAL_FIRST, Protocol, RECOVERS, SUCCESSOR, UNIQUE};
use exhaustive::rules::Rule;
use exhaustive::state::State;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stateright::{Checker, HasDiscoveries, Model};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

const ALL: &[&str] = &[UNIQUE, ORIGINAL_FIRST, SUCCESSOR, KEPT, RECOVERS];

/// Two servers without events, and a lease of one tick.
const CALM: Bounds = Bounds {
    servers: 2,
    length: 1,
    ticks: 2,
    messages: 1,
    events: 0,
    kinds: &[],
    pauses: false,
    closes: &[true],
    server_clocks: &[0],
    registry_clocks: &[0],
};

/// The same with a lease of two ticks and servers that give their shards up.
const GIVING_UP: Bounds = Bounds { length: 2, ticks: 1, closes: &[false], ..CALM };

/// The same as the first with servers that never close their leases.
const OPEN: Bounds = Bounds { closes: &[], ..CALM };

/// Searches all states within the bounds, or until a property is broken. One thread finds a shortest counterexample.
fn search(bounds: Bounds, properties: &'static [&'static str], without: Option<Rule>, threads: usize) -> impl Checker<Protocol> {
    let begin = Instant::now();
    let found =
        Protocol::new(bounds, properties, without).checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "{} states, {} steps, depth {}, at most {} ticks until IDs again, {:.1?}: {bounds:?}, without {without:?}",
        found.unique_state_count(),
        found.state_count(),
        found.max_depth(),
        found.model().slowest.load(Relaxed),
        begin.elapsed()
    );
    found
}

fn holds(bounds: Bounds) {
    let found = search(bounds, ALL, None, 2);
    let broken: Vec<(&str, Vec<Action>)> =
        found.discoveries().into_iter().map(|(property, path)| (property, path.into_actions())).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

/// The shortest counterexample to a property without the rule.
fn counterexample(rule: Rule, property: &'static [&'static str; 1], bounds: Bounds) -> Option<Vec<Action>> {
    let found = search(bounds, property, Some(rule), 1);
    let path = found.discovery(property[0])?;
    let actions = path.into_actions();
    println!("without {rule:?}: {actions:?}");
    Some(actions)
}

type Case = (Rule, &'static [&'static str; 1], Bounds, usize);

/// What breaks without each rule, the bounds within which it does, and the length of the shortest counterexample.
fn cases() -> [Case; 19] {
    let with = |bounds, kinds, events| Bounds { kinds, events, ..bounds };
    [
        (Rule::StartsAtTheLastEnd, &[UNIQUE], GIVING_UP, 6),
        (Rule::RenewalKeepsTheEnd, &[UNIQUE], Bounds { server_clocks: &[0, 1], ..with(GIVING_UP, &[ServerClock], 2) }, 10),
        (Rule::ReleaseEndsAtTheMark, &[UNIQUE], GIVING_UP, 6),
        (Rule::Serial, &[UNIQUE], Bounds { ticks: 2, ..GIVING_UP }, 8),
        (Rule::MarkAfterClosing, &[UNIQUE], GIVING_UP, 6),
        (Rule::MarkBeforeWriting, &[UNIQUE], GIVING_UP, 6),
        (Rule::CheckAfterMark, &[UNIQUE], Bounds { ticks: 0, pauses: true, ..GIVING_UP }, 15),
        (Rule::CrashEndsTheSpan, &[UNIQUE], with(CALM, &[Crash], 1), 5),
        (Rule::PersonKeepsTheEnd, &[UNIQUE], with(CALM, &[TakeOver], 1), 5),
        (Rule::QuietTime, &[UNIQUE], with(OPEN, &[Failover], 1), 9),
        (Rule::LostRows, &[UNIQUE], with(OPEN, &[Rollback], 1), 9),
        (Rule::ClockAhead, &[UNIQUE], Bounds { server_clocks: &[0, 3], ..with(OPEN, &[ServerClock, Failover], 2) }, 11),
        (Rule::NewIncarnation, &[ORIGINAL_FIRST], with(CALM, &[Copy], 1), 4),
        (Rule::NewNonce, &[UNIQUE], with(CALM, &[Copy], 1), 6),
        (Rule::FormerHolderFirst, &[ORIGINAL_FIRST], CALM, 3),
        (Rule::LearnsItsRelease, &[SUCCESSOR], with(CALM, &[Copy], 1), 5),
        (Rule::SameAnswer, &[KEPT], with(CALM, &[Lost], 1), 4),
        (
            Rule::ClockAfterLoss,
            &[UNIQUE],
            Bounds { server_clocks: &[0, 2], registry_clocks: &[0, 2], ..with(OPEN, &[ServerClock, RegistryClock, Failover], 4) },
            13,
        ),
        (Rule::NewestCallsFirst, &[UNIQUE], with(OPEN, &[Rollback], 1), 9),
    ]
}

#[test]
fn each_rule_is_needed() {
    let mut wrong = Vec::new();
    for (rule, property, bounds, length) in cases() {
        let found = counterexample(rule, property, bounds);
        if found.as_ref().map(Vec::len) != Some(length) {
            wrong.push(format!("{rule:?}, not {length} steps: {found:?}"));
        }
        // With more events, this takes longer: the larger bounds include it.
        if bounds.events < 2 {
            holds(bounds);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Clocks that the registry refuses, and that it tolerates.
const WRONG_CLOCKS: Bounds =
    Bounds { kinds: &[ServerClock, RegistryClock], server_clocks: &[-1, 0, 1, 3], registry_clocks: &[-1, 0, 3], ..CALM };

#[test]
fn the_properties_hold_with_an_event() {
    let both = Bounds { events: 1, closes: &[true, false], ..CALM };
    for kinds in [&[Lost, Repeated][..], &[Crash, Restart], &[Copy], &[TakeOver, Retire]] {
        holds(Bounds { kinds, ..both });
    }
    holds(Bounds { events: 1, ..WRONG_CLOCKS });
}

#[test]
fn the_properties_hold_if_the_registry_loses_rows() {
    holds(Bounds { kinds: &[Failover], events: 1, ..CALM });
    holds(Bounds { kinds: &[Rollback], events: 1, ..CALM });
}

#[test]
fn the_properties_hold_with_pauses() {
    holds(Bounds { ticks: 1, pauses: true, ..CALM });
}

const WITHOUT_LOSSES: &[Event] = &[Lost, Repeated, Crash, Restart, Copy, ServerClock, RegistryClock, TakeOver, Retire];
const ALL_EVENTS: &[Event] = &[Lost, Repeated, Crash, Restart, Copy, ServerClock, RegistryClock, TakeOver, Retire, Failover, Rollback];

/// Three servers with wrong clocks, to which everything happens again and again.
const ENDLESS: Bounds =
    Bounds { servers: 3, ticks: 20, messages: 4, events: u8::MAX, kinds: ALL_EVENTS, closes: &[true, false], ..WRONG_CLOCKS };

/// Walks through the states at random, far beyond what a search reaches; on some walks each fourth step is an event or a loss of rows, on
/// others each 32nd. Returns the steps that break a property.
fn walk(bounds: Bounds, properties: &'static [&'static str], without: Option<Rule>, walks: u32) -> Result<(), String> {
    let model = Protocol::new(bounds, properties, without);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(walks) };
    let draws = (2..6_u32, prop::collection::vec(any::<u32>(), 1..400));
    let walked = TestRunner::new(config).run(&draws, |(calm, draws)| {
        let (mut state, mut taken) = (State::initial(bounds.events), Vec::new());
        for draw in draws {
            let (mut steps, mut rare) = (Vec::new(), Vec::new());
            model.actions(&state, &mut steps);
            let is_rare = |step: &mut Action| step.is_event() || matches!(step, Action::Failover | Action::Rollback);
            rare.extend(steps.extract_if(.., is_rare));
            let mut from = if draw % (1 << calm) == 0 && !rare.is_empty() { rare } else { steps };
            if draw >> 8 & 3 != 0 && from.iter().any(|step| step.follows(taken.last())) {
                from.retain(|step| step.follows(taken.last()));
            }
            let step = from[(draw >> 10) as usize % from.len()];
            taken.push(step);
            state = model.next_state(&state, step).unwrap_or(state);
        }
        for property in model.properties() {
            let holds = (property.condition)(&model, &state);
            prop_assert!(holds, "broken: {}, by {:?}", property.name, taken);
        }
        Ok(())
    });
    walked.map_err(|error| error.to_string())
}

/// Losses of rows show only after many steps without other events.
#[test]
fn the_properties_hold_on_long_walks() {
    for length in 1..=3 {
        let endless = Bounds { length, ..ENDLESS };
        for (kinds, servers, pauses) in [
            (ALL_EVENTS, 3, false),
            (ALL_EVENTS, 3, true),
            (WITHOUT_LOSSES, 3, false),
            (&[Rollback], 2, false),
            (&[Failover], 2, false),
            (&[Failover], 3, false),
        ] {
            let bounds = Bounds { kinds, servers, pauses, ..endless };
            assert_eq!(walk(bounds, ALL, None, 400), Ok(()), "{bounds:?}");
        }
    }
}

/// The walks prove nothing if only one server ever gets the shard.
#[test]
fn on_long_walks_servers_pass_the_shard_on() {
    let bounds = Bounds { length: 2, ..ENDLESS };
    let broken = walk(bounds, &[UNIQUE], Some(Rule::StartsAtTheLastEnd), 400);
    assert!(broken.is_err_and(|error| error.contains("broken: no tick")));
}

/// The larger bounds. `EXHAUSTIVE` is the number of one of them; without it, all are searched.
#[test]
#[ignore = "takes minutes"]
fn the_properties_hold_within_larger_bounds() {
    let both = Bounds { closes: &[true, false], messages: 2, ..CALM };
    let clocks = Bounds { server_clocks: &[-1, 0, 1, 3], registry_clocks: &[-1, 0, 3], ..both };
    let bounds = [
        Bounds { kinds: ALL_EVENTS, events: 1, ticks: 3, ..clocks },
        Bounds { kinds: ALL_EVENTS, events: 1, length: 2, ticks: 5, closes: &[true], ..clocks },
        Bounds { kinds: WITHOUT_LOSSES, events: 2, ..clocks },
        Bounds { kinds: ALL_EVENTS, events: 2, messages: 1, closes: &[true], ..clocks },
        Bounds { kinds: &[Lost, Crash, Copy], events: 3, closes: &[true], ..both },
        Bounds { kinds: WITHOUT_LOSSES, events: 1, servers: 3, ..clocks },
        Bounds { kinds: WITHOUT_LOSSES, events: 1, length: 3, ticks: 3, closes: &[true], ..clocks },
        Bounds { kinds: WITHOUT_LOSSES, events: 1, pauses: true, ..WRONG_CLOCKS },
        Bounds { kinds: &[Failover, Rollback], events: 1, pauses: true, ..CALM },
        Bounds { length: 2, ticks: 3, pauses: true, messages: 2, ..CALM },
    ];
    let only = std::env::var("EXHAUSTIVE").ok().and_then(|only| only.parse().ok());
    let cases = cases().map(|(_, _, bounds, _)| bounds).into_iter().filter(|bounds| bounds.events > 1);
    for (index, bounds) in bounds.into_iter().chain(cases).enumerate() {
        if only.is_none_or(|only: usize| only == index) {
            holds(bounds);
        }
    }
}
