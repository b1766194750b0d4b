// A line that somebody pastes from psql or a log begins with its severity, which would find pages about errors.
{
  const { search } = elasticlunr.Index.prototype;
  elasticlunr.Index.prototype.search = function (words, options) {
    return search.call(this, words.replace(/^.*\b(ERROR|FATAL|WARNING|NOTICE|LOG|DETAIL|HINT):\s+/, ''), options);
  };
}
