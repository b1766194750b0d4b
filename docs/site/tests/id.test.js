// The page that takes an ID apart: SITE=folder node --test id.test.js
// With ANSWERS, lines of JSON with the extension's own, it compares the page with them. It then writes the SQL that the page shows
// for some of them to the file STATEMENTS, to be run on a server.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { site, tab } from './browser.js';

const { ANSWERS, FOUND, STATEMENTS } = process.env;

async function opened(hash = '', options) {
  const { page, problems } = await tab(options);
  await page.goto(`${site}id.html${hash}`);
  await page.waitForSelector('#decoded-bits .cells');
  // What somebody types or pastes, and the text of elements.
  await page.evaluate(() => {
    window.enter = (id, value) => {
      const input = document.getElementById(id);
      input.value = value;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    };
    window.read = (selector) => document.querySelector(selector)?.textContent ?? null;
  });
  return { page, problems };
}

const enter = (page, id, value) => page.evaluate((id, value) => window.enter(id, value), id, value);
const read = (page, selector) => page.$eval(selector, (element) => element.textContent);
const isShown = (page, selector) => page.$eval(selector, (element) => element.checkVisibility());

test('it takes an ID apart, with the likely preset first', async () => {
  const { page, problems } = await opened('#id=2235219950664999947&as=postgres');
  assert.match(await read(page, '#decoded-answer'), / postgres: generated at 2026-11-21 00:46:04\.617 UTC by shard 5\.$/);
  assert.match(await read(page, '#readings tr.chosen'), /^postgres2026-11-21 00:46:04\.617 UTC514/);
  assert.equal(await read(page, '#seq-value'), '14');
  const cells = await page.$$eval('#decoded-bits .cells span', (cells) => cells.map((cell) => cell.textContent).join(''));
  assert.equal(BigInt(`0b${cells}`), 2235219950664999947n);
  assert.equal(await page.$eval('#decoded-bits .bar', (bar) => bar.getAttribute('aria-label')), 'Bits from the highest: unused 1, time 41, seq 10, shard 12');
  for (const preset of ['postgres', 'twitter', 'discord', 'instagram']) {
    await page.click(`[data-preset="${preset}"]`);
    assert.match(await read(page, '#decoded-answer'), new RegExp(`^Probably ${preset}: .* by shard 5\\.$`));
    assert.match(await read(page, '#readings tbody tr'), new RegExp(`^${preset}.*the most likely$`));
  }
  const tsid = ((BigInt(Date.now()) - 1_577_836_800_000n) << 22n) | (683n << 12n) | 2748n;
  await enter(page, 'ids', String(tsid));
  assert.match(await read(page, '#decoded-answer'), /^Probably tsid, time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms: .* by shard 683\.$/);
  assert.match(await read(page, '#readings tr.chosen'), /^tsid.*the most likely$/);
  await enter(page, 'ids', '1541815603606036480'); // of Twitter, in 2022
  assert.match(await read(page, '#readings tbody tr:last-child'), /^none of these/);
  assert.deepEqual(problems, []);
  await page.close();
});

