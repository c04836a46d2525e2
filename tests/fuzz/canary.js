// Shows each page in a frame, pokes at every element, and tells what came alive: a script that ran
// (it sets `owned` of the top window), handlers, addresses that run or load something.
const RUNS = /^\s*(javascript|vbscript|data):/i;
const TELLS = ["href", "src", "srcset", "action", "formaction", "xlink:href", "data", "poster", "background"];

function poke(doc, view) {
  for (const node of doc.querySelectorAll("*")) {
    for (const kind of ["mouseover", "mouseenter", "focus", "click", "toggle", "animationstart", "error", "load"])
      if (node.tagName !== "A") node.dispatchEvent(new view.Event(kind, { bubbles: true }));
    if (node.tagName === "DETAILS") node.open = true;
  }
}

function alive(doc) {
  const found = [...doc.querySelectorAll("script,iframe,object,embed,img,form,base,link,meta[http-equiv]")];
  const told = found.map((node) => node.outerHTML.slice(0, 120));
  for (const node of doc.querySelectorAll("*")) {
    for (const { name, value } of node.attributes) {
      const loads = TELLS.includes(name) && (RUNS.test(value) || /^(https?:)?\/\//i.test(value));
      if (/^on/i.test(name) || loads) told.push(`${node.tagName} ${name}=${value.slice(0, 80)}`);
    }
  }
  return told;
}

async function all() {
  const found = {};
  for (const [title, page] of Object.entries(config)) {
    window.owned = [];
    const frame = document.createElement("iframe");
    const loaded = new Promise((done) => (frame.onload = done));
    frame.srcdoc = page;
    document.body.append(frame);
    await loaded;
    const doc = frame.contentDocument;
    const told = alive(doc);
    poke(doc, frame.contentWindow);
    await new Promise((done) => setTimeout(done, 50));
    found[title] = { owned: window.owned, alive: told, length: doc.body.textContent.length };
    frame.remove();
  }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
}
all();
