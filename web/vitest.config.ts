import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["src/**/*.test.ts"], environment: "node" }, define: { PDFJS_FOLDER: '""' } });
