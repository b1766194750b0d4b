// Keeps the files of the site for readers without a network. With one, they get what the site has now.

const PREFIX = 'pg_snowflake-'; // another site of the same host has caches, too
const NAME = PREFIX + VERSION;

addEventListener('install', (event) => {
  const requests = FILES.map((file) => new Request(file, { cache: 'no-cache' }));
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(requests)));
  skipWaiting();
});

addEventListener('activate', (event) => {
  const isOld = (name) => name.startsWith(PREFIX) && name !== NAME;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name)))));
});

addEventListener('fetch', (event) => {
  event.respondWith(fetch(event.request).catch(() => kept(event.request)));
});

async function kept({ url }) {
  const file = url.replace(/[?#].*$/, '').replace(/\/$/, '/index.html');
  const cache = await caches.open(NAME);
  return (await cache.match(file)) ?? Response.error();
}
