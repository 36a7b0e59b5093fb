// Writes FILE.br and FILE.gz beside every file over 1 KB that becomes shorter by it.
//
// Usage: node compress.mjs FOLDER
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const folder = process.argv[2];
const MIN = 1024;
/** What is compressed already, or seldom asked for. */
const SKIPPED = /\.(br|gz|pdf|bcmap|pfb|png|woff2)$|(^|\/)\.|LICENSE/;
/** Pages that are made for each request. */
const PAGES = new Set(["index.html", "docs.html"]);

async function compress(path) {
  const bytes = readFileSync(path);
  if (bytes.length < MIN) return;
  const brotli = await promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  const gzipped = await promisify(gzip)(bytes, { level: 9 });
  if (brotli.length < bytes.length) writeFileSync(`${path}.br`, brotli);
  if (gzipped.length < bytes.length) writeFileSync(`${path}.gz`, gzipped);
}

const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
const paths = files.filter((name) => !SKIPPED.test(name) && !PAGES.has(name)).map((name) => join(folder, name)).filter((path) => statSync(path).isFile());
// Each takes one core.
const next = paths[Symbol.iterator]();
await Promise.all(Array.from({ length: 4 }, async () => {
  for (const path of next) await compress(path);
}));
