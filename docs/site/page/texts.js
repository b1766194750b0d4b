// What the page says about IDs and layouts, without the page.

import { info, shardFormula, UNIT_US } from '../../../javascript/snowflake.js';

const UNITS_US = new Set(Object.values(UNIT_US).map(Number));

export const NAMES = { time: 'time', shard: 'shard', seq: 'seq', unused: 'unused' };

/** A number as people read it. */
export const count = (number) => number.toLocaleString('en-US');

/** The fields from the highest bit to the lowest, with the bits above them. */
export function fieldsOf({ timeBits, shardBits, seqBits, shardPlace, bits }) {
  const [shard, seq] = [{ field: 'shard', bits: shardBits }, { field: 'seq', bits: seqBits }];
  const below = shardPlace === 'above_seq' ? [shard, seq] : [seq, shard];
  return [{ field: 'unused', bits: 64 - bits }, { field: 'time', bits: timeBits }, ...below].filter(({ bits }) => bits > 0);
}

/** A time in UTC, to the microsecond if it has any. */
export function timeText(unixUs) {
  const date = new Date(Number(unixUs / 1_000n) - (unixUs % 1_000n < 0n ? 1 : 0));
  if (Number.isNaN(date.getTime())) return 'after the year 275760';
  const us = ((unixUs % 1_000n) + 1_000n) % 1_000n;
  const [day, time] = date.toISOString().replace(/^\+0*/, '').split('T');
  return `${day} ${time.slice(0, -1)}${us === 0n ? '' : String(us).padStart(3, '0')} UTC`;
}

/** The day of a time in UTC. */
export const dayText = (unixUs) => (/^after/.test(timeText(unixUs)) ? timeText(unixUs) : timeText(unixUs).split(' ')[0]);

/** Bits of a field, as digits. */
export const digits = (value, bits) => BigInt(value).toString(2).padStart(bits, '0');

export const DOUBTS = { future: 'in the future', 'first days': 'in its first 90 days', 'not an ID': 'not an ID: more bits' };

/** A layout as the argument of a function of the extension. Empty if it is the default. */
const argument = (layout) => (String(layout) === 'postgres' ? '' : `, '${layout}'`);

/** The SQL and the JavaScript that get the fields of an ID, with the extension and its module, and without. */
export function codeFor(id, layout) {
  const { shardBits, seqBits, shardPlace, unit, epochMs } = layout;
  const [low, seqShift, seqMask] = [shardBits + seqBits, shardPlace === 'above_seq' ? 0 : shardBits, 2 ** seqBits - 1];
  const us = Number(UNIT_US[unit]);
  const shifted = (by, n = '') => (by === 0 ? 'id' : `id >> ${by}${n}`);
  const inBrackets = (text) => (text === 'id' ? text : `(${text})`);
  const seq = (n) => (seqBits === 0 ? `0${n}` : `${inBrackets(shifted(seqShift, n))} & ${seqMask}${n}`);
  const tick = inBrackets(shifted(low));
  const seconds = unit === '1ms' ? `(${tick} + ${epochMs}) / 1000.0` : `${tick}${us === 1e6 ? '' : ` * ${us / 1e6}`} + ${epochMs / 1000}`;
  const tickOfBigInt = inBrackets(shifted(low, 'n'));
  const ms = us >= 1000 ? (us === 1000 ? tickOfBigInt : `${tickOfBigInt} * ${us / 1000}n`) : `${tickOfBigInt} / ${1000 / us}n`;
  return [
    ['SQL, with the extension', 'sql', `SELECT * FROM snowflake_decode(${id}${argument(layout)});`],
    [
      'SQL, without it',
      'sql',
      `SELECT to_timestamp(${seconds}) AS created_at,\n    ${shardFormula(layout)} AS shard_id,\n    ${seq('')} AS seq\n` +
        `FROM (VALUES (${id}::bigint)) AS rows (id);`,
    ],
    ['JavaScript, with the module', 'js', `import { decode } from 'pg-snowflake';\n\ndecode('${id}'${argument(layout)});`],
    [
      'JavaScript, without it',
      'js',
      `const id = BigInt('${id}');\nconst createdAt = new Date(Number(${ms} + ${epochMs}n));\n` +
        `const shardId = Number(${shardFormula(layout, 'javascript')});\nconst seq = Number(${seq('n')});`,
    ],
  ];
}

const TEN_MINUTES = 600;
const HASHES = 2 ** 32;

