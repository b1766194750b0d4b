// The site in the folder SITE, and Chromium, which CHROMIUM names, from before the first test of a file to after its last.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { after, before } from 'node:test';
import puppeteer from 'puppeteer-core';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png' };

export let site;
let browser;
const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://site').pathname));
  const file = join(process.env.SITE, path.endsWith('/') ? `${path}index.html` : path);
  await readFile(file).then(
    (content) => response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(content),
    () => response.writeHead(404).end(),
  );
});

before(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  site = `http://127.0.0.1:${server.address().port}/`;
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // The tests may run as root and in a container, where its sandbox cannot start.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
  });
});

after(async () => {
  await browser?.close();
  server.close();
});

/** A tab that notes what must not happen: requests to another host, requests that fail, and what the console shows. */
export async function tab({ width = 1280, height = 900, dark = false } = {}) {
  const page = await browser.newPage();
  const problems = [];
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  page.on('request', (request) => {
    if (!request.url().startsWith(site) && !request.url().startsWith('data:')) problems.push(`request to ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  page.on('console', (message) => {
    const from = message.location().url ?? '';
    // A browser fetches the icon when it likes, so also while a test is offline.
    if (!from.includes('/favicon-')) problems.push(`console: ${message.type()}: ${message.text()} ${from}`);
  });
  page.on('pageerror', (error) => problems.push(`exception: ${error}`));
  return { page, problems };
}
