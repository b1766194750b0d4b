// All pages of the site: SITE=folder DOCS=folder of their Markdown node --test site.test.js
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { site, tab } from './browser.js';

const { SITE, DOCS } = process.env;
const files = readdirSync(SITE, { recursive: true });
const pages = files.filter((file) => file.endsWith('.html') && file !== 'toc.html');

test('every page of the documentation is in the site', () => {
  const markdown = readdirSync(DOCS).filter((file) => file.endsWith('.md') && file !== 'README.md');
  assert.ok(markdown.length > 20);
  for (const file of markdown) assert.ok(pages.includes(join('docs', file.replace('.md', '.html'))), file);
});

test('no page has a dead link, an error in the console, or a request to another host, or scrolls sideways on a phone', async () => {
  const anchors = new Map();
  const links = [];
  for (const path of pages) {
    const { page, problems } = await tab({ width: 400, height: 800 });
    await page.goto(site + path, { waitUntil: 'load' });
    const found = await page.evaluate(() => ({
      links: [...document.querySelectorAll('a[href]')].map((link) => link.href),
      anchors: [...document.querySelectorAll('[id]')].map(({ id }) => id),
      wide: [...document.querySelectorAll('html, #mdbook-content, main')].filter((part) => part.scrollWidth > part.clientWidth + 1).length,
    }));
    await page.close();
    assert.deepEqual([problems, found.wide], [[], 0], path);
    anchors.set(path, new Set(found.anchors));
    links.push(...found.links.map((link) => [path, link]));
  }
  assert.ok(links.length > 1000);
  const dead = links.filter(([, link]) => {
    if (!link.startsWith(site)) return !/^(https|mailto):/.test(link);
    const { pathname, hash } = new URL(link);
    const path = decodeURIComponent(pathname.slice(1)).replace(/(^|\/)$/, '$1index.html');
    if (!anchors.has(path)) return !files.includes(path);
    return hash !== '' && !hash.includes('=') && !anchors.get(path).has(decodeURIComponent(hash.slice(1)));
  });
  assert.deepEqual(dead, []);
});

test('every runbook is in the index of messages, and a search finds it', async () => {
  const chapters = readFileSync(join(DOCS, 'operate.md'), 'utf8').split('\n## ').filter((chapter) => chapter.startsWith('Runbooks'));
  const runbooks = chapters.flatMap((chapter) => chapter.match(/^### .*$/gm).map((line) => line.slice(4)));
  const rows = chapters.flatMap((chapter) => [...chapter.matchAll(/^\| <a id="(.*?)">/gm)].map(([, id]) => `#${id}`));
  assert.ok(runbooks.length + rows.length >= 60);
  const { page, problems } = await tab();
  await page.goto(`${site}messages.html`);
  const listed = await page.$$eval('main a[href*="operate.html#"]', (links) => links.map((link) => decodeURIComponent(link.hash)));
  await page.goto(`${site}docs/operate.html`);
  const headings = await page.$$eval('main h3 > a', (links) => links.map((link) => [link.textContent, decodeURIComponent(link.hash)]));
  const anchors = headings.filter(([text]) => runbooks.includes(text)).map(([, hash]) => hash);
  assert.deepEqual(listed.toSorted(), [...anchors, ...rows].toSorted());
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.id === 'mdbook-searchbar');
  await page.keyboard.type('Stop the copy, or list other shards in its pg_snowflake.owned_shards');
  await page.waitForSelector('#mdbook-searchresults a[href*="messages.html"][href$="#a-copy-of-this-server-is-running"]');
  assert.deepEqual(problems, []);
  await page.close();
});
