// What site/look.sh --widths asks of a page: the title becomes "wide" and the first part of the article that goes
// beyond the window's edge and lies in nothing that scrolls, or "fits".
document.title = (function () {
  const scrolls = (node) => node && node.tagName !== "ARTICLE" &&
    (/auto|scroll/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  for (const node of document.querySelectorAll("article *")) {
    if (node.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node)) {
      return "wide " + node.tagName.toLowerCase() + " " + node.textContent.trim().slice(0, 60).replace(/\s+/g, " ");
    }
  }
  return "fits";
})();