test('bad input gets one sentence beside it, and nothing in the console', async () => {
  const { page, problems } = await opened('#id=2235219950664999947');
  const cases = [
    ['ids', 'hello', 'ids-problem', '“hello” is not an ID, which has digits only.'],
    ['ids', '12345678901234567890', 'ids-problem', '12345678901234567890 is too large for an ID: the highest is 9223372036854775807.'],
    ['ids', '-5', 'ids-problem', '-5 is negative, and an ID is not.'],
    ['ids', '1.5', 'ids-problem', '“1.5” is not an ID, which has digits only.'],
    ['ids', '9'.repeat(5000), 'ids-problem', `${'9'.repeat(40)}… is too large for an ID: the highest is 9223372036854775807.`],
    ['ids', '0193a5f0-0000-7abc-8000-0123456789ab', 'ids-problem', '“0193a5f0-0000-7abc-8000-0123456789ab” is not an ID, which has digits only.'],
    ['ids', '5 '.repeat(10_001), 'ids-problem', 'There are more than 10,000 IDs: paste fewer of them.'],
    ['time-bits', '48', 'design-problem', 'The fields have 70 bits together, 6 more than an ID.'],
    ['time-bits', '', 'design-problem', 'The time has 1 to 48 bits.'],
    ['time-bits', '49', 'design-problem', 'The time has 1 to 48 bits.'],
    ['seq-bits', '-1', 'design-problem', 'The seq has 0 to 31 bits.'],
    ['rows', '5 yesterday', 'rows-problem', 'Line 1: “yesterday” is not a time such as 2026-01-01 00:01:00.25+00.'],
    ['rows', '5 2026-01-01\n6 2026-02-30 01:00', 'rows-problem', 'Line 2: 2026-02-30 is not a day of the calendar.'],
    ['rows', '5 2023-02-29', 'rows-problem', 'Line 1: 2023-02-29 is not a day of the calendar.'],
    ['rows', '5 2026-01-01', 'rows-problem', 'At least 3 different IDs with their times are needed.'],
    ['rows', '1 2026-01-01\n-2 2026-01-01', 'rows-problem', 'Line 2: -2 is negative, and an ID is not.'],
    ['rows', '5 2026-01-01\n,', 'rows-problem', 'Line 2: “” is not an ID, which has digits only.'],
    ['rows', `5 ${' '.repeat(1e5)}x`, 'rows-problem', 'Line 1: “” is not a time such as 2026-01-01 00:01:00.25+00.'],
    ['rows', '5 2026-01-01\n'.repeat(10_001), 'rows-problem', 'There are more than 10,000 rows: paste fewer of them.'],
  ];
  const border = (input) => page.$eval(`#${input}`, (element) => getComputedStyle(element).borderColor);
  for (const [input, text, problem, expected] of cases) {
    const before = await page.$eval(`#${input}`, (element) => element.value);
    const usual = await border(input);
    await enter(page, input, text);
    assert.equal(await read(page, `#${problem}`), expected, text);
    assert.equal(await page.$eval(`#${input}`, (element) => element.getAttribute('aria-invalid')), 'true', text);
    assert.notEqual(await border(input), usual, text);
    await enter(page, input, before);
    assert.equal(await read(page, `#${problem}`), '', `after ${text}`);
  }
  for (const [input, text, problem, expected] of [
    ['epoch', '2024-02-30', 'design-problem', /^Invalid layout part "epoch:2024-02-30"\. The epoch is a date/],
    ['epoch', '', 'design-problem', /^Invalid layout part "epoch:\?"\. The epoch is a date/],
    ['spec', 'postgre', 'design-problem', /^Unrecognized layout "postgre"\. A layout is one of/],
    ['other', 'time:41 seq:10', 'other-problem', /^Layout part "shard" is missing/],
    ['other', 'js53', 'other-problem', /it has more than 53 bits\.$/],
  ]) {
    const before = await page.$eval(`#${input}`, (element) => element.value);
    await enter(page, input, text);
    assert.match(await read(page, `#${problem}`), expected, text);
    await enter(page, input, before);
    assert.equal(await read(page, `#${problem}`), '', `after ${text}`);
  }
  await enter(page, 'ids', '');
  assert.equal(await isShown(page, '#decoded'), false);
  assert.equal(await read(page, '#ids-problem'), '');
  await enter(page, 'ids', '9223372036854775807');
  assert.match(await read(page, '#decoded-answer'), /^No layout fits well/);
  await enter(page, 'ids', '2235219950665000000');
  assert.match(await read(page, '#decoded-answer'), /JavaScript may have rounded this ID/);
  assert.deepEqual(problems, []);
  await page.close();
});

