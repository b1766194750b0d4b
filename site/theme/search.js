// A search for a line of an error finds the runbook of the error. linesOfRunbooks is made by src/runbooks.rs.
{
  /** Of a line: a hint with many names is longer, but begins with its words. */
  const LONGEST = 2_000;
  /** Of a line, what is the same for each server: names in quotes, numbers and times are not. */
  const fixedWords = (line) =>
    line
      .slice(0, LONGEST)
      .replace(/"[^"]*"|'[^']*'|(?<![\d.])\d[\d.]* (ms|s|minutes|hours|days|years)\b/g, ' ')
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
  const pairsOf = (words) => words.slice(1).map((word, place) => `${words[place]} ${word}`);

  const [LEAST_LIKENESS, LEAST_WORDS] = [0.8, 3];
  /** Of a long line. Titles and words that somebody searches for are shorter, and have half of their pairs by accident. */
  const [LEAST_SHARE, LEAST_PAIRS] = [0.5, 8];

  let known;

  /** The runbooks with the words of a text, best first, and the share of the text's pairs of words that their lines have. */
  const runbooksWith = (text) => {
    const words = fixedWords(text);
    if (words.length < LEAST_WORDS) return [];
    known ??= Object.entries(linesOfRunbooks).map(([heading, lines]) => {
      const texts = lines.map(fixedWords);
      return { heading, texts, pairs: new Set(texts.flatMap(pairsOf)) };
    });
    // A server puts a line together from several texts, so its words stand in a row in these texts, but not in one of them. Where several
    // runbooks have them, the one with the text that is most like the line is meant.
    const ofText = pairsOf(words);
    return known
      .map(({ heading, texts, pairs }) => {
        const share = ofText.filter((pair) => pairs.has(pair)).length / ofText.length;
        const most = Math.max(...texts.map((text) => likeness(words, text)));
        const isMeant = most >= LEAST_LIKENESS || (share >= LEAST_SHARE && ofText.length >= LEAST_PAIRS);
        return { heading, share, isMeant, rank: share + most / 2 };
      })
      .filter(({ isMeant }) => isMeant)
      .sort((one, other) => other.rank - one.rank);
  };

  /** The heading of the runbook of a line, if there is one. */
  const runbookOf = (line) => {
    // A detail can go on with the problem that the lease worker reports, which has another runbook.
    const [sentence] = line.split(/(?<=\.) /);
    const [only, ...others] = runbooksWith(sentence).filter(({ share }) => share === 1);
    return only && others.length === 0 ? only.heading : runbooksWith(line)[0]?.heading;
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
