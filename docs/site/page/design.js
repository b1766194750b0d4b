// The part of the page that designs a layout.

import { info, presets, UNIT_US } from '../../../javascript/snowflake.js';
import { bitsOf, byId, element, showProblem, snippet } from './dom.js';
import { designOf, layoutOf } from './input.js';
import { figuresOf, tableOf } from './texts.js';

const FIELDS = ['time', 'seq', 'shard'];
const [spec, place, unit, epoch, preset] = ['spec', 'place', 'unit', 'epoch', 'preset'].map(byId);
const number = (field) => byId(`${field}-bits`);
const slider = (field) => byId(`${field}-slider`);
const INPUTS = [...FIELDS.map(number), epoch];

/** Shows the state of the page's address, and calls `changed` when somebody changes it. */
export function show(state, changed) {
  preset.replaceChildren(element('option', { value: '' }, 'a layout of my own'), ...Object.keys(presets).map((name) => element('option', { value: name }, name)));
  unit.replaceChildren(...Object.keys(UNIT_US).map((name) => element('option', { value: name }, name)));
  spec.value = state.layout ?? 'postgres';
  readText();
  const update = (read) => () => {
    read();
    changed({ layout: spec.value.trim() });
  };
  spec.oninput = update(readText);
  preset.onchange = () => {
    if (preset.value === '') return;
    spec.value = preset.value;
    update(readText)();
  };
  for (const field of FIELDS) {
    slider(field).oninput = update(() => {
      number(field).value = slider(field).value;
      readInputs();
    });
    number(field).oninput = update(() => {
      slider(field).value = number(field).value;
      readInputs();
    });
  }
  for (const input of [place, unit, epoch]) input.oninput = update(readInputs);
}

/** Reads the layout as text, and sets the other inputs. */
function readText() {
  const of = layoutOf(spec.value.trim());
  showProblem('design-problem', of.problem, spec);
  for (const input of INPUTS) input.removeAttribute('aria-invalid');
  if (!of.layout) return hide();
  setInputs(of.layout);
  showLayout(of.layout);
}

/** Reads the other inputs, and sets the text. */
function readInputs() {
  let text;
  let problem;
  try {
    text = designOf({ time: number('time').value, shard: number('shard').value, seq: number('seq').value, place: place.value, unit: unit.value, epoch: epoch.value });
    const of = layoutOf(text);
    problem = of.problem;
    if (of.layout) {
      spec.value = String(of.layout);
      preset.value = Object.hasOwn(presets, spec.value) ? spec.value : '';
      showLayout(of.layout);
    }
  } catch (error) {
    problem = error.message;
  }
  showProblem('design-problem', problem, ...INPUTS);
  spec.removeAttribute('aria-invalid');
  if (problem) hide();
}

function setInputs({ timeBits, shardBits, seqBits, shardPlace, unit: name, spec: text }) {
  const bits = { time: timeBits, shard: shardBits, seq: seqBits };
  for (const field of FIELDS) number(field).value = slider(field).value = bits[field];
  place.value = shardPlace;
  unit.value = name;
  epoch.value = /epoch:(\S+)/.exec(text)[1];
  const known = Object.keys(presets).find((name) => presets[name].spec === text);
  preset.value = known ?? '';
}

function hide() {
  byId('designed').hidden = true;
}

function showLayout(of) {
  byId('designed').hidden = false;
  byId('designed-bits').replaceChildren(...bitsOf(of));
  const figures = figuresOf(of).flatMap(([name, text, isGood]) => [
    element('dt', {}, name),
    element('dd', { className: isGood === null ? '' : isGood ? 'good' : 'bad' }, text),
  ]);
  const formula = info(of).shardFormula;
  byId('figures').replaceChildren(
    ...figures,
    element('dt', {}, 'Shard of an ID'),
    element('dd', {}, element('code', {}, formula)),
    element('dt', {}, 'All parts'),
    element('dd', {}, element('code', {}, of.spec)),
  );
  byId('designed-code').replaceChildren(snippet('SQL', 'sql', tableOf(of)));
}
