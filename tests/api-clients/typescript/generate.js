// Types of the document, with files as Blob: that is how browsers and Node send them.
//   node generate.js openapi.json > api.ts
import { readFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const blob = ts.factory.createTypeReferenceNode("Blob");
const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const types = await openapiTS(document, {
  transform: (schema) => (schema.format === "binary" ? blob : undefined),
});
process.stdout.write(astToString(types));
