// Has the browser keep the site for use without a network. Pages that are opened as files need nothing.
{
  const worker = new URL('../worker.js', document.currentScript.src);
  if (/^https?:$/.test(location.protocol)) {
    // After the page, which needs the network first. Private windows may have no place to keep it.
    addEventListener('load', () => navigator.serviceWorker?.register(worker).catch(() => {}));
  }
}
