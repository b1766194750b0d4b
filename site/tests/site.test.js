// All pages of the site: SITE=folder DOCS=folder of their Markdown OUTPUTS=folder of psql's node --test site.test.js
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { serve, tab } from './browser.js';
import { browser, site } from './fixture.js';

const { SITE, DOCS, OUTPUTS } = process.env;
const pages = readdirSync(SITE, { recursive: true }).filter((file) => file.endsWith('.html') && file !== 'toc.html');

/** What a page has, after it has been opened: its links, its anchors, and what is wider than the window. */
async function read(path, options) {
  const { page, problems } = await tab(browser, site, options);
  await page.goto(site + path, { waitUntil: 'load' });
  const found = await page.evaluate(() => ({
    links: [...document.querySelectorAll('a[href]')].map((link) => link.href),
    anchors: [...document.querySelectorAll('[id]')].map(({ id }) => id),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    // The content scrolls by itself, so that its width does not show in the document's.
    wide: [...document.querySelectorAll('#mdbook-content, #mdbook-content main')].filter((part) => part.scrollWidth > part.clientWidth + 1).length,
    theme: document.documentElement.className,
    title: document.title,
  }));
  await page.close();
  return { ...found, problems };
}

test('every page of the index is in the site', () => {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8');
  const listed = [...index.matchAll(/^- \[[^\]]+\]\(([^)]+)\.md\)/gm)].map(([, path]) => join('docs', path));
  assert.ok(listed.length > 20);
  for (const path of listed) assert.ok(pages.includes(`${path}.html`), path);
  const markdown = readdirSync(DOCS).filter((file) => file.endsWith('.md') && file !== 'README.md');
  for (const file of markdown) assert.ok(listed.includes(join('docs', file.replace('.md', ''))), `${file} is not in the index`);
});

test('no page has a dead link, an error in the console, or a request to another host', async () => {
  const anchors = new Map();
  const links = [];
  for (const path of pages) {
    const found = await read(path);
    assert.deepEqual(found.problems, [], path);
    anchors.set(path, new Set(found.anchors));
    links.push(...found.links.map((link) => [path, link]));
  }
  const internal = links.filter(([, link]) => link.startsWith(site));
  assert.ok(internal.length > 1000);
  const dead = internal.filter(([, link]) => {
    const { pathname, hash } = new URL(link);
    const path = pathname.slice(1).replace(/(^|\/)$/, '$1index.html');
    return !anchors.has(path) || (hash !== '' && !hash.includes('=') && !anchors.get(path).has(decodeURIComponent(hash.slice(1))));
  });
  assert.deepEqual(dead, []);
  // To files of the repository that are not in the site.
  const other = links.filter(([, link]) => !link.startsWith(site) && !/^(https|mailto):/.test(link));
  assert.deepEqual(other, []);
});

test('no page scrolls sideways at 400 pixels', async () => {
  for (const path of pages) {
    const { overflow, wide, problems } = await read(path, { width: 400, height: 800 });
    assert.deepEqual([overflow, wide, problems], [0, 0, []], path);
  }
});

test('the theme is that of the system, until the reader switches it', async () => {
  const { page, problems } = await tab(browser, site, { dark: true });
  await page.goto(site);
  const background = () => page.evaluate(() => getComputedStyle(document.querySelector('.page-wrapper')).backgroundColor);
  const dark = await background();
  await page.click('#mdbook-theme-toggle');
  const offered = await page.$$eval('#mdbook-theme-list button', (buttons) => buttons.map((button) => button.textContent));
  assert.deepEqual(offered, ['As the system', 'Light', 'Dark']);
  await page.click('#mdbook-theme-light');
  assert.notEqual(await background(), dark);
  await page.reload();
  assert.notEqual(await background(), dark, 'the choice is kept');
  await page.evaluate(() => localStorage.clear());
  assert.deepEqual(problems, []);
  await page.close();
});

