// The search of this site: no server, and nothing to fetch, so that it works for pages in a folder too.
// search_sections.js has sections = [[page, title of the page, anchor, heading, text], …].
(function () {
  const input = document.getElementById("site-search-words");
  const count = document.getElementById("site-search-count");
  const results = document.getElementById("site-search-results");
  const most = 50;
  const weights = [[/^(tutorial|guides)\//, 1.5], [/^(index|compare|overview|reference\/[a-z_]+)\.html/, 1.3],
                   [/^design\//, 0.8], [/^(changelog|contributing|examples|benchmarks\/)/, 0.6]];

  const entries = sections.map(([page, title, anchor, heading, text]) => ({
    page, title, anchor, heading, text,
    low: { title: title.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase() },
    weight: (weights.find(([pattern]) => pattern.test(page)) || [null, 1])[1],
  }));

  // How well a section answers; 0: a word is missing.
  function score(entry, words, phrase) {
    let sum = 0;
    for (const word of words) {
      let found = 0;
      if (entry.low.heading.includes(word)) found += 6;
      if (entry.low.title.includes(word)) found += 3;
      let at = entry.low.text.indexOf(word);
      for (let n = 0; at >= 0 && n < 4; ++n) {
        found += 1;
        at = entry.low.text.indexOf(word, at + word.length);
      }
      if (found === 0) return 0;
      sum += found;
    }
    if (entry.low.heading === phrase) sum += 12;
    if (words.length > 1 && entry.low.heading.includes(phrase)) sum += 12;
    if (words.length > 1 && entry.low.title.includes(phrase)) sum += 8;
    if (words.length > 1 && entry.low.text.includes(phrase)) sum += 4;
    return sum * entry.weight;
  }

  // Puts `text` into `node` with the words marked.
  function marked(node, text, words) {
    const pattern = new RegExp("(" + words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "gi");
    for (const part of text.split(pattern)) {
      if (words.includes(part.toLowerCase())) {
        const mark = document.createElement("mark");
        mark.textContent = part;
        node.append(mark);
      } else {
        node.append(part);
      }
    }
  }

  function excerpt(entry, words) {
    const places = words.map((word) => entry.low.text.indexOf(word)).filter((place) => place >= 0);
    let from = places.length > 0 ? Math.max(0, Math.min(...places) - 60) : 0;
    if (from > 0) from = entry.text.indexOf(" ", from) + 1;
    const part = entry.text.slice(from, from + 200);
    return (from > 0 ? "… " : "") + part + (from + 200 < entry.text.length ? " …" : "");
  }

  function show() {
    const phrase = input.value.trim().toLowerCase();
    const words = [...new Set(phrase.split(/\s+/).filter((word) => word.length > 0))];
    results.replaceChildren();
    count.textContent = "";
    if (words.length === 0 || (words.length === 1 && words[0].length < 2)) return;
    const found = entries.map((entry) => [score(entry, words, phrase), entry]).filter(([points]) => points > 0);
    found.sort((a, b) => b[0] - a[0]);
    count.textContent = found.length === 0 ? "Nothing has all of these words."
      : found.length > most ? `The first ${most} of ${found.length} places.`
      : found.length === 1 ? "1 place." : `${found.length} places.`;
    for (const [, entry] of found.slice(0, most)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = entry.page + (entry.anchor ? "#" + entry.anchor : "");
      marked(link, entry.heading === entry.title ? entry.title : `${entry.title} › ${entry.heading}`, words);
      const text = document.createElement("p");
      marked(text, excerpt(entry, words), words);
      item.append(link, text);
      results.append(item);
    }
  }

  input.value = new URLSearchParams(location.search).get("q") || "";
  input.addEventListener("input", show);
  input.form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