test('an unsure layout gets no conversion, and an ID with more bits than the layout is a misfit', async () => {
  const { page, problems } = await opened();
  await page.click('#example-rows');
  const rows = await page.$eval('#rows', (rows) => rows.value);
  assert.match(await read(page, '#found-code'), /snowflake_convert_column\('public\.items', 'id', 3, /);
  const few = await page.evaluate(async (module) => {
    const { encode } = await import(module);
    const times = Array.from({ length: 40 }, (_, n) => Date.UTC(2026, 0, 1) + n * 3_723_501);
    return times.map((ms, n) => `${encode({ createdAt: ms, shardId: 3, seq: n % 32 }, 'js53')}, ${ms}`).join('\n');
  }, `${site}javascript/snowflake.js`);
  await enter(page, 'rows', `${few}\n9223372036854775807, 2026-01-01`);
  assert.match(await read(page, '#misfits'), /9223372036854775807.*not an ID/);
  assert.match(await read(page, '#found-code'), /snowflake_convert_column\('public\.items', 'id', 3, /);
  await enter(page, 'rows', rows.split('\n').slice(0, 4).join('\n'));
  assert.match(await read(page, '#found-code'), /not sure enough/);
  assert.deepEqual(problems, []);
  await page.close();
});

test('it reads several IDs as people have them', async () => {
  const { page, problems } = await opened();
  await enter(page, 'ids', '"4036759990277514266", 4036759990277514267n\n4036759998666122268 nonsense');
  await enter(page, 'other', 'instagram');
  assert.equal(await read(page, '#ids-problem'), '“nonsense” is not an ID, which has digits only.');
  const rows = await page.$$eval('#decoded-all tbody tr', (rows) => rows.map((row) => row.textContent));
  assert.deepEqual(rows.map((row) => row.slice(-3)), ['926', '927', '928']);
  assert.match(await read(page, '#decoded-answer'), / instagram: generated/);
  assert.deepEqual(problems, []);
  await page.close();
});

test('it works by the keyboard alone, without a network, and keeps its state in its address', async () => {
  const { page, problems } = await opened('', { width: 400, height: 800 });
  await page.setOfflineMode(true);
  await page.focus('#ids');
  await page.keyboard.down('Control');
  await page.keyboard.press('a');
  await page.keyboard.up('Control');
  await page.keyboard.type('175928847299117063');
  // Tab leads to everything, in the order of the page.
  const reached = [];
  for (let press = 0; press < 60 && reached.at(-1) !== 'column'; press++) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.tagName));
    if (reached.at(-1) === 'preset' && !reached.includes('other')) await page.keyboard.press('ArrowDown');
    if (reached.at(-1) === 'time-slider') await page.keyboard.press('ArrowLeft');
    if (reached.at(-1) === 'example-rows') {
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => document.getElementById('found').checkVisibility());
    }
  }
  const inputs = ['preset', 'other', 'place', 'time-slider', 'time-bits', 'seq-slider', 'seq-bits', 'shard-slider', 'shard-bits', 'unit', 'epoch', 'spec', 'rows', 'example-rows', 'use-found', 'table', 'column'];
  assert.deepEqual(inputs.filter((input) => !reached.includes(input)), []);
  assert.match(page.url(), /id\.html/, 'the arrows have not turned the page');
  assert.equal(await page.$eval('#time-bits', (input) => input.value), '40');
  await page.waitForFunction(() => location.hash.includes('rows='));
  const state = new URLSearchParams(new URL(page.url()).hash.slice(1));
  assert.equal(state.get('id'), '175928847299117063');
  assert.notEqual(state.get('as'), null);
  assert.match(state.get('layout'), /^time:40 /);
  assert.match(await read(page, '#found-answer'), /^time:41 shard:12 seq:11 epoch:2017-05-21T01:58:54Z unit:1ms fits 23 of 24 rows\. Shards: 3\.$/);
  const overflow = await page.evaluate(() => ['#mdbook-content', 'main'].filter((part) => document.querySelector(part).scrollWidth > document.querySelector(part).clientWidth + 1));
  assert.deepEqual(overflow, []);
  await page.setOfflineMode(false);
  const answer = await read(page, '#decoded-answer');
  const { page: copy } = await opened(new URL(page.url()).hash);
  assert.equal(await read(copy, '#decoded-answer'), answer);
  assert.match(await read(copy, '#found-answer'), /fits 23 of 24 rows/);
  assert.equal(await copy.$eval('#time-bits', (input) => input.value), '40');
  await copy.close();
  assert.deepEqual(problems, []);
  await page.close();
});

