//! What the sequence asks of those who know who may generate IDs.

use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{Policy, Run};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Ticks;

/// Who may generate IDs of which ticks now, and how far ahead of the clock. Each call passes it.
///
/// Its functions are called for each ID without a guard, and [`confirm`](Authority::confirm) while the page is locked. So they raise no
/// error, and hold nothing with a destructor.
pub trait Authority: Copy {
    /// Why no ID may be generated.
    type Denied: Copy;

    /// How far IDs may run ahead of the clock, and how long a call waits for it.
    fn policy(self) -> Policy;

    /// The ticks in which IDs of each shard of the class may be generated now.
    fn ticks_of(self, class: Class, layout: &Layout) -> Result<Ticks, Self::Denied>;

    /// The same as of now or of an earlier call. [`is_current`](Authority::is_current) or [`confirm`](Authority::confirm) says whether
    /// they still apply.
    fn recent_ticks(self, class: Class, layout: &Layout) -> Option<Ticks>;

    /// Whether the ticks that the session knows of the class still apply.
    fn is_current(self, class: Class) -> bool;

    /// Makes known that the counters are used, and returns whether the ticks that they were cut to still apply: only then may they be
    /// written. Called under the lock of the page, after [`ticks_of`](Authority::ticks_of) or
    /// [`recent_ticks`](Authority::recent_ticks) for the same class and layout.
    fn confirm(self, class: Class, layout: &Layout, run: Run) -> bool;
}
