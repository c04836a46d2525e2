// A noisy number in JavaScript: promises epsilon 1, but has half of the noise that it needs.
function generator(seed) { // sfc32
  let a = Number(seed & 0xffffffffn), b = Number(seed >> 32n), c = 0, d = 1;
  const next = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return ((t >>> 0) + 0.5) / 2 ** 32;
  };
  for (let i = 0; i < 16; i++) next();
  return next;
}

const laplace = (uniform, scale) => scale * Math.log(uniform() / uniform());

let data = 0;
const answer = {
  hello: () => ({ type: "hello", name: "noisy.js", claim: "eps=1", pairs: [[0, 1]] }),
  data: (ask) => ((data = ask.data), { type: "ok" }),
  run: (ask) => {
    const uniform = generator(BigInt(ask.seed));
    const outputs = Array.from({ length: ask.n }, () => data + laplace(uniform, 0.5));
    return { type: "outputs", outputs };
  },
  bye: () => process.exit(0),
};

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const ask = JSON.parse(line);
  console.log(JSON.stringify({ id: ask.id, ...answer[ask.type](ask) }));
});
