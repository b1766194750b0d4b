// Elements of the page.

import { digits, fieldsOf, NAMES } from './texts.js';

export const byId = (id) => document.getElementById(id);

/** An element with properties and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role') made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/** Shows a problem beside its inputs, or none. */
export function showProblem(id, text, ...inputs) {
  byId(id).textContent = text;
  for (const input of inputs) input.setAttribute('aria-invalid', String(text !== ''));
}

/** A table of rows of cells, each a text or a node. */
export function table(headings, rows) {
  const cell = (content) => element('td', {}, content);
  return element(
    'table',
    {},
    element('thead', {}, element('tr', {}, ...headings.map((heading) => element('th', { scope: 'col' }, heading)))),
    element('tbody', {}, ...rows.map((cells) => element('tr', {}, ...cells.map(cell)))),
  );
}

/** A long table with its title, which scrolls by itself. */
export function scrollingTable(title, headings, rows) {
  const region = element('div', { className: 'scroll', role: 'region', 'aria-label': title, tabIndex: 0 }, table(headings, rows));
  return [element('h3', {}, title), region];
}

/** The bits of a layout as a picture, with those of an ID if there is one. */
export function bitsOf(layout, id) {
  const fields = fieldsOf(layout);
  const bits = id === undefined ? '' : digits(BigInt.asUintN(64, id), 64);
  const label = fields.map(({ field, bits }) => `${NAMES[field]} ${bits}`).join(', ');
  const bar = fields.map(({ field, bits }) => {
    const part = element('span', { className: field }, `${NAMES[field]} ${bits}`);
    part.style.flexBasis = `${(bits / 64) * 100}%`;
    part.style.flexShrink = '1';
    return part;
  });
  const cells = fields.flatMap(({ field, bits }) => Array(bits).fill(field)).map((field, index) => element('span', { className: field }, bits[index] ?? ''));
  return [
    element('div', { className: 'bar', role: 'img', 'aria-label': `Bits from the highest: ${label}` }, ...bar),
    element('div', { className: 'cells', 'aria-hidden': 'true' }, ...cells),
  ];
}

export const swatch = (field) => element('span', { className: `swatch ${field}`, 'aria-hidden': 'true' });

/** A block of code with its title and a button that copies it. */
export function snippet(title, language, text) {
  const code = element('code', { className: `language-${language}` }, text);
  const button = element('button', { type: 'button', 'aria-label': `Copy: ${title}` }, 'Copy');
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(text).then(
      () => (button.textContent = 'Copied'),
      () => getSelection().selectAllChildren(code), // to be copied by hand, where the browser does not let us
    );
  });
  const block = element('div', { className: 'snippet' }, element('div', { className: 'title' }, element('span', {}, title), button), element('pre', {}, code));
  globalThis.hljs?.highlightBlock(code); // mdBook's
  return block;
}
