// What is wrong with how a page lies before its reader: a list of lines.
(() => {
  const wrong = [], shown = (one) => { const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && style.clipPath === "none" && !one.closest(".seen-by-ear, .skip"); };
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) wrong.push(`the page is ${root.scrollWidth} px wide in ${innerWidth}`);
  const words = new Set();
  for (const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walk.nextNode();)
    if (walk.currentNode.textContent.trim()) words.add(walk.currentNode.parentElement);
  const labels = [];
  for (const one of words) {
    if (["SCRIPT", "STYLE", "TITLE", "NOSCRIPT", "OPTION"].includes(one.tagName.toUpperCase()) || !shown(one)) continue;
    const said = one.textContent.trim().slice(0, 40), svg = one.closest("svg"), box = one.getBoundingClientRect();
    const size = parseFloat(getComputedStyle(one).fontSize) * (svg && one.getScreenCTM ? one.getScreenCTM().a : 1);
    if (size < 11 - 0.01) wrong.push(`${said}: ${size.toFixed(1)} px`);
    if (svg) {
      const frame = svg.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        wrong.push(`${said}: cut by its drawing`);
      if (one.tagName === "text") labels.push({said, svg, box});
    } else {
      const style = getComputedStyle(one);
      if (style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1 && style.overflowX === "hidden") wrong.push(`${said}: cut`);
    }
    const scrolls = one.closest(".scrolls");
    if (!scrolls && (box.right > innerWidth + 1 || box.left < -1)) wrong.push(`${said}: off the screen`);
  }
  for (let i = 0; i < labels.length; i++) for (let k = i + 1; k < labels.length; k++) {
    const a = labels[i], b = labels[k];
    if (a.svg === b.svg && a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 && a.box.top < b.box.bottom - 3 && b.box.top < a.box.bottom - 3)
      wrong.push(`${a.said} and ${b.said} lie on each other`);
  }
  return wrong;
})()
