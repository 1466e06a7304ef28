// Lines {"schema": ..., "values": [...]} from standard input; answers, a line
// each, [true, false, ...]: what Ajv says of them as JSON Schema 2020-12.
// argv: the folder whose node_modules has ajv.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.argv[2]}/`);
const Ajv = require("ajv/dist/2020").default;

for await (const line of createInterface({ input: process.stdin })) {
	const { schema, values } = JSON.parse(line);
	const validate = new Ajv({ strict: false, validateFormats: false, logger: false }).compile(schema);
	console.log(JSON.stringify(values.map((v) => validate(v))));
}