/** The titles of the results of a search, best first. */
async function results(page, words) {
  await page.evaluate((words) => {
    const field = document.getElementById('mdbook-searchbar');
    field.value = words;
    field.dispatchEvent(new KeyboardEvent('keyup'));
  }, words);
  await page.waitForFunction(
    (words) => document.getElementById('mdbook-searchresults-header').textContent.includes(`'${words}'`),
    { polling: 5 },
    words,
  );
  return page.$$eval('#mdbook-searchresults > li > a', (links) => links.map((link) => link.textContent));
}

/** The headings of all runbooks. */
const headings = readFileSync(join(DOCS, 'operate.md'), 'utf8')
  .split('\n## ')
  .filter((chapter) => chapter.startsWith('Runbooks'))
  .flatMap((chapter) => chapter.match(/^### .*$/gm).map((line) => line.slice(4)));

/** A tab whose cursor is in the field of the search, and a function that returns the heading of the first result. */
async function searching() {
  const { page, problems } = await tab(browser, site);
  await page.goto(site);
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.id === 'mdbook-searchbar');
  const first = async (words) => ((await results(page, words))[0] ?? '').split(' » ').pop();
  return { page, problems, first };
}

test('a search finds the runbook of an error message first', async () => {
  assert.ok(headings.length >= 60);
  const { page, problems, first } = await searching();
  assert.equal(await first('too far ahead'), 'sequence … is too far ahead of the server clock');
  const missed = [];
  for (const heading of headings) {
    // As the reference writes a message, as somebody remembers it, and as the server writes it.
    const forms = [heading, heading.replaceAll(/ ?…/g, ''), heading.replaceAll('…', '"public.posts_id_seq"'), `ERROR:  ${heading.replaceAll('…', '5')}`];
    for (const words of new Set(forms.map((form) => form.trim()))) {
      const found = await first(words);
      if (found !== heading) missed.push([words, found]);
    }
  }
  assert.deepEqual(missed, []);
  assert.deepEqual(problems, []);
  await page.close();
});

/** The lines of the errors that have a runbook, with its heading. */
function linesOfErrors() {
  const escaped = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const messages = headings.map((heading) => [heading, new RegExp(`^ERROR:  ${heading.split('…').map(escaped).join('.+')}$`)]);
  const lines = new Map();
  for (const file of readdirSync(OUTPUTS)) {
    for (const error of readFileSync(join(OUTPUTS, file), 'utf8').match(/^ERROR:  .*(\n(DETAIL|HINT):  .*)*/gm) ?? []) {
      const [message, ...others] = error.split('\n');
      const [heading] = messages.find(([, pattern]) => pattern.test(message)) ?? [];
      if (heading) for (const line of [message, ...others]) lines.set(line, heading);
    }
  }
  return lines;
}

test('a search finds the runbook of an error by any line of the error', async () => {
  const lines = linesOfErrors();
  const isOf = (label) => [...lines.keys()].filter((line) => line.startsWith(label)).length;
  assert.ok(isOf('ERROR') >= 30 && isOf('DETAIL') >= 20 && isOf('HINT') >= 30, `${isOf('ERROR')}, ${isOf('DETAIL')}, ${isOf('HINT')}`);
  const { page, problems, first } = await searching();
  const missed = [];
  for (const [line, heading] of lines) {
    // As it is there, and as somebody else's server writes it.
    for (const words of new Set([line, line.replaceAll(/"[^"]*"/g, '"public.photos_id_seq"').replaceAll(/\d+/g, '31')])) {
      const found = await first(words);
      if (found !== heading) missed.push([words, found, heading]);
    }
  }
  assert.deepEqual(missed, []);
  // A field joins the lines that somebody pastes.
  const error = ['ERROR:  sequence "posts_id_seq" cannot be used to generate IDs', 'DETAIL:  It is of another kind.', 'HINT:  Ask for help.'];
  assert.equal(await first(error.join('')), 'sequence … cannot be used to generate IDs');
  assert.equal(await first(`Something happened.${error[1]}HINT:  Run: ALTER SEQUENCE blog.posts_id_seq AS bigint;`), 'sequence … cannot be used to generate IDs');
  assert.deepEqual(problems, []);
  await page.close();
});

/** Lines of servers whose faults no script of one session shows. The site has their texts from the sources. */
const ofFaults = [
  ['a copy of this server is running', 'HINT:  Stop the copy, or list other shards in its pg_snowflake.owned_shards. This server holds the leases.'],
  ['bad magic number in sequence …: …', 'DETAIL:  The file of the sequence is damaged.'],
  ['cannot execute … during recovery', 'HINT:  Connect to the primary. If it is lost, promote this server.'],
  ['cannot generate IDs because the value of … was lost', 'DETAIL:  When this session loaded the library, PostgreSQL had too little memory for the value.'],
  ['clock of node … is too far … the registry\'s', 'DETAIL:  It reads 2026-11-26 10:38:30.676449+00, which is 1.928 s behind the registry\'s clock, 2026-11-26 10:38:32.604092+00.'],
  ['lease of shard … has ended', 'DETAIL:  It ended 1.009 s ago.'],
  ['lease of shard … has ended', 'HINT:  Make the registry reachable; the server then renews its lease automatically. See the server log and snowflake_lease_status().'],
  ['lease of shard … has not begun', 'DETAIL:  It begins in 1.100 s, when the shard\'s former span or the registry\'s quiet time has ended.'],
  ['lost the lease of …', 'HINT:  Find the cause: snowflake_registry.take_over() was called, the registry was restored from a backup, or a clone of this server\'s virtual machine is running. A clone with this server\'s memory may have repeated IDs.'],
  ['no answer from the registry', 'HINT:  Check that the registry is running and accepts connections of this server. See pg_snowflake.registry and the password file here, and pg_hba.conf there.'],
  ['pg_snowflake library is incompatible with the installed extension version', 'DETAIL:  The function is declared with 2 result columns, but library version 0.9.0-dev returns 10.'],
  ['pg_snowflake: the clock stepped back by …', 'DETAIL:  IDs stay unique: this session generates none below its reading at its last ID.'],
  ['registry refused the lease of …', 'DETAIL:  Shard 5 is held by an earlier run or a copy of this server, node "db-0", until 2026-11-26 10:37:04.125932+00. The other server connects by a Unix-domain socket, and was started at 2026-11-26 10:37:02.417858+00.'],
  ['server clock stepped back too far', 'HINT:  If the clock is wrong, correct it; no other action is needed. If it is right, reconnect.'],
  ['server clock stepped back too far', 'DETAIL:  It is 3.381 hours behind its reading at the last ID of this session, which generates no IDs below that reading. The next ID is due in 3.381 hours, which is longer than pg_snowflake.max_wait.'],
  ['server has no lease for shard …', 'HINT:  Try again in a moment. If the error persists, see the server log and snowflake_lease_status().'],
];

test('a search finds the runbook of an error that only servers under faults raise', async () => {
  const { page, problems, first } = await searching();
  for (const [heading, line] of ofFaults) assert.equal(await first(line), heading, line);
  const without = await page.evaluate(
    (headings) => headings.filter((heading) => !linesOfRunbooks[heading].some((line) => line !== heading && line.split(' ').length >= 3)),
    headings,
  );
  assert.deepEqual(without, []);
  assert.deepEqual(problems, []);
  await page.close();
});

test('a title of the documentation finds no runbook by accident', () => {
  const theme = join(SITE, 'theme');
  const scripts = ['runbooks', 'search'].map((name) => readdirSync(theme).find((file) => file.startsWith(`${name}-`)));
  const elasticlunr = { Index: class {} };
  elasticlunr.Index.prototype.search = (words) => words;
  runInNewContext(scripts.map((file) => readFileSync(join(theme, file), 'utf8')).join(''), { elasticlunr });
  const searchedFor = (words) => elasticlunr.Index.prototype.search(words);
  assert.equal(searchedFor('HINT:  Connect to the primary. If it is lost, promote this server.'), 'cannot execute … during recovery');
  const pages = readdirSync(DOCS).filter((file) => file.endsWith('.md'));
  const titles = pages.flatMap((file) => readFileSync(join(DOCS, file), 'utf8').match(/^#+ .*$/gm).map((line) => line.replace(/^#+ /, '')));
  const others = titles.filter((title) => !headings.includes(title));
  assert.ok(others.length >= 250);
  assert.deepEqual(others.filter((title) => searchedFor(title) !== title), []);
  // These would take minutes, at each letter of a search, if a line had no end.
  for (const long of ['5'.repeat(1e6), '1.'.repeat(5e5), 'x---'.repeat(2.5e5), 'never '.repeat(1e5)]) assert.ok(searchedFor(long) === long);
});

test('a search for other words is the same as without the lines of errors', async () => {
  const other = ['layout', 'shard id', 'snowflake_between', 'convert a table with a serial key', 'HINT:  Run VACUUM on the table.', 'alter sequence', 'the layout of IDs'];
  const changed = 'The layout has shard IDs from 0 to 8191.';
  const found = [];
  for (const hasLines of [false, true]) {
    const { page, problems } = await searching();
    if (!hasLines) await page.evaluate(() => Object.keys(linesOfRunbooks).forEach((heading) => delete linesOfRunbooks[heading]));
    const each = [];
    for (const words of [...other, changed]) each.push(await results(page, words));
    found.push(each);
    assert.deepEqual(problems, []);
    await page.close();
  }
  const [without, having] = found;
  assert.notDeepEqual(having.pop(), without.pop());
  assert.deepEqual(having, without);
  for (const [index, words] of other.entries()) assert.ok(having[index].length > 0, words);
});

test('the site works without a network after the first visit, and an update replaces it', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'site-'));
  cpSync(SITE, folder, { recursive: true });
  let { server, site } = await serve(folder);
  const { port } = server.address();
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const profile = await browser.createBrowserContext();
  context.after(async () => {
    await profile.close();
    await stop();
    rmSync(folder, { recursive: true });
  });
  const page = await profile.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(`exception: ${error}`));
  const opened = (path) => page.goto(site + path, { waitUntil: 'load' });
  const names = () => page.evaluate(() => caches.keys());
  await opened('index.html');
  await page.evaluate(async () => (await navigator.serviceWorker.ready).active.state);
  const [name] = await names();
  await stop();

  await opened('id.html');
  await page.type('#ids', '\n2235219950664999947');
  await page.$eval('#ids', (input) => {
    input.value = '2235219950664999947';
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
  assert.match(await page.$eval('#decoded-answer', (answer) => answer.textContent), /generated at 2026-11-21 00:46:04\.617 UTC by shard 5/);
  await opened('docs/operate.html?highlight=lease#leases');
  assert.match(await page.title(), /runbooks/);
  await page.keyboard.press('/');
  assert.match((await results(page, 'too far ahead'))[0], /too far ahead of the server clock$/);
  await opened('');
  assert.match(await page.title(), /pg_snowflake/);

  const [worker, start] = ['worker.js', 'index.html'].map((file) => join(folder, file));
  writeFileSync(worker, readFileSync(worker, 'utf8').replace(/VERSION = '\w+'/, "VERSION = 'next'"));
  writeFileSync(start, readFileSync(start, 'utf8').replace(/<title>[^<]*/, '<title>Next'));
  ({ server } = await serve(folder, port));
  await opened('docs/time.html');
  await page.waitForFunction(async (name) => !(await caches.keys()).includes(name), {}, name);
  assert.deepEqual(await names(), ['pg_snowflake-next']);
  await stop();
  await opened('');
  assert.equal(await page.title(), 'Next');
  assert.deepEqual(problems, []);
});

test('a reader finds a page by the keyboard alone', async () => {
  const { page, problems } = await tab(browser, site);
  await page.goto(`${site}docs/time.html`);
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.id === 'mdbook-searchbar');
  await page.keyboard.type('snowflake_between');
  await page.waitForSelector('#mdbook-searchresults > li.focus, #mdbook-searchresults > li');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => document.querySelector('#mdbook-searchresults li.focus'));
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  assert.match(page.url(), /highlight=snowflake_between/);
  await page.goto(`${site}docs/time.html`);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('ArrowRight')]);
  assert.match(page.url(), /docs\/orms\.html$/);
  assert.deepEqual(problems, []);
  await page.close();
});
