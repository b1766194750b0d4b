//! The rules of the protocol, and two of its conditions, which docs/proof.md lists. The model can leave one out; the product cannot.

/// A rule, or a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// 1. A new span begins where the last one ended, or later.
    StartsAtTheLastEnd,
    /// 2. A renewal does not lower the end.
    RenewalKeepsTheEnd,
    /// 3. A release ends the span above all that was used.
    ReleaseEndsAtTheMark,
    /// 4. A request of the holder needs the serial of the row.
    Serial,
    /// 5. The worker publishes that a lease is closed, and then reads the mark.
    MarkAfterClosing,
    /// 6. A backend raises the mark before it writes.
    MarkBeforeWriting,
    /// 7. A backend checks its span again after it has raised the mark.
    CheckAfterMark,
    /// 8. After a crash of a backend, which loses the mark, the next span begins where the span ends.
    CrashEndsTheSpan,
    /// 9. `take_over` and `retire` do not lower the end.
    PersonKeepsTheEnd,
    /// 10. A registry that has another start than at its last call has a quiet time.
    QuietTime,
    /// 11. So has one whose row is older than what a server has seen of it.
    LostRows,
    /// 12. A server whose clock is ahead by more than the tolerance is refused.
    ClockAhead,
    /// 13. Each run of a server has an incarnation of its own.
    NewIncarnation,
    /// 14. Each memory has a nonce of its own.
    NewNonce,
    /// 15. The former holder of a lease comes first.
    FormerHolderFirst,
    /// 16. A claim that arrives again has the same answer.
    SameAnswer,
    /// 17. The holder learns the serial of its release, by WAL, and so does a standby that has all of that.
    LearnsItsRelease,
    /// A condition: the clock of a registry that has lost grants is not behind the time of a lost one, until its first call.
    ClockAfterLoss,
    /// A condition: of the servers, the one that has learnt the newest serial calls first when rows were rolled back without a new start.
    NewestCallsFirst,
}
