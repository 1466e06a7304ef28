// Prints {revision: JSON schema} as the official conformance suite carries them:
// published nowhere else as a package. argv: its dist/index.js.
//
// They stand in it as object literals, named in one table; whatever of that is
// not found is an error, and so is a test that needs it.
import { readFileSync } from "node:fs";

const text = readFileSync(process.argv[2], "utf8");
const id = "([\\w$]+)";
const table = text.match(new RegExp(
    `\\{"2025-03-26":${id},"2025-06-18":${id},"2025-11-25":${id},\\[${id}\\]:${id}\\}`));
if (table === null)
	throw new Error("the suite has no table of schemas where one was");
const revision = text.match(new RegExp(`[,;\\s]${table[4].replaceAll("$", "\\$")}=\`([0-9-]{10})\``));
if (revision === null)
	throw new Error("the suite's newest revision has no name");

/** The literal that begins at `from`: braces counted outside of strings. */
function literal(from) {
	let depth = 0;
	for (let i = from; i < text.length; i++) {
		const c = text[i];
		if (c === "`" || c === '"' || c === "'") {
			for (i++; text[i] !== c; i++)
				if (text[i] === "\\")
					i++;
		} else if (c === "{" || c === "[") {
			depth++;
		} else if ((c === "}" || c === "]") && --depth === 0) {
			return text.slice(from, i + 1);
		}
	}
	throw new Error("a literal has no end");
}

function schema(name) {
	const begin = `${name}={$schema:`;
	for (const before of [",", ";", " "]) {
		const at = text.indexOf(before + begin);
		if (at >= 0)
			return new Function(`return ${literal(at + 1 + name.length + 1)}`)();
	}
	throw new Error(`the suite has no schema ${name}`);
}

const out = {
	"2025-03-26": schema(table[1]),
	"2025-06-18": schema(table[2]),
	"2025-11-25": schema(table[3]),
	[revision[1]]: schema(table[5]),
};
process.stdout.write(JSON.stringify(out));