/** What follows from a layout: a name, a text, and whether it is good, if that can be said. */
export function figuresOf(layout, now = Date.now()) {
  const { shards, idsPerSecond, endsAt, endsUs, distinctFolds, isExactInJavaScript } = info(layout);
  const { bits, timeBits, seqBits, shardBits, shardPlace, unit } = layout;
  const ids = Math.min(TEN_MINUTES * idsPerSecond, 2 ** (timeBits + seqBits));
  const isEven = distinctFolds * 2 >= Math.min(ids, HASHES);
  const years = (endsAt - now) / (365.25 * 86_400_000);
  const isOver = years <= 0;
  const left = isOver ? 'in the past' : years < 1 ? 'within a year' : `in ${count(Math.floor(years))} years`;
  return [
    ['IDs a second', `${count(idsPerSecond)} for each sequence: ${count(2 ** seqBits)} in ${unit}`, null],
    ['Shards', shardBits === 0 ? '1: only one server may generate IDs' : `${count(shards)}, from 0 to ${count(shards - 1)}`, null],
    ['Last day', Number.isNaN(years) ? dayText(endsUs) : `${dayText(endsUs)}, ${left}`, !(years < 20)],
    [
      "PostgreSQL's hash",
      isEven
        ? `even: the ${count(ids)} IDs of a shard in ten minutes at that rate have ${count(distinctFolds)} hashes`
        : `uneven: the ${count(ids)} IDs of a shard in ten minutes at that rate have only ${count(distinctFolds)} hashes, so GROUP BY and hash ` +
          'joins over bulk loads can take minutes',
      isEven,
    ],
    [
      'id % n',
      shardPlace === 'lowest' && shardBits > 0
        ? 'uneven: the IDs of a shard have the same low bits, so id % 2 puts all of them into one bucket'
        : 'even: the low bits of the IDs of a shard vary',
      !(shardPlace === 'lowest' && shardBits > 0),
    ],
    [
      'JavaScript',
      isExactInJavaScript ? `a number holds it exactly: ${bits} bits` : `as a string or a BigInt: a number is exact up to 2^53, and IDs have ${bits} bits`,
      isExactInJavaScript ? true : null,
    ],
    ['Sign', `never negative: ${signOf(bits)}`, null],
  ];
}

function signOf(bits) {
  if (bits === 64) return 'it ends before the highest bit of the time would be set';
  return bits === 63 ? 'the highest bit is 0' : `the highest ${64 - bits} bits are 0`;
}

/** The SQL of a new table whose IDs have a layout. */
export function tableOf(layout) {
  const shard = layout.shardBits === 0 ? '0' : 'snowflake_current_shard()';
  const call = String(layout) === 'postgres' ? "snowflake_nextval('items_id_seq')" : `snowflake_nextval(\n        'items_id_seq', ${shard}, '${layout}')`;
  return `CREATE SEQUENCE items_id_seq;\nCREATE TABLE items (\n    id bigint PRIMARY KEY DEFAULT ${call}\n);\nALTER SEQUENCE items_id_seq OWNED BY items.id;`;
}

/** Why a found layout may be another one, in the words of `snowflake_find_layout`. */
export function doubtsOf(found) {
  const { layout, shards, otherTicksUs, candidates, spreadUs } = found;
  const doubts = [];
  if (otherTicksUs.length > 0 || !found.isUnitCertain) {
    const ticks = otherTicksUs.map(tickText).join(' or ') || 'longer or shorter';
    doubts.push(`A tick may also last ${ticks}: the generator has such ticks, or the times are too close together, too inexact, or too regular.`);
    if (otherTicksUs.some((us) => !UNITS_US.has(us))) doubts.push('If it does, no layout fits: see docs/import.md.');
  }
  if (!found.isDivisionCertain) {
    const likely = [{ layout, shards }, ...candidates].map(({ layout, shards }) => {
      const numbers = `${shards.slice(0, 5).join(', ')}${shards.length > 5 ? ', …' : ''}`;
      return `${layout} (${shards.length === 1 ? 'shard' : 'shards'} ${numbers}; ${count(info(layout).idsPerSecond)} IDs per second)`;
    });
    doubts.push(
      `The rows do not prove where the counter ends and the shard begins. The layout may be ${likely.join(', or ')}.`,
    );
  }
  if (found.countsIntoShard) {
    doubts.push('The shard number changes almost only where the counter restarts, so some of its bits may belong to the counter.');
  }
  if (!found.fitsMostOfTheTime) doubts.push('Most IDs do not fit the layout in more than a tenth of the time between the first ID and the last.');
  if (layout.shardBits === 0) doubts.push('The layout has no shard: only one server may generate its IDs.');
  if (spreadUs > 1_000_000) doubts.push(`The epoch is accurate to about ${count(Math.ceil(spreadUs / 1_000_000))} s, like the times of the rows.`);
  return doubts;
}

/** The length of a tick, as the units of layouts are written. */
function tickText(us) {
  if (us % 1_000_000 === 0) return `${us / 1_000_000}s`;
  return us % 1_000 === 0 ? `${us / 1_000}ms` : `${us}us`;
}

/** The statement that converts a column whose IDs have a layout. */
export function conversionOf(table, column, shard, layout) {
  const literal = (text) => `'${text.replaceAll("'", "''")}'`;
  return `SELECT snowflake_convert_column(${literal(table)}, ${literal(column)}, ${shard}, ${literal(String(layout))});`;
}
