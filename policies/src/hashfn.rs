//! The hash functions of PostgreSQL's `bigint`, bit for bit: where a hash router looks for a row.
//!
//! Ports of `common/hashfn.c` and `access/hash/hashfunc.c`, with their names. They have not changed since PostgreSQL 11, because
//! rows that are stored in hash partitions depend on them.

/// The seed with which PostgreSQL hashes the key of a hash partition: `HASH_PARTITION_SEED` (catalog/partition.h). This constant and the
/// next must never change: `pg_upgrade` leaves rows where they are.
pub const HASH_PARTITION_SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// What `hash_combine64` (common/hashfn.h) adds to the hash of a single key.
pub const HASH_COMBINE_ADDEND: u64 = 0x49A0_F4DD_15E5_A8E3;

/// The internal state before the key is added.
const INITIAL: u32 = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);

/// The macro `mix` of `common/hashfn.c`.
#[inline(always)]
const fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    [a, b, c]
}

/// The macro `final` of `common/hashfn.c`.
#[inline(always)]
const fn last_mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}

/// `hash_bytes_uint32()`.
#[inline]
const fn hash_bytes_uint32(key: u32) -> u32 {
    last_mix([INITIAL.wrapping_add(key), INITIAL, INITIAL])[2]
}

/// `hash_bytes_uint32_extended()`.
#[inline]
const fn hash_bytes_uint32_extended(key: u32, seed: u64) -> u64 {
    let [a, b, c] = seeded(seed);
    let [_, b, c] = last_mix([a.wrapping_add(key), b, c]);
    (b as u64) << 32 | c as u64
}

/// The internal state with a seed, which is not 0. With a constant seed, the compiler computes it.
#[inline(always)]
const fn seeded(seed: u64) -> [u32; 3] {
    mix([INITIAL.wrapping_add((seed >> 32) as u32), INITIAL.wrapping_add(seed as u32), INITIAL])
}

/// The 32 bits of a `bigint` that are hashed. A number that fits an `int` has the same ones as that.
#[inline]
const fn folded(value: i64) -> u32 {
    let high = (value >> 32) as u32;
    value as u32 ^ if value >= 0 { high } else { !high }
}

/// `hashint8()`: the hash in hash indexes and hash joins, and by which rows of distributed tables are placed.
#[inline]
pub const fn hashint8(value: i64) -> i32 {
    hash_bytes_uint32(folded(value)) as i32
}

/// `hashint8extended()`.
#[inline]
const fn hashint8extended(value: i64, seed: u64) -> u64 {
    hash_bytes_uint32_extended(folded(value), seed)
}

/// `hash_combine64()` (common/hashfn.h).
#[inline]
const fn hash_combine64(a: u64, b: u64) -> u64 {
    a ^ b.wrapping_add(HASH_COMBINE_ADDEND).wrapping_add(a << 54).wrapping_add(a >> 7)
}

/// The hash of a `bigint` that is the only key of a table partitioned by hash, with PostgreSQL's own operator class:
/// `compute_partition_hash_value()` (partitioning/partbounds.c). The row is in the partition whose remainder is this hash modulo
/// the modulus.
///
/// ```
/// use pg_snowflake_policies::hashfn::partition_hash;
///
/// // SELECT satisfies_hash_partition('t', 16, 8, 11637205501278089);
/// assert_eq!(partition_hash(11_637_205_501_278_089) % 16, 8);
/// ```
#[inline]
pub const fn partition_hash(id: i64) -> u64 {
    hash_combine64(0, hashint8extended(id, HASH_PARTITION_SEED))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From PostgreSQL 15.
    const VALUES: [i64; 10] =
        [0, 1, 2_147_483_647, 4_294_967_295, 4_294_967_296, 11_637_205_501_278_089, i64::MAX, -1, i64::MIN, -4_294_967_297];

    #[test]
    fn hashint8_is_that_of_a_server() {
        let of_a_server = [
            -272_711_505,
            -1_905_060_026,
            -96_758_253,
            385_747_274,
            -1_905_060_026,
            -1_563_866_378,
            -1_524_351_049,
            385_747_274,
            -96_758_253,
            -1_242_090_879,
        ];
        assert_eq!(VALUES.map(hashint8), of_a_server);
    }

    #[test]
    fn the_partitions_are_those_of_a_server() {
        const MODULI: [u64; 8] = [2, 3, 4, 7, 16, 64, 1000, 8192];
        let of_a_server = [
            (0, [0, 2, 0, 4, 0, 48, 768, 6576]),
            (1, [0, 2, 0, 5, 8, 56, 40, 4024]),
            (4_294_967_295, [1, 2, 1, 0, 5, 37, 869, 4005]),
            (11_637_205_501_278_089, [0, 1, 0, 3, 8, 24, 304, 5720]),
            (i64::MAX, [0, 0, 2, 3, 6, 54, 606, 6774]),
            (-1, [1, 2, 1, 0, 5, 37, 869, 4005]),
            (i64::MIN, [1, 1, 3, 0, 15, 63, 119, 383]),
            (-4_294_967_297, [0, 1, 2, 4, 10, 42, 114, 3626]),
            (2_147_483_647, [1, 1, 3, 0, 15, 63, 119, 383]),
            (4_294_967_296, [0, 2, 0, 5, 8, 56, 40, 4024]),
        ];
        for (id, remainders) in of_a_server {
            assert_eq!(MODULI.map(|modulus| partition_hash(id) % modulus), remainders, "{id}");
        }
    }
}
