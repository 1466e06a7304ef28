/* Bytes that stand as base64: how many there are, and their SHA-256. */
import {useEffect, useState} from "preact/hooks";
import {en} from "../en";
import {bytes} from "./text";

/** Says how long a file is that stands as base64, and its SHA-256, as sha256sum prints it for the file. */
export function BlobFacts({base64}: {base64: string}) {
	const [text, set] = useState("");

	useEffect(() => {
		let here = true;
		const say = async () => {
			const raw = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
			const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", raw));
			return en.approvals.blob(bytes(raw.length), [...hash].map(b => b.toString(16).padStart(2, "0")).join(""));
		};
		say()
			.catch(() => en.approvals.notBase64)
			.then(s => here && set(s));
		return () => {
			here = false;
		};
	}, [base64]);
	return <p class="whole-hash">{text}</p>;
}
