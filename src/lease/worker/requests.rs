//! The claims and releases of the worker.
//!
//! A claim has a nonce, which stays the same until an answer counts: the registry answers a repeated claim as it answered the first one.

use super::{Which, Worker, new_nonce, third};
use crate::lease::activity::Activity;
use crate::lease::connection::{Deadline, Rows};
use crate::lease::known;
use crate::lease::problem::{Problem, Reason};
use crate::lease::session::{Answer, Request, Session, array, copied, serial, uuid};
use crate::lease::settings;
use crate::lease::shared::new_uuid;
use crate::postgres::report::Raise;
use crate::postgres::timestamp::{now_us, printed, unix_us_of};
use pg_snowflake_policies::holder::{Closed, Known, Refused, Slot};
use pg_snowflake_policies::pacing;
use pg_snowflake_policies::registry::MAX_SHARDS_OF_A_NODE;
use pgrx::{PgLogLevel, pg_sys};
use std::ffi::CString;

impl<'a> Worker<'a> {
    /// Claims leases, again under a new incarnation if one that was held is lost.
    pub(super) fn claim(&mut self, which: Which) -> Result<(), Problem> {
        let refused = match self.request_claim(which)? {
            Refused::Denied(refused) => refused,
            Refused::Lost(lost) => {
                let problem = Problem::Lost(lost);
                problem.report().log(PgLogLevel::WARNING);
                // That the leases are held again is worth a line, too.
                self.reported = problem.state();
                let closed = self.leases.holder.start_anew(new_uuid(), new_nonce());
                self.release_later(closed);
                self.release(Deadline::within(third()))?;
                match self.request_claim(Which::All)? {
                    Refused::Denied(refused) | Refused::Lost(refused) => refused,
                }
            }
        };
        if refused.is_empty() { Ok(()) } else { Err(Problem::Refused(refused)) }
    }

    /// One request. The shards that are held are not claimed again only because others are refused: each renewal writes a row of the
    /// registry.
    fn request_claim(&mut self, which: Which) -> Result<Refused<Reason>, Problem> {
        let is_claimed = |slot: &&Slot| which == Which::All || slot.serial.is_none();
        let claimed: Vec<Slot> = self.leases.holder.slots.iter().filter(is_claimed).copied().collect();
        // Without shards, the registry assigns one.
        if claimed.is_empty() && !self.leases.holder.awaits_a_shard() {
            return Ok(Refused::Denied(Vec::new()));
        }
        if self.session.is_none() {
            // Before the clock is read: a busy registry can take a while to connect.
            let limit = pacing::time_to_connect(self.failing_for(), settings::lease());
            self.session = Some(self.open_session(Deadline::within(limit))?);
        }
        let presented = self.known.as_ref().map(|known| known.presented(&claimed)).unwrap_or_default();
        let lease = settings::lease();
        let until_us = now_us() + lease.as_micros() as i64;
        let shards = array(claimed.iter().map(|slot| slot.shard.to_string()));
        let serials = array(claimed.iter().map(serial));
        let parameters = [
            shards,
            settings::node().to_owned(),
            uuid(self.leases.holder.incarnation),
            serials,
            uuid(self.leases.holder.nonce),
            printed(until_us),
            format!("{} ms", lease.as_millis()),
            array(presented.keys().map(u32::to_string)),
            array(presented.values().map(i64::to_string)),
            // SAFETY: a plain global of the server.
            printed(unix_us_of(unsafe { pg_sys::PgStartTime })),
        ];
        let rows = self.request(Request::Claim, parameters, Deadline::within(third()))?;
        let answers: Option<Vec<Answer>> = (0..rows.count()).map(|row| Answer::read(&rows, row)).collect();
        let answers = answers.filter(|answers| !answers.is_empty());
        let answers = answers.ok_or(Problem::UnexpectedAnswer)?;
        let Answer { registry, server, .. } = &answers[0];
        check_server(server)?;
        // The next claim opens a session, which checks it before it changes anything.
        self.check_registry(registry).inspect_err(|_| self.session = None)?;
        let registry = registry.clone();
        let copied = copied(&answers);
        let answers = answers.into_iter().map(|answer| (answer.shard, answer.verdict)).collect();
        let before = self.leases.holder.clone();
        let refused = self.leases.holder.apply(answers, new_nonce());
        // Before an ID is generated: after a restart, the server would accept another registry, and a copy of the data directory could have
        // the same serial. If it cannot be written, nothing is held, and the claim with the same nonce gets this answer again.
        let is_first = self.known.is_none();
        let known = self.known.get_or_insert_with(|| Known { registry, ..Known::default() });
        if (known.learn(&self.leases.holder.slots) || is_first)
            && let Err(unusable) = known::write(known)
        {
            self.leases.holder = before;
            self.known = None;
            return Err(unusable.into());
        }
        self.publish();
        match refused {
            // A server that has lost a lease first takes a new incarnation.
            Refused::Lost(lost) => Ok(Refused::Lost(lost)),
            Refused::Denied(refused) if refused.is_empty() && !copied.is_empty() => Err(Problem::Copied(copied)),
            denied => Ok(denied),
        }
    }

