// Reads what people paste. A problem is an Error with one sentence.

import { layout, specOf } from '../../../javascript/snowflake.js';

const HIGHEST = 2n ** 63n - 1n;
const SHOWN = 40;
/** Of IDs or rows: the page reads all again at each keystroke, and this many take half a second. */
const MOST = 10_000;

/** Of a line with an ID and its time. A longer one has something else. */
const LONGEST = 200;

const tooMany = (things) => `There are more than ${MOST.toLocaleString('en')} ${things}: paste fewer of them.`;

const shown = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

/** An ID as people have it: in quotes, or as JavaScript writes a BigInt. */
export function idOf(text) {
  const digits = text.replace(/^["'`]|["'`]$/g, '').replace(/n$/, '');
  if (/^-\d+$/.test(digits)) throw new RangeError(`${shown(text)} is negative, and an ID is not.`);
  if (!/^\d+$/.test(digits)) throw new RangeError(`“${shown(text)}” is not an ID, which has digits only.`);
  if (digits.length > 100 || BigInt(digits) > HIGHEST) throw new RangeError(`${shown(text)} is too large for an ID: the highest is ${HIGHEST}.`);
  return BigInt(digits);
}

/** The IDs of a text, and the first problem. */
export function idsOf(text) {
  const ids = [];
  const words = text.split(/[\s,;|]+/).filter((word) => word !== '');
  let problem = words.length > MOST ? tooMany('IDs') : '';
  for (const word of words.slice(0, MOST)) {
    try {
      ids.push(idOf(word));
    } catch (error) {
      problem ||= error.message;
    }
  }
  return { ids, problem };
}

/** Whether a JavaScript number has probably been rounded to this ID: it has as many digits as such a number prints. */
export const isRounded = (id) => id > 2n ** 53n && String(Number(id)) === String(id);

/** A time in microseconds since 1970: ISO 8601, as psql prints it, or seconds, milliseconds or microseconds since 1970. */
export function timeOf(text) {
  if (/^\d{9,16}$/.test(text)) return Number(text) * (text.length <= 10 ? 1e6 : text.length <= 13 ? 1e3 : 1);
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s*(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d)?)?$/i.exec(text);
  const ms = parts ? Date.parse(`${parts[1]}T${parts[2] ?? '00:00'}:${parts[3] ?? '00'}Z`) : NaN;
  if (Number.isNaN(ms)) throw new RangeError(`“${shown(text)}” is not a time such as 2026-01-01 00:01:00.25+00.`);
  // Date.parse reads February 30 as March 2.
  if (!new Date(`${parts[1]}T00:00Z`).toISOString().startsWith(parts[1])) throw new RangeError(`${parts[1]} is not a day of the calendar.`);
  const us = Number((parts[4] ?? '').padEnd(6, '0').slice(0, 6));
  const offset = (Number(parts[7] ?? 0) * 60 + Number(parts[8] ?? 0)) * (parts[6] === '-' ? -1 : 1);
  return (ms - offset * 60_000) * 1_000 + us;
}

/** The rows of a text: IDs with their times. */
export function rowsOf(text) {
  const rows = [];
  for (const [index, line] of text.split('\n').entries()) {
    // What psql and CSV have around the rows.
    const isFrame = /^[\s|+-]*$/.test(line) || /^\s*\(\d+ rows?\)\s*$/.test(line) || (rows.length === 0 && /^[\s|"]*[a-z_]+/i.test(line));
    if (isFrame) continue;
    if (rows.length === MOST) throw new RangeError(tooMany('rows'));
    const [, id = '', time = ''] = /^[\s|"']*([^\s,;|"']+)["']?[\s,;|]*(.*?)[\s|]*$/.exec(line.slice(0, LONGEST)) ?? [];
    try {
      rows.push([idOf(id), timeOf(time.replace(/^["']|["']$/g, ''))]);
    } catch (error) {
      throw new RangeError(`Line ${index + 1}: ${error.message}`);
    }
  }
  return rows;
}

/** The layout of a text, or the problem of the text. */
export function layoutOf(text) {
  try {
    return { layout: layout(text), problem: '' };
  } catch (error) {
    return { problem: sentence(error.message) };
  }
}

/** A message of the module as a sentence. */
export const sentence = (message) => `${message[0].toUpperCase()}${message.slice(1)}`.replace(/\.?$/, '.');

/** The specification of a layout whose parts are typed in. */
export function designOf({ time, shard, seq, place, unit, epoch }) {
  for (const [name, text, least, most] of [['time', time, 1, 48], ['shard', shard, 0, 31], ['seq', seq, 0, 31]]) {
    if (!/^\d+$/.test(text) || Number(text) < least || Number(text) > most) throw new RangeError(`The ${name} has ${least} to ${most} bits.`);
  }
  const bits = Number(time) + Number(shard) + Number(seq);
  if (bits > 64) throw new RangeError(`The fields have ${bits} bits together, ${bits - 64} more than an ID.`);
  const parts = { timeBits: time, shardBits: shard, seqBits: seq, shardPlace: place, unit, epochMs: 0 };
  // The module reads the epoch: it refuses what is not a date.
  return specOf(parts).replace('epoch:1970-01-01', `epoch:${epoch.trim() || '?'}`);
}
