// The page that takes an ID apart. Its state is in its address, behind the #.

import * as decoding from './decode.js';
import * as design from './design.js';
import * as finding from './find.js';

const PARTS = ['id', 'as', 'layout', 'rows'];
/** Browsers and chat programs shorten longer addresses. */
const LONGEST = 8_000;

/** Of the address. A heading's has no "=". */
function stateOf(hash) {
  const values = new URLSearchParams(hash.slice(1));
  return Object.fromEntries(PARTS.filter((part) => values.get(part)).map((part) => [part, values.get(part)]));
}

let state = stateOf(location.hash);

let timer;

function change(values) {
  state = Object.fromEntries(Object.entries({ ...state, ...values }).filter(([, value]) => value !== ''));
  // Browsers refuse to change the address a hundred times in some seconds, as a slider would.
  clearTimeout(timer);
  timer = setTimeout(writeAddress, 300);
}

function writeAddress() {
  const hash = new URLSearchParams(state).toString();
  history.replaceState(history.state, '', hash.length > LONGEST ? location.pathname : `${location.pathname}#${hash}`);
}

function show() {
  decoding.show(state, change);
  design.show(state, change);
  finding.show(state, change, (id, layout) => {
    change({ id, as: layout, layout });
    show();
    document.getElementById('ids').focus();
  });
}

show();
addEventListener('hashchange', () => {
  if (!location.hash.includes('=')) return;
  state = stateOf(location.hash);
  show();
});
