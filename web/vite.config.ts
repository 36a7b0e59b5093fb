import { cpSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import optimizeLocales from "@react-aria/optimize-locales-plugin";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const pdfjs = resolve(import.meta.dirname, "node_modules/pdfjs-dist");
const pdfjsVersion: string = JSON.parse(readFileSync(`${pdfjs}/package.json`, "utf8")).version;
/** Where the tables and fonts of pdf.js are served; the name carries the version, so that browsers may keep them. */
const pdfjsFolder = `assets/pdfjs-${pdfjsVersion}`;

/** Copies what pdf.js loads by itself: tables of characters, the standard fonts, decoders that need no WebAssembly. */
const pdfjsFiles: Plugin = {
  name: "pdfjs-files",
  apply: "build",
  closeBundle() {
    const to = resolve(import.meta.dirname, "dist", pdfjsFolder);
    for (const folder of ["cmaps", "standard_fonts", "wasm"]) {
      cpSync(`${pdfjs}/${folder}`, `${to}/${folder}`, {
        recursive: true,
        filter: (name) => !name.endsWith(".wasm") && !name.includes("quickjs"),
      });
    }
  },
};

/** The paper and the repository that one can try okt with. */
const samples = [
  ["sample.pdf", "tides.pdf", "application/pdf"],
  ["sample.okt", "electric-ferries.okt.json.gz", "application/gzip"],
].map(([name, file, type]) => ({ name: name!, type: type!, path: resolve(import.meta.dirname, "../docs/sample", file!) }));
const sampleFiles: Plugin = {
  name: "sample-files",
  closeBundle: () => samples.forEach(({ name, path }) => cpSync(path, resolve(import.meta.dirname, "dist", name))),
  configureServer: (server) =>
    samples.forEach(({ name, path, type }) => server.middlewares.use(`/${name}`, (_, response) => void response.setHeader("content-type", type).end(readFileSync(path)))),
};

const scalar = resolve(import.meta.dirname, "node_modules/@scalar/api-reference");
const scalarVersion: string = JSON.parse(readFileSync(`${scalar}/package.json`, "utf8")).version;
const scalarFolder = `assets/scalar-${scalarVersion}`;

/** Copies the build of Scalar for browsers, in its many small files. What it is made of is in it, so none of that is installed. */
const scalarFiles: Plugin = {
  name: "scalar-files",
  apply: "build",
  closeBundle() {
    cpSync(`${scalar}/dist/browser`, resolve(import.meta.dirname, "dist", scalarFolder), {
      recursive: true,
      filter: (name) => !name.endsWith(".map") && !name.endsWith("/standalone.js"),
    });
  },
};

/** In development nothing puts a nonce into the page. */
const noNonce: Plugin = {
  name: "no-nonce",
  apply: "serve",
  transformIndexHtml: (html) => html.replace('nonce="NONCE"', 'nonce=""'),
};

export default defineConfig({
  // The page has a `<base>`, so that okt works below a path.
  base: "./",
  plugins: [react(), { ...optimizeLocales.vite({ locales: ["en-US", "de-DE"] }), enforce: "pre" }, sampleFiles, pdfjsFiles, scalarFiles, noNonce],
  define: { PDFJS_FOLDER: JSON.stringify(pdfjsFolder), SCALAR_FOLDER: JSON.stringify(scalarFolder) },
  worker: { format: "es" },
  build: {
    target: "es2022",
    rolldownOptions: { input: { index: resolve(import.meta.dirname, "index.html"), docs: resolve(import.meta.dirname, "docs.html") } },
    modulePreload: { polyfill: false },
    // Small files inside of scripts would be data: addresses, which the policy of the page refuses.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    reportCompressedSize: false,
  },
  server: {
    port: Number(process.env.PORT ?? 5173),
    proxy: { "/api": process.env.OKT_URL ?? "http://127.0.0.1:8080", "/readyz": process.env.OKT_URL ?? "http://127.0.0.1:8080" },
  },
});
