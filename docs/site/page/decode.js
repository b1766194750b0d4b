// The part of the page that takes IDs apart.

import { candidates, generators } from '../../../javascript/generators.js';
import { decode, encode, layout } from '../../../javascript/snowflake.js';
import { bitsOf, byId, element, scrollingTable, showProblem, snippet, swatch, table } from './dom.js';
import { idsOf, isRounded, layoutOf, sentence } from './input.js';
import { codeFor, digits, DOUBTS, timeText } from './texts.js';

const [ids, other] = [byId('ids'), byId('other')];
let shownIds = []; // what is pasted
let chosen = ''; // the layout that somebody has chosen, or empty for the likely one

/** Shows the state of the page's address, and calls `changed` when somebody changes it. */
export function show(state, changed) {
  ids.value = state.id ?? examples('postgres', 1);
  chosen = state.as ?? '';
  other.value = isPreset(chosen) ? '' : chosen;
  read();
  const update = () => {
    read();
    changed({ id: ids.value.trim(), as: chosen });
  };
  ids.oninput = update;
  other.oninput = () => {
    chosen = other.value.trim();
    update();
  };
  for (const button of document.querySelectorAll('[data-preset]')) {
    button.onclick = () => {
      ids.value = examples(button.dataset.preset, Number(button.dataset.count ?? 1));
      chosen = other.value = '';
      update();
    };
  }
  byId('generators').replaceChildren(...generators.map(({ name, spec }) => element('option', { value: spec }, name)));
  byId('readings').onchange = (event) => {
    chosen = event.target.value;
    other.value = '';
    // The table stays, and with it the focus.
    showFields();
    changed({ id: ids.value.trim(), as: chosen });
  };
}

/** IDs as a server with shard 5 would generate them now. Old ones would look like those of another preset. */
const examples = (preset, count) => Array.from({ length: count }, (_, n) => encode({ createdAt: Date.now(), shardId: 5, seq: 14 + n }, preset)).join('\n');

const isPreset = (name) => layoutOf(name).layout !== undefined && !name.includes(':');

function read() {
  const { ids: found, problem } = idsOf(ids.value);
  showProblem('ids-problem', problem, ids);
  shownIds = found;
  byId('decoded').hidden = found.length === 0;
  if (found.length === 0) return;
  const { candidates: all, fits } = candidates(found[0]);
  const likely = all[0].name;
  const rows = all.map(({ name, spec, doubt, unixUs, shardId, seq }) => {
    const choice = element('input', { type: 'radio', name: 'preset', value: spec ?? name, disabled: doubt === 'not an ID' });
    const label = element('label', {}, choice, element('code', {}, name));
    const cells = doubt === 'not an ID' ? ['–', '–', '–'] : [timeText(unixUs), String(shardId), String(seq)];
    return [label, ...cells, doubt ? DOUBTS[doubt] : name === likely && fits ? 'the most likely' : ''];
  });
  if (!fits) rows.push(['none of these', '', '', '', 'if the ID was generated in the last 90 days']);
  byId('readings').replaceChildren(table(['layout', 'time', 'shard', 'seq', ''], rows));
  showFields();
}

/** The first ID in the layout that is chosen, or likely. */
function showFields() {
  const [id] = shownIds;
  const { candidates: [likely], fits } = candidates(id);
  const likelyLayout = layout(likely.spec ?? likely.name);
  let { layout: of, problem } = layoutOf(chosen || String(likelyLayout));
  let fields;
  if (of) {
    try {
      fields = decode(id, of);
    } catch (error) {
      problem = sentence(error.message);
    }
  }
  showProblem('other-problem', chosen ? problem : '', other);
  if (!fields) {
    // The likely one is shown meanwhile, if the ID is one of any preset.
    of = likelyLayout;
    if (likely.doubt === 'not an ID') return hideFields();
    fields = decode(id, of);
  }
  const isLikely = String(of) === String(likelyLayout);
  for (const row of byId('readings').querySelectorAll('tbody tr')) {
    const choice = row.querySelector('input');
    if (!choice) continue; // none of these
    choice.checked = choice.value === String(of);
    row.classList.toggle('chosen', choice.checked);
  }
  const how = !isLikely ? 'As' : likely.doubt ? 'No layout fits well; as' : fits ? 'Probably' : 'Possibly';
  byId('decoded-answer').replaceChildren(
    `${how} `,
    isLikely && likely.spec ? `${likely.name}, ` : '',
    element('code', {}, String(of)),
    ': generated at ',
    element('strong', {}, timeText(fields.unixUs)),
    ` by shard ${fields.shardId}.`,
    isRounded(id) ? ' JavaScript may have rounded this ID: its last digits are 0, as those of a rounded number.' : '',
  );
  byId('decoded-bits').replaceChildren(...bitsOf(of, id));
  const row = (field, bits, value, meaning) => [
    element('span', {}, swatch(field), field),
    String(bits),
    element('code', {}, digits(value, bits)),
    element('span', { id: `${field}-value` }, String(value)),
    meaning,
  ];
  const xored = of.shardPlace === 'lowest_xored' && of.shardBits > 0 ? `XORed with the ${of.shardBits} bits above it` : '';
  const rows = [
    row('time', of.timeBits, fields.tick, timeText(fields.unixUs)),
    of.seqBits > 0 && row('seq', of.seqBits, fields.seq, ''),
    of.shardBits > 0 && row('shard', of.shardBits, fields.shardId, xored),
  ].filter(Boolean);
  if (of.shardPlace === 'above_seq' && rows.length === 3) rows.push(rows.splice(1, 1)[0]);
  byId('decoded-fields').replaceChildren(table(['field', 'bits', 'in binary', 'value', 'meaning'], rows));
  byId('decoded-code').replaceChildren(...codeFor(id, of).map((code) => snippet(...code)));
  byId('decoded-all').replaceChildren(...(shownIds.length > 1 ? allIds(of) : []));
}

function hideFields() {
  for (const part of ['decoded-answer', 'decoded-bits', 'decoded-fields', 'decoded-code', 'decoded-all']) byId(part).replaceChildren();
}

const MOST_ROWS = 200;

function allIds(of) {
  const rows = shownIds.slice(0, MOST_ROWS).map((id) => {
    try {
      const { unixUs, shardId, seq } = decode(id, of);
      return [element('code', {}, String(id)), timeText(unixUs), String(shardId), String(seq)];
    } catch {
      return [element('code', {}, String(id)), '–', '–', '–'];
    }
  });
  const title = shownIds.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${shownIds.length} IDs` : `All ${shownIds.length} IDs`;
  return scrollingTable(title, ['ID', 'time', 'shard', 'seq'], rows);
}
