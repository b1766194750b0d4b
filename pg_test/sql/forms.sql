-- An ID as a text in base 32 and as a UUID.

\pset format unaligned \pset tuples_only on \pset footer off \pset fieldsep ' | '
--
-- Base 32
--
-- in lower case too; I and L are 1, and O is 0
SELECT snowflake_to_base32(2235219950664999947), snowflake_to_base32(0), snowflake_to_base32(-1) \g (tuples_only=off)
SELECT snowflake_from_base32('1Y18RPF941S0B'), snowflake_from_base32('1y18rpf941s0b'),
       snowflake_from_base32('Ly18rpf94Is0b'), snowflake_from_base32('oOOO00000000O') \g (tuples_only=off)

-- a text that is not base 32
SELECT snowflake_from_base32('');
\echo :SQLSTATE
SELECT snowflake_from_base32('000000000000');
\echo :SQLSTATE
SELECT snowflake_from_base32('00000000000000');
\echo :SQLSTATE
SELECT snowflake_from_base32('000000000000U');
\echo :SQLSTATE
SELECT snowflake_from_base32('000000-000000');
\echo :SQLSTATE
SELECT snowflake_from_base32(' 000000000000');
\echo :SQLSTATE
SELECT snowflake_from_base32('G000000000000');
\echo :SQLSTATE

-- an error repeats only the beginning of a long text
SELECT snowflake_from_base32(repeat('a', 900));
SELECT snowflake_from_base32(repeat('a', 100000));
SELECT repeat('a', 900)::snowflake_layout;
SELECT repeat('a', 100000)::snowflake_layout;
SELECT (repeat('a', 900) || ':5')::snowflake_layout;
SELECT (repeat('a', 100000) || ':5')::snowflake_layout;
SELECT ('time:' || repeat('a', 900))::snowflake_layout;
SELECT ('time:' || repeat('a', 100000))::snowflake_layout;

--
-- UUID
--
SELECT snowflake_to_uuid(2235219950664999947), snowflake_from_uuid(snowflake_to_uuid(2235219950664999947));

-- beyond the 48 bits that it has for the time
SELECT snowflake_to_uuid(281474976710655, 'time:48 shard:0 seq:0 epoch:1970-01-01 unit:10ms');
\echo :SQLSTATE

-- a UUID that does not contain an ID: RFC 9562's own example, the lowest and the highest
SELECT snowflake_from_uuid('017f22e2-79b0-7cc3-98c4-dc0c0c07398f', 'instagram');
\echo :SQLSTATE
SELECT snowflake_from_uuid('00000000-0000-0000-0000-000000000000', 'instagram');
\echo :SQLSTATE
SELECT snowflake_from_uuid('ffffffff-ffff-ffff-ffff-ffffffffffff', 'instagram');
\echo :SQLSTATE
-- of version 4
SELECT snowflake_from_uuid('0194d3b8-1c00-4000-8000-000000000000', 'instagram');
\echo :SQLSTATE
-- of another variant
SELECT snowflake_from_uuid('0194d3b8-1c00-7000-c000-000000000000', 'instagram');
\echo :SQLSTATE
-- a bit above the shard
SELECT snowflake_from_uuid('0194d3b8-1c00-7000-8000-000000800000', 'instagram');
\echo :SQLSTATE
-- before the epoch
SELECT snowflake_from_uuid('00000000-0001-7000-8000-000000000000', 'instagram');
\echo :SQLSTATE
-- between two ticks
SELECT snowflake_from_uuid('0194d3b8-1c01-7000-8000-000000000000', 'sonyflake');
\echo :SQLSTATE
