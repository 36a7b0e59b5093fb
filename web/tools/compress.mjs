// Writes FILE.br and FILE.gz beside every file over 1 KB that becomes shorter by it.
//
// Usage: node compress.mjs FOLDER
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const folder = process.argv[2];
const MIN = 1024;
/** What is compressed already, or seldom asked for. */
const SKIPPED = /\.(br|gz|pdf|bcmap|pfb|png|woff2)$|(^|\/)\.|LICENSE/;

for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
  const path = join(folder, name);
  // The page is made for each request.
  if (SKIPPED.test(name) || name === "index.html" || !statSync(path).isFile()) continue;
  const bytes = readFileSync(path);
  if (bytes.length < MIN) continue;
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  const gzip = gzipSync(bytes, { level: 9 });
  if (brotli.length < bytes.length) writeFileSync(`${path}.br`, brotli);
  if (gzip.length < bytes.length) writeFileSync(`${path}.gz`, gzip);
}