    /// Releases what has been closed. The mark is read after that was published.
    pub(super) fn release(&mut self, deadline: Deadline) -> Result<(), Problem> {
        while let Some(&Closed { incarnation, keep, .. }) = self.to_release.first() {
            let is_of_it = |closed: &&Closed| closed.incarnation == incarnation && closed.keep == keep;
            let held: Vec<Slot> = self.to_release.iter().filter(is_of_it).map(|closed| closed.slot).take(MAX_SHARDS_OF_A_NODE).collect();
            let parameters = [
                uuid(incarnation),
                array(held.iter().map(|slot| slot.shard.to_string())),
                array(held.iter().map(serial)),
                printed(self.shared.mark_us().saturating_add(1)),
                keep.to_string(),
            ];
            let rows = self.request(Request::Release, parameters, deadline)?;
            self.to_release.retain(|closed| !(is_of_it(&closed) && held.contains(&closed.slot)));
            if let Some(known) = &mut self.known
                && rows.number(0, 0) == Some(held.len() as i64)
            {
                let next = |slot: &Slot| Slot { serial: slot.serial.map(|serial| serial + 1), ..*slot };
                known.learn(&held.iter().map(next).collect::<Vec<Slot>>());
                known::write(known)?;
            }
        }
        Ok(())
    }

    /// The answer of the registry. The connection is kept if the registry has answered.
    fn request<const N: usize>(&mut self, request: Request, parameters: [String; N], deadline: Deadline) -> Result<Rows<'a>, Problem> {
        let parameters = parameters.map(|parameter| CString::new(parameter).unwrap_or_default());
        if let Some(session) = self.session.take() {
            let outcome = self.ask(session, request, &parameters, deadline);
            // A registry that has restarted since has closed the connection. A request that is repeated changes nothing.
            if !matches!(outcome, Err(Problem::NoAnswer(_))) || deadline.remaining().is_none() {
                return outcome;
            }
        }
        let session = self.open_session(deadline)?;
        self.ask(session, request, &parameters, deadline)
    }

    fn open_session(&mut self, deadline: Deadline) -> Result<Session<'a>, Problem> {
        Activity::Connecting.report();
        let session = Session::open(self.libpq, &self.conninfo, deadline)?;
        self.report_version(&session.version);
        // Before a claim changes anything in a registry that is not ours.
        self.check_registry(session.registry.as_deref().unwrap_or("missing"))?;
        Ok(session)
    }

    fn ask(&mut self, mut session: Session<'a>, request: Request, parameters: &[CString], deadline: Deadline) -> Result<Rows<'a>, Problem> {
        let outcome = match session.ask(request, parameters, deadline) {
            Err(error @ Problem::Error { .. }) => {
                self.leases.answered_at_us = Some(now_us());
                Err(session.explain(error, deadline)?)
            }
            Ok(rows) => {
                self.leases.answered_at_us = Some(now_us());
                Ok(rows)
            }
            no_answer => return no_answer,
        };
        self.session = Some(session);
        outcome
    }

    /// Refuses a registry that is not the one that this data directory has used.
    fn check_registry(&mut self, registry: &str) -> Result<(), Problem> {
        if self.known.is_none() {
            self.known = known::read()?;
        }
        match self.known.take_if(|known| known.registry != registry) {
            None => Ok(()),
            // It is read again the next time: a person may have it forgotten.
            Some(known) => {
                let (known, found) = (known.registry, registry.to_owned());
                Err(Problem::OtherRegistry { known, found })
            }
        }
    }
}

/// Refuses a registry on this server or a copy of it.
fn check_server(server: &str) -> Result<(), Problem> {
    // SAFETY: set when the server starts.
    let own = unsafe { call!(GetSystemIdentifier()) };
    if server == own.to_string() { Err(Problem::OwnRegistry) } else { Ok(()) }
}
