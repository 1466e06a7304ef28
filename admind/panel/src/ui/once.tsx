/* A secret that is shown once: a token, a key. */
import {useState} from "preact/hooks";
import {en} from "../en";
import {Note} from "./notice";

/** Draws the secret with a button that copies it. It is gone with the component. */
export function Once({secret, how}: {secret: string; how: string}) {
	const [copied, setCopied] = useState(false);
	return (
		<Note kind="good">
			<p>
				<strong>{en.once.title}</strong> {en.once.why}
			</p>
			<p>
				<code class="secret" tabIndex={0}>
					{secret}
				</code>
			</p>
			<p>
				<button type="button" class="small" onClick={() => void navigator.clipboard.writeText(secret).then(() => setCopied(true))}>
					{en.once.copy}
				</button>{" "}
				<span role="status">{copied ? en.once.copied : ""}</span>
			</p>
			<p class="quiet">{how}</p>
		</Note>
	);
}
