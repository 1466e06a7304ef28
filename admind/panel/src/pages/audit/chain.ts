/*
 * What a browser can prove about rows of the audit log.
 *
 * A row's bytes are those that were hashed (sql/schema/audit.sql): "mcpbox audit
 * 1" NUL, the number and the time as 64-bit numbers, then actor, action, subject
 * and detail, each with its length. A row fits where SHA-256 of prev_hash and
 * these bytes is its hash, and where the bytes say what the page shows. The
 * vault's signatures need the vault's key, so no browser can check them.
 */
import type {Schemas} from "../../api/client";

export type Row = Schemas["AuditRow"];
/** The faults of a row: its hash, its text beside its bytes, its link to the row before. */
export type Fault = "hash" | "text" | "link";

export interface Chain {
	rows: number;
	/** Neighbours whose link was compared. */
	links: number;
	faults: {seq: number; fault: Fault}[];
}

const HEAD = "mcpbox audit 1\0";
const HEX = /^(?:[0-9a-f]{2})*$/;

function unhex(text: string): Uint8Array<ArrayBuffer> {
	const out = new Uint8Array(HEX.test(text) ? text.length / 2 : 0);
	for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
	return out;
}

async function hashFits(r: Row): Promise<boolean> {
	const prev = unhex(r.prev_hash),
		row = unhex(r.row),
		both = new Uint8Array(prev.length + row.length);
	both.set(prev);
	both.set(row, prev.length);
	const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", both));
	return [...digest].map(b => b.toString(16).padStart(2, "0")).join("") === r.hash;
}

/* Reads the bytes of a row; throws where they have another form. */
function rowRead(bytes: Uint8Array<ArrayBuffer>) {
	const view = new DataView(bytes.buffer),
		utf8 = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}),
		texts: string[] = [];
	let at = HEAD.length;

	if (utf8.decode(bytes.subarray(0, at)) !== HEAD) throw new Error("another head");
	const seq = Number(view.getBigUint64(at)),
		ms = Number(view.getBigUint64(at + 8));
	for (at += 16; at < bytes.length;) {
		const n = view.getUint32(at);
		if (at + 4 + n > bytes.length) throw new Error("a text past the end");
		texts.push(utf8.decode(bytes.subarray(at + 4, at + 4 + n)));
		at += 4 + n;
	}
	return {seq, ms, texts};
}

function textFits(r: Row): boolean {
	try {
		const {seq, ms, texts} = rowRead(unhex(r.row)),
			[actor, action, subject, detail] = texts;
		return (
			seq === r.seq &&
			ms === new Date(r.at).getTime() &&
			texts.length === 4 &&
			actor === r.actor &&
			action === r.action &&
			subject === r.subject &&
			JSON.stringify(JSON.parse(detail!)) === JSON.stringify(r.detail)
		);
	} catch {
		return false;
	}
}

/** Checks rows, newest first. Throws where the browser computes no hashes: it does so only on a page of this machine or over https. */
export async function chainCheck(rows: readonly Row[]): Promise<Chain> {
	const hashes = await Promise.all(rows.map(hashFits)),
		chain: Chain = {rows: rows.length, links: 0, faults: []};

	rows.forEach((r, i) => {
		const before = rows[i + 1],
			next = before !== undefined && before.seq === r.seq - 1;
		if (!hashes[i]) chain.faults.push({seq: r.seq, fault: "hash"});
		if (!textFits(r)) chain.faults.push({seq: r.seq, fault: "text"});
		if (next) {
			chain.links++;
			if (before.hash !== r.prev_hash) chain.faults.push({seq: r.seq, fault: "link"});
		}
	});
	return chain;
}
