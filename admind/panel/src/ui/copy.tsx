/* Text that is taken elsewhere: a command for a shell, an address for a client. */
import {useEffect, useState} from "preact/hooks";
import {en} from "../en";
import {Text} from "./text";

/* A name in a command may come from admind. An escape sequence in it would leave a terminal's paste and run as root, so other
   text than visible ASCII is shown with its marks, and no button copies it. */
const COPIED = /^[ -~\n]*$/;

/** Draws the text as it is, with a button that copies it. `label` says what it is. */
export function Copy({label, text}: {label: string; text: string}) {
	const [copied, setCopied] = useState(false);

	useEffect(() => setCopied(false), [text]);
	if (!COPIED.test(text))
		return (
			<p>
				<Text text={text} strict />
			</p>
		);
	return (
		<div class="copy">
			<pre class="plain" tabIndex={0} aria-label={label}>
				{text}
			</pre>
			<p>
				<button
					type="button"
					class="small"
					aria-label={en.copyOf(label)}
					onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
				>
					{en.once.copy}
				</button>{" "}
				<span role="status">{copied ? en.once.copied : ""}</span>
			</p>
		</div>
	);
}
