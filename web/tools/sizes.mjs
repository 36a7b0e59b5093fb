// Fails when a part of the UI has become larger than it may be. Sizes are those of gzip.
//
// Usage: node sizes.mjs FOLDER
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const folder = process.argv[2];
const KB = 1000;
const size = (name) => gzipSync(readFileSync(`${folder}/${name}`), { level: 9 }).length;
const files = readdirSync(`${folder}/assets`).filter((name) => /\.(m?js|css)$/.test(name));
const html = readFileSync(`${folder}/index.html`, "utf8");
const shell = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name]) => name);
const sum = (names) => names.reduce((bytes, name) => bytes + size(name), 0);
const named = (pattern) => files.filter((name) => pattern.test(name)).map((name) => `assets/${name}`);

const special = [
  ["shell, scripts", shell.filter((name) => name.endsWith(".js")), 190],
  ["all styles", named(/\.css$/), 25],
  ["pdf", named(/^pdf-.*\.js$/), 140],
  ["worker of pdf", named(/^pdf\.worker.*\.mjs$/), 385],
  ["graph and its worker", named(/^(graph-drawing|layout\.worker)-.*\.js$/), 60],
  ["markdown", named(/^prose-.*\.js$/), 55],
];
const known = new Set(special.flatMap(([, names]) => names));
const pages = files.map((name) => `assets/${name}`).filter((name) => !known.has(name)).map((name) => [name.replace("assets/", ""), [name], 40]);

let failed = false;
for (const [what, names, most] of [...special, ...pages]) {
  const bytes = sum(names);
  const over = names.length === 0 || bytes > most * KB;
  failed ||= over;
  if (over || !what.includes(".")) console.log(`${over ? "TOO LARGE " : ""}${what}: ${(bytes / KB).toFixed(1)} of ${most} KB`);
}
if (failed) process.exit(1);
