// For each page and width: elements that stick out, texts of a picture that overlap, and texts
// whose contrast with the nearest painted ground is below 4.5 (Web Content Accessibility Guidelines).
const channel = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const rgba = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = ([r, g, b]) =>
  0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);

function contrast(one, other) {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function ground(node, view) {
  for (let at = node; at; at = at.parentElement) {
    const colour = rgba(view.getComputedStyle(at).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
}

const name = (node) =>
  `${node.tagName.toLowerCase()}.${node.getAttribute("class") || ""}: ${node.textContent.trim().slice(0, 40)}`;
const shown = (node) => node.checkVisibility({ contentVisibilityAuto: true }) && node.getClientRects().length;
const hidden = (node) => node.closest(".skip, thead");

function check(doc, view, width) {
  doc.querySelectorAll("details").forEach((details) => (details.open = true));
  const wrong = { overflow: [], overlap: [], contrast: [] };
  if (doc.documentElement.scrollWidth > width) wrong.overflow.push(`page ${doc.documentElement.scrollWidth}`);
  for (const node of doc.body.querySelectorAll("*")) {
    if (!shown(node) || node.closest("style")) continue;
    const box = node.getBoundingClientRect();
    if (!hidden(node) && !node.closest(".scroll") && (box.right > width + 1 || box.left < -1))
      wrong.overflow.push(name(node));
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || node.closest("title")) continue;
    const style = view.getComputedStyle(node);
    const ink = rgba(node.closest("svg") ? style.fill : style.color);
    const ratio = contrast(ink, ground(node, view));
    if (ratio < 4.5) wrong.contrast.push(`${ratio.toFixed(2)} ${name(node)}`);
  }
  for (const picture of doc.querySelectorAll("svg")) {
    const boxes = [...picture.querySelectorAll("text")].map((node) => [node, node.getBoundingClientRect()]);
    boxes.forEach(([one, a], i) => {
      for (const [other, b] of boxes.slice(i + 1)) {
        const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
        if (!apart) wrong.overlap.push(`${name(one)} / ${name(other)}`);
      }
    });
  }
  for (const kind in wrong) wrong[kind] = wrong[kind].slice(0, 5);
  return wrong;
}

async function all() {
  const found = {};
  for (const [title, page] of Object.entries(config.pages)) {
    for (const width of config.widths) {
      const frame = document.createElement("iframe");
      frame.style.cssText = `width:${width}px;height:800px;border:0`;
      const loaded = new Promise((done) => (frame.onload = done));
      frame.srcdoc = page;
      document.body.append(frame);
      await loaded;
      found[`${title} at ${width}`] = check(frame.contentDocument, frame.contentWindow, width);
      frame.remove();
    }
  }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
}
all();
