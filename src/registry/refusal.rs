//! The errors of the registry.

use crate::postgres::report::{Report, duration, quoted};
use crate::postgres::timestamp::printed;
use pg_snowflake_policies::registry::{Claim, MAX_LEASE_US, MIN_LEASE_US, Moment, NotYet};
use pgrx::PgLogLevel;
use pgrx::prelude::PgSqlErrorCode::{
    ERRCODE_ARRAY_ELEMENT_ERROR, ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_INVALID_PARAMETER_VALUE,
    ERRCODE_NULL_VALUE_NOT_ALLOWED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
    ERRCODE_PROGRAM_LIMIT_EXCEEDED, ERRCODE_UNDEFINED_OBJECT,
};

/// For the log of the registry's server.
#[track_caller]
pub fn rolled_back(quiet_until_us: i64) {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: "registry of leases was rolled back".into(),
        detail: Some(format!(
            "A server has seen a later state of its lease. New spans begin at {} at the earliest, when all leases that may be lost \
             have ended.",
            printed(quiet_until_us)
        )),
        hint: Some("Find out whether the registry was restored, or runs twice.".into()),
    }
    .log(PgLogLevel::LOG);
}

/// The quiet time does not end earlier.
#[track_caller]
pub fn quiet_time_goes_on(reason: NotYet, quiet_until_us: i64, now_us: i64) -> ! {
    let (message, detail, hint) = match reason {
        NotYet::AsSoonAsPossible if quiet_until_us <= now_us => (
            "registry has no quiet time",
            format!("The last one ended at {}.", printed(quiet_until_us)),
            "See the view snowflake_registry.leases for who has which shard.".to_owned(),
        ),
        NotYet::AsSoonAsPossible => (
            "quiet time of the registry cannot end earlier",
            format!(
                "It ends at {}. Until then, the registry may have lost leases that have not ended.",
                printed(quiet_until_us)
            ),
            "Wait until then. Servers that hold a lease renew it meanwhile.".to_owned(),
        ),
        NotYet::GrantedAt(at_us) => (
            "quiet time of the registry cannot end earlier",
            format!(
                "A lease was granted at {}, which is after now, {}. The clock was ahead then, or is behind now.",
                printed(at_us),
                printed(now_us)
            ),
            format!(
                "Correct the registry's clock. If it is right now, wait until {}. Servers that hold a lease renew it meanwhile.",
                printed(at_us.min(quiet_until_us))
            ),
        ),
    };
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: message.into(),
        detail: Some(detail),
        hint: Some(hint),
    }
    .raise()
}

/// The clock of a server, or the registry's, is wrong. `direction` is that of the server's clock.
pub fn clock_report(direction: &str, us: i64, claim: Claim, moment: Moment) -> Report {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!(
            "clock of node {} is too far {direction} the registry's",
            quoted(claim.node)
        ),
        detail: Some(format!(
            "It reads {}, which is {} {direction} the registry's clock, {}.",
            printed(claim.until_us.saturating_sub(claim.length_us)),
            duration(us),
            printed(moment.now_us)
        )),
        hint: Some("Correct the clock that is wrong, and keep both synchronized.".into()),
    }
}

/// All numbers are assigned.
#[track_caller]
pub fn no_free_shard(shards: i64) -> ! {
    Report {
        code: ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        message: "registry has no free shard number".into(),
        detail: Some(format!("Each of the {shards} numbers of the default layout has a node.")),
        hint: Some(
            "Free the numbers of nodes that are gone, in the registry: SELECT * FROM snowflake_registry.retire('…');".into(),
        ),
    }
    .raise()
}

/// Another role has claimed leases as that node.
#[track_caller]
pub fn node_of_another_role(node: &str, role: &str) -> ! {
    Report {
        code: ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("node {} belongs to another role", quoted(node)),
        detail: Some(format!("Role {} was the first to claim a lease as this node.", quoted(role))),
        hint: Some(
            "Use another pg_snowflake.node. If the role was replaced, run in the registry: UPDATE snowflake_registry.nodes SET \
             role = '…' WHERE node = '…';"
                .into(),
        ),
    }
    .raise()
}

/// No shard has that node.
#[track_caller]
pub fn no_such_node(node: &str) -> ! {
    Report {
        code: ERRCODE_UNDEFINED_OBJECT,
        message: format!("node {} does not exist", quoted(node)),
        detail: Some("The registry has no lease of that node.".into()),
        hint: Some("The view snowflake_registry.leases lists the nodes.".into()),
    }
    .raise()
}

