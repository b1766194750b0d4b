// The part of the page that finds the layout of IDs with known times.

import { find } from '../../../javascript/find.js';
import { decode } from '../../../javascript/snowflake.js';
import { bitsOf, byId, element, scrollingTable, showProblem, snippet } from './dom.js';
import { rowsOf } from './input.js';
import { conversionOf, count, doubtsOf, timeText } from './texts.js';

const [rows, tableName, columnName] = ['rows', 'table', 'column'].map(byId);
const SHOWN = 20;

/** Shows the state of the page's address, and calls `changed` when somebody changes it, and `use` with an ID and its layout. */
export function show(state, changed, use) {
  rows.value = state.rows ?? '';
  read(use);
  const update = () => {
    read(use);
    changed({ rows: rows.value.trim() });
  };
  rows.oninput = tableName.oninput = columnName.oninput = update;
  byId('example-rows').onclick = () => {
    rows.value = exampleRows();
    update();
  };
}

/** Rows of a copy of Instagram's function, of shard 3, with 12 bits of shard and 11 of counter. One was inserted late. */
function exampleRows() {
  const [epoch, first] = [1_495_331_934_000n, 1_767_225_600_000n];
  return Array.from({ length: 24 }, (_, n) => {
    const ms = first + BigInt(n) * 3_723_501n;
    const id = ((ms - epoch) << 23n) | (3n << 11n) | ((2040n + BigInt(n)) % 2048n);
    return `${id}, ${timeText((n === 15 ? ms + 86_400_000n : ms) * 1_000n).replace(' UTC', '+00')}`;
  }).join('\n');
}

function read(use) {
  let samples = [];
  let found;
  let problem = '';
  try {
    samples = rowsOf(rows.value);
    if (samples.length > 0) found = find(samples);
  } catch (error) {
    problem = error.message;
  }
  showProblem('rows-problem', problem, rows);
  byId('found').hidden = !found;
  if (!found) return;
  const { layout, misfits, shards, newest, isSure } = found;
  const fitting = new Set(samples.map(([id]) => id)).size - misfits.length;
  byId('found-answer').replaceChildren(
    element('code', {}, String(layout)),
    ` fits ${count(fitting)} of ${count(fitting + misfits.length)} rows. Shards: ${shards.slice(0, SHOWN).join(', ')}${shards.length > SHOWN ? ', …' : ''}.`,
  );
  byId('found-bits').replaceChildren(...bitsOf(layout));
  const doubts = doubtsOf(found);
  byId('doubts').replaceChildren(
    ...(doubts.length > 0 ? doubts : ['The rows allow no other layout.']).map((text) => element('li', { className: doubts.length > 0 ? 'bad' : 'good' }, text)),
  );
  byId('misfits').replaceChildren(...misfitsOf(misfits, layout));
  byId('use-found').onclick = () => use(String(newest), String(layout));
  const { shardId } = decode(newest, layout);
  byId('found-code').replaceChildren(
    isSure
      ? snippet('SQL', 'sql', conversionOf(tableName.value, columnName.value, shardId, layout))
      : element('p', {}, 'The layout is not sure enough to convert the column. Compare more rows, hours or days apart.'),
  );
}

/** The time of an ID, which can have more bits than the layout if it does not fit. */
function timeIn(id, layout) {
  try {
    return timeText(decode(id, layout).unixUs);
  } catch {
    return 'not an ID';
  }
}

function misfitsOf(misfits, layout) {
  if (misfits.length === 0) return [];
  const shown = misfits.slice(0, SHOWN).map(([id, unixUs]) => [
    element('code', {}, String(id)),
    timeText(BigInt(Math.round(unixUs))),
    timeIn(id, layout),
  ]);
  const title = misfits.length > SHOWN ? `The first ${SHOWN} of ${count(misfits.length)} rows that do not fit` : 'Rows that do not fit';
  return scrollingTable(title, ['ID', 'time of the row', 'time of the ID'], shown);
}
