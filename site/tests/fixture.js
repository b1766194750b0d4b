// The site in the folder SITE and a browser, from before the first test of a file to after its last.
import { after, before } from 'node:test';
import { launch, serve } from './browser.js';

export let site, browser;
let server;

before(async () => {
  ({ server, site } = await serve(process.env.SITE));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.close();
});