test('every input has a label, and the text is readable in light and dark', async () => {
  for (const dark of [false, true]) {
    const { page, problems } = await opened('', { dark });
    await page.click('#example-rows');
    const [unlabelled, pale] = await page.evaluate(() => {
      const inputs = [...document.querySelectorAll('main :is(input, select, textarea, button)')];
      const unlabelled = inputs.filter((input) => !input.labels?.length && !input.getAttribute('aria-label') && input.textContent.trim() === '');
      const channels = (color) => color.match(/[\d.]+/g).map(Number);
      const luminance = (color) => {
        const [r, g, b] = channels(color).slice(0, 3).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const backgroundOf = (element) => {
        const color = getComputedStyle(element).backgroundColor;
        return (channels(color)[3] ?? 1) === 1 ? color : backgroundOf(element.parentElement ?? document.querySelector('.page-wrapper'));
      };
      const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
      const pale = [...document.querySelectorAll('main .tool *')]
        .filter((element) => hasText(element) && element.checkVisibility() && !element.disabled)
        .filter((element) => {
          const [a, b] = [luminance(getComputedStyle(element).color), luminance(backgroundOf(element))].sort((a, b) => b - a);
          return (a + 0.05) / (b + 0.05) < 4.5;
        });
      return [unlabelled, pale].map((elements) => [...new Set(elements.map((element) => `${element.tagName} ${element.id} ${element.className}`))]);
    });
    assert.deepEqual([unlabelled, pale], [[], []], dark ? 'dark' : 'light');
    assert.deepEqual(problems, []);
    await page.close();
  }
});

/** The text of microseconds since 1970, as the page should write it, up to the last year of PostgreSQL's times. */
function utc(unixUs) {
  const [us, ms] = [((BigInt(unixUs) % 1000n) + 1000n) % 1000n, (BigInt(unixUs) - (((BigInt(unixUs) % 1000n) + 1000n) % 1000n)) / 1000n];
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return 'after the year 275760';
  const two = (number, width = 2) => String(number).padStart(width, '0');
  const day = `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}.${two(date.getUTCMilliseconds(), 3)}`;
  return `${day} ${time}${us === 0n ? '' : two(us, 3)} UTC`;
}

/** Runs the JavaScript that the page shows, without the module. */
const ran = (code) => new Function(`${code}\nreturn [createdAt.getTime(), shardId, seq];`)();

test('it answers as the extension does', { skip: !ANSWERS && 'without ANSWERS' }, async () => {
  const answers = readFileSync(ANSWERS, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const { page, problems } = await opened();
  await page.evaluate(() => delete window.hljs); // the colours of code take most of the time
  const statements = [];
  let [decoded, refused, negative] = [0, 0, 0];
  for (let from = 0; from < answers.length; from += 250) {
    const some = answers.slice(from, from + 250);
    const shown = await page.evaluate((cases) => {
      const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
      return cases.map(({ id, spec }) => {
        enter('spec', spec);
        const figures = Object.fromEntries(texts('#figures dt').map((name, index) => [name, texts('#figures dd')[index]]));
        const designed = { problem: read('#design-problem'), figures, table: read('#designed-code code') };
        enter('ids', id);
        enter('other', spec);
        const fields = { answer: read('#decoded-answer'), time: read('#decoded-answer strong'), shard: read('#shard-value') ?? '0', seq: read('#seq-value') ?? '0' };
        const code = texts('#decoded-code code');
        return { designed, fields, code, problems: [read('#ids-problem'), read('#other-problem')] };
      });
    }, some);
    for (const [index, answer] of some.entries()) {
      const { designed, fields, code, problems: [ofId, ofLayout] } = shown[index];
      const { figures } = designed;
      const line = JSON.stringify({ answer, ...shown[index] });
      const number = (value) => value.toLocaleString('en-US');
      assert.equal(designed.problem, '', line);
      assert.ok(figures['IDs a second'].startsWith(`${number(answer.ids_per_second)} for`), line);
      assert.ok(figures.Shards.startsWith(answer.shards === 1 ? '1: only' : `${number(answer.shards)},`), line);
      assert.ok(figures["PostgreSQL's hash"].includes(` ${number(answer.distinct_folds)} hashes`), line);
      assert.equal(figures['Shard of an ID'], answer.shard_formula, line);
      if (answer.ends_us !== null) assert.ok(figures['Last day'].startsWith(utc(answer.ends_us).replace(/ [\d:.]* UTC$/, '')), line);
      if (answer.id.startsWith('-')) {
        assert.match(ofId, /is negative/, line);
        negative += 1;
      } else if (answer.decoded === null) {
        assert.match(ofLayout, /more than \d+ bits\.$/, line);
        refused += 1;
      } else {
        assert.deepEqual([ofId, ofLayout], ['', ''], line);
        assert.deepEqual([fields.shard, fields.seq], [String(answer.decoded.shard_id), String(answer.decoded.seq)], line);
        const us = answer.decoded.unix_us;
        if (us !== null) {
          assert.equal(fields.time, utc(us), line);
          assert.ok(fields.answer.includes(`${answer.text}: generated`), line);
          const ms = Number((BigInt(us) - (((BigInt(us) % 1000n) + 1000n) % 1000n)) / 1000n);
          // A Date ends in the year 275760.
          const time = Math.abs(ms) > 8.64e15 ? NaN : ms;
          assert.deepEqual(ran(code[3]), [time, answer.decoded.shard_id, answer.decoded.seq], line);
          if (decoded % 5 === 0) statements.push({ table: designed.table, queries: code.slice(0, 2), decoded: answer.decoded });
        }
        decoded += 1;
      }
    }
  }
  assert.deepEqual(problems, []);
  await page.close();
  writeFileSync(STATEMENTS, statements.map((statement) => `${JSON.stringify(statement)}\n`).join(''));
  console.log(`${answers.length} answers: ${decoded} decoded, ${refused} refused, ${negative} negative; ${statements.length} statements`);
  assert.ok(decoded > 680 && refused > 25 && negative > 0 && statements.length > 100);
});

test('it finds the layouts that the extension finds', { skip: !FOUND && 'without FOUND' }, async () => {
  const tables = readFileSync(FOUND, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const { page, problems } = await opened();
  for (const { copy, rows, layout, shards, misfits, doubt } of tables) {
    const lines = rows.map(([id, us]) => `${id}, ${us}`).join('\n');
    const [answer, doubts] = await page.evaluate((lines) => {
      enter('rows', lines);
      return [read('#found-answer'), read('#doubts')];
    }, lines);
    const number = (value) => value.toLocaleString('en-US');
    assert.ok(answer.startsWith(`${layout} fits ${number(rows.length - misfits)} of ${number(rows.length)} rows.`), `${copy}: ${answer}`);
    assert.ok(answer.includes(`Shards: ${shards.slice(0, 20).join(', ')}`), `${copy}: ${answer}`);
    assert.equal(doubts === 'The rows allow no other layout.', doubt === '', `${copy}: ${doubts}`);
    for (const part of [/where the counter ends/, /counter restarts/, /may also last/, /has no shard/, /Most IDs do not fit/]) assert.equal(part.test(doubts), part.test(doubt), `${copy}: ${doubts}`);
  }
  assert.deepEqual(problems, []);
  assert.ok(tables.length >= 14);
  await page.close();
});
