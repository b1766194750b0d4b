// All pages of the site: SITE=folder DOCS=folder of their Markdown node --test site.test.js
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, serve, tab } from './browser.js';

const { SITE, DOCS } = process.env;
const pages = readdirSync(SITE, { recursive: true }).filter((file) => file.endsWith('.html') && file !== 'toc.html');
let server, site, browser;

before(async () => {
  ({ server, site } = await serve(SITE));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.close();
});

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

test('a search finds the runbook of an error message first', async () => {
  const text = readFileSync(join(DOCS, 'operate.md'), 'utf8');
  const headings = text.split('\n## Runbooks\n')[1].split('\n## ')[0].match(/^### .*$/gm).map((line) => line.slice(4));
  assert.ok(headings.length > 50);
  const { page, problems } = await tab(browser, site);
  await page.goto(site);
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.id === 'mdbook-searchbar');
  const first = async (words) => ((await results(page, words))[0] ?? '').split(' » ').pop();
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