/// The node is not gone.
#[track_caller]
pub fn holds_a_lease(node: &str, shard: i32, ends_us: i64) -> ! {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("node {} holds the lease of shard {shard}", quoted(node)),
        detail: Some(format!(
            "The lease ends at {}, if the node does not renew it.",
            printed(ends_us)
        )),
        hint: Some("Stop the server. Then retire the node when its lease has ended.".into()),
    }
    .raise()
}

/// An ordinary role owns the schema of the tables, or something in it.
#[track_caller]
pub fn ordinary_owner(owner: &str) -> ! {
    Report {
        code: ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: "registry of leases must be owned by a superuser".into(),
        detail: Some(format!(
            "Role {} owns the schema snowflake_registry, or a table or view in it, and could run functions as its superuser.",
            quoted(owner)
        )),
        hint: Some(
            "As a superuser, run ALTER SCHEMA snowflake_registry OWNER TO CURRENT_USER, and the same for its tables and its view.".into(),
        ),
    }
    .raise()
}

/// An element of `shard_ids` is null.
#[track_caller]
pub fn null_shard(name: &str, serials: &str) -> ! {
    Report {
        code: ERRCODE_NULL_VALUE_NOT_ALLOWED,
        message: format!("{name} must not contain nulls"),
        detail: None,
        hint: Some(format!(
            "Omit the element. In {serials}, a null means that the serial is not known."
        )),
    }
    .raise()
}

/// The array has rows and columns.
#[track_caller]
pub fn not_one_dimensional(name: &str, dimensions: i32) -> ! {
    Report {
        code: ERRCODE_ARRAY_ELEMENT_ERROR,
        message: format!("{name} must be a one-dimensional array"),
        detail: Some(format!("It has {dimensions} dimensions.")),
        hint: None,
    }
    .raise()
}

/// The array is too long.
#[track_caller]
pub fn too_many_elements(name: &str, elements: usize, limit: usize) -> ! {
    Report {
        code: ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        message: format!("{name} has too many elements"),
        detail: Some(format!("It has {elements}; the limit is {limit}.")),
        hint: None,
    }
    .raise()
}

/// The arrays do not belong together.
#[track_caller]
pub fn different_lengths(names: [&str; 2], lengths: [usize; 2]) -> ! {
    let ([shard_ids, serials], [of_shard_ids, of_serials]) = (names, lengths);
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("{shard_ids} and {serials} must have the same number of elements"),
        detail: Some(format!("They have {of_shard_ids} and {of_serials}.")),
        hint: Some(format!("Pass a null in {serials} for each serial that is not known.")),
    }
    .raise()
}

/// No layout has the shard.
#[track_caller]
pub fn negative_shard(shard: i32) -> ! {
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("shard ID {shard} is out of range"),
        detail: Some("The lowest shard ID is 0.".into()),
        hint: None,
    }
    .raise()
}

/// A shard is passed more than once.
#[track_caller]
pub fn duplicate_shard(name: &str, shard: i32) -> ! {
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("{name} contains {shard} more than once"),
        detail: None,
        hint: Some("Pass each shard ID once.".into()),
    }
    .raise()
}

/// The name could not be repeated in a message.
#[track_caller]
pub fn invalid_node(longest: usize) -> ! {
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: "invalid node name".into(),
        detail: Some(format!(
            "A node name has 1 to {longest} bytes, and no control characters such as line feeds."
        )),
        hint: Some("Set pg_snowflake.node on the server that calls.".into()),
    }
    .raise()
}

/// `until` is infinite.
#[track_caller]
pub fn infinite_end() -> ! {
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: "until must be finite".into(),
        detail: None,
        hint: Some("Pass the time of the server's clock plus the length of the lease.".into()),
    }
    .raise()
}

/// The length is not one of a lease.
#[track_caller]
pub fn length_out_of_range() -> ! {
    Report {
        code: ERRCODE_INVALID_PARAMETER_VALUE,
        message: "length of the lease is out of range".into(),
        detail: Some(format!(
            "The shortest lease is {}, the longest {}.",
            duration(MIN_LEASE_US),
            duration(MAX_LEASE_US)
        )),
        hint: Some("Set pg_snowflake.lease on the server that calls.".into()),
    }
    .raise()
}
