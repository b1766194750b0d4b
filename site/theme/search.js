// A search for a line of an error finds the runbook of the error. linesOfRunbooks is made by src/runbooks.rs.
{
  /** Of a line, what is the same for each server: names in quotes, numbers and times are not. */
  const fixedWords = (line) =>
    line
      .replace(/"[^"]*"|'[^']*'/g, ' ')
      .split(/\s+/)
      .filter((word) => !/\d/.test(word))
      .map((word) => word.replace(/^[^\w<]+|[^\w>]+$/g, '').toLowerCase())
      .filter((word) => word !== '');

  /** The share of the words that two lines have in common. A command in a hint has names without quotes. */
  const likeness = (one, other) => {
    const rest = [...other];
    const common = one.filter((word) => rest.includes(word) && rest.splice(rest.indexOf(word), 1));
    return (2 * common.length) / (one.length + other.length);
  };
  const [LEAST_LIKENESS, LEAST_WORDS] = [0.8, 3];

  let known;

  /** The heading of the runbook of a line, if there is one. */
  const runbookOf = (line) => {
    const words = fixedWords(line);
    if (words.length < LEAST_WORDS) return undefined;
    known ??= Object.entries(linesOfRunbooks).flatMap(([heading, lines]) => lines.map((line) => [heading, fixedWords(line)]));
    const [best = [0]] = known.map(([heading, of]) => [likeness(words, of), heading]).sort(([a], [b]) => b - a);
    return best[0] >= LEAST_LIKENESS ? best[1] : undefined;
  };

  const { search } = elasticlunr.Index.prototype;
  elasticlunr.Index.prototype.search = function (words, options) {
    // A line that somebody pastes from psql or a log begins with its severity, which would find pages about errors. A field
    // joins several lines without a space.
    const [before, ...lines] = words.split(/(?:ERROR|FATAL|WARNING|NOTICE|LOG|DETAIL|HINT):\s+/);
    const [line = before] = lines;
    const runbook = [...lines, before].map(runbookOf).find(Boolean);
    return search.call(this, runbook ?? line, options);
  };
}
