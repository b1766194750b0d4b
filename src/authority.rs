//! May this server, in this session, generate these IDs? The one place that decides: by the shard, the fences, masked settings and the
//! lease. Whatever changes one of them raises [`version`], so that a permit is asked for once and compared for each ID.

use crate::denied::{Denied, Origin};
use crate::distributed;
use crate::fence;
use crate::lease;
use crate::postgres::backend_local::BackendLocal;
use crate::sequence::{Authority, Permit};
use crate::settings::{self, Setting};
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_policies::counter::Run;
use pg_snowflake_policies::homed::Class;

/// The shards of the IDs that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The one that the call passes.
    Shard(i32),
    /// That of this database, when the ID is generated.
    ThisDatabase,
    /// Those of homed IDs, which are in the layout.
    Class(Class),
}

impl Asked {
    /// A shard that a call can leave out.
    pub fn shard(shard_id: Option<i32>) -> Self {
        shard_id.map_or(Asked::ThisDatabase, Asked::Shard)
    }

    /// The shards, if the layout has them and the fences allow them. May read a table.
    pub fn class(self, layout: Layout) -> Result<Class, Denied> {
        let class = match self {
            Asked::Class(class) => class,
            Asked::Shard(shard) => in_layout(shard, layout)?,
            Asked::ThisDatabase => in_layout(shard_of_this_database()?, layout)?,
        };
        fence::check(class, || self.origin())?;
        Ok(class)
    }

    /// Where the shard comes from.
    fn origin(self) -> Origin {
        if self != Asked::ThisDatabase {
            Origin::Argument
        } else if settings::shard_id().is_some() {
            Origin::Setting
        } else if lease::assigned_shard().is_some() {
            Origin::Registry
        } else {
            Origin::Group
        }
    }
}

impl Authority for Asked {
    type Denied = Denied;

    fn prepare(self, layout: &Packed) -> Result<(), Denied> {
        // SAFETY: called between two calls of a sequence, which keep no permit.
        let is_permitted = unsafe { self.permit(layout.bits()) }.is_ok();
        if is_permitted { Ok(()) } else { self.class(**layout).map(drop) }
    }

    #[inline(always)]
    unsafe fn permit(self, layout: u64) -> Result<&'static mut Permit, Option<Denied>> {
        // SAFETY: as the caller promises.
        let permits = unsafe { PERMITS.get() };
        if !permits[0].is_for(self, layout) {
            move_to_front(permits, self, layout)?;
        }
        Ok(&mut permits[0].permit)
    }

    #[inline(always)]
    fn confirm(self, permit: &Permit, run: Run) -> bool {
        permit.version == version_with(lease::mark(permit.reading.layout(), run.last))
    }
}

/// A permit, and the shards that were asked for.
#[derive(Clone, Copy)]
struct Permitted {
    asked: Asked,
    permit: Permit,
}

impl Permitted {
    #[inline(always)]
    fn is_for(&self, asked: Asked, layout: u64) -> bool {
        self.asked == asked && self.permit.reading.layout().bits() == layout && is_current(&self.permit)
    }
}

/// The last permits, the latest first: a setting and a lease can be of thousands of shards, and a session can use some in turn.
static PERMITS: BackendLocal<[Permitted; 4]> = BackendLocal::new([Permitted { asked: Asked::ThisDatabase, permit: Permit::NONE }; 4]);

/// Whether nothing has changed that the permit depends on.
#[inline(always)]
pub fn is_current(permit: &Permit) -> bool {
    permit.version == version()
}

/// The number of changes of anything that a permit depends on. As long as it is the same, so is the permit.
#[inline(always)]
fn version() -> u64 {
    version_with(lease::version())
}

#[inline(always)]
fn version_with(of_leases: u64) -> u64 {
    // Each only grows, so equal sums are equal counts.
    settings::changes() + of_leases
}

/// Moves the permit to the front. If it is not known or no longer holds, it is asked for.
#[cold]
fn move_to_front(permits: &mut [Permitted], asked: Asked, layout: u64) -> Result<(), Option<Denied>> {
    if let Some(known) = permits.iter().position(|permitted| permitted.is_for(asked, layout)) {
        permits[..=known].rotate_right(1);
    } else {
        let decided = decide(asked, Packed::unpack(layout).ok_or(None)?)?;
        permits.rotate_right(1);
        permits[0] = decided;
    }
    Ok(())
}

fn decide(asked: Asked, layout: Packed) -> Result<Permitted, Option<Denied>> {
    // Read first, because what it counts may change meanwhile.
    let version = version();
    // With a known shard, class() reads no table: only the registry's assignment can vanish meanwhile, and with a registry, the group is
    // not used.
    if asked == Asked::ThisDatabase && known_shard().is_none() {
        return Err(None);
    }
    let class = asked.class(*layout)?;
    let ticks = lease::ticks_of(class, &layout)?;
    Ok(Permitted { asked, permit: Permit::new(class, layout, settings::policy(), ticks, version) })
}

fn in_layout(shard: i32, layout: Layout) -> Result<Class, Denied> {
    layout.checked_shard(shard).map(Class::one).ok_or(Denied::ShardOutOfRange { shard, layout })
}

/// The shard of this database: `pg_snowflake.shard_id`; else that which the registry of leases has assigned to this server; else,
/// without a registry, the server's group among the nodes of distributed tables.
pub fn shard_of_this_database() -> Result<i32, Denied> {
    known_shard().or_else(|| if is_group_of_node() { distributed::group() } else { None }).ok_or_else(unset)
}

/// [`shard_of_this_database`], as far as it is known without reading a table.
fn known_shard() -> Option<i32> {
    settings::shard_id().or_else(lease::assigned_shard).or_else(|| if is_group_of_node() { distributed::known_group() } else { None })
}

/// Whether the group is the shard, if nothing else is set.
fn is_group_of_node() -> bool {
    !Setting::ShardId.is_masked() && !lease::is_required()
}

fn unset() -> Denied {
    if Setting::ShardId.is_masked() {
        return Denied::SettingMasked(Setting::ShardId);
    }
    if lease::is_required() {
        return Denied::ShardNotAssigned;
    }
    Denied::ShardUnset
}
