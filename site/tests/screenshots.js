// Takes screenshots of the site: node screenshots.js SITE FOLDER. For people to look at.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, serve, tab } from './browser.js';

const PAGES = {
  start: 'index.html',
  documentation: 'docs/index.html',
  operate: 'docs/operate.html#sequence--is-too-far-ahead-of-the-server-clock',
  benchmarks: 'docs/benchmarks.html',
  search: 'index.html?search=too%20far%20ahead',
  id: 'id.html#id=2235219950664999947&layout=js53',
  find: 'id.html',
  problems: 'id.html#id=12345678901234567890&layout=postgre&rows=5%202026-02-30',
};

const [folder, to] = process.argv.slice(2);
const { server, site } = await serve(folder);
const browser = await launch();
await mkdir(to, { recursive: true });
for (const [name, path] of Object.entries(PAGES)) {
  for (const dark of [false, true]) {
    for (const [width, height] of [[1280, 900], [400, 800]]) {
      const { page } = await tab(browser, site, { width, height, dark });
      await page.goto(site + path, { waitUntil: 'networkidle0' });
      if (name === 'search') await page.waitForSelector('#mdbook-searchresults li');
      if (name === 'find') {
        await page.$eval('#example-rows', (button) => button.click());
        await page.waitForSelector('#misfits table');
      }
      const file = join(to, `${name}-${dark ? 'dark' : 'light'}-${width}.png`);
      await page.screenshot({ path: file, fullPage: path.startsWith('id.html') });
      await page.close();
    }
  }
}
await browser.close();
server.close();
