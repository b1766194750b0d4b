// Chromium, which CHROMIUM names, and a server of the site's files.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import puppeteer from 'puppeteer-core';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png' };

/** Serves the files of a folder on a port of this machine, or on a free one, and returns the server and the URL of the site. */
export async function serve(folder, port = 0) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://site').pathname));
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    try {
      const content = await readFile(file);
      const type = TYPES[extname(file)] ?? 'application/octet-stream';
      // A browser may keep files for as long as those of GitHub Pages.
      response.writeHead(200, { 'content-type': type, 'cache-control': 'max-age=600' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { server, site: `http://127.0.0.1:${server.address().port}/` };
}

/** Starts the browser. Its profile is in the folder for temporary files. */
export function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // The tests may run as root and in a container, where its sandbox cannot start.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
  });
}

/** A tab that notes what must not happen: requests to another host, requests that fail, and what the console shows. */
export async function tab(browser, site, { width = 1280, height = 900, dark = false } = {}) {
  const page = await browser.newPage();
  const problems = [];
  await page.setViewport({ width, height });
  await page.setBypassServiceWorker(true); // an interception does not see its requests
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  await page.setRequestInterception(true);
  await page.setCacheEnabled(true); // an interception turns it off
  page.on('request', (request) => {
    const isOurs = request.url().startsWith(site) || request.url().startsWith('data:');
    if (!isOurs) problems.push(`request to ${request.url()}`);
    if (isOurs) request.continue();
    else request.abort();
  });
  page.on('response', (response) => {
    if (response.status() >= 400 && !response.url().endsWith('/favicon.ico')) problems.push(`${response.status()}: ${response.url()}`);
  });
  page.on('console', (message) => problems.push(`console: ${message.type()}: ${message.text()} ${message.location().url ?? ''}`));
  page.on('pageerror', (error) => problems.push(`exception: ${error}`));
  return { page, problems };
}
