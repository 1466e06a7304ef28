/*
 * Keys of the review page. Single letters can be turned off (WCAG 2.2, 2.1.4).
 * They do nothing while a field or a dialog has the focus.
 */
import {useEffect, useRef, useState} from "preact/hooks";
import {en} from "../../en";
import {Dialog} from "../../ui/dialog";
import {Tick} from "../../ui/form";

const KEY = "mcpbox-keys-off";

/** Returns true if keys do something in this tab. */
export function keysOn(): boolean {
	return sessionStorage.getItem(KEY) === null;
}

/** Calls the function of a key that was pressed. */
export function useKeys(keys: Record<string, (() => void) | undefined>): void {
	const latest = useRef(keys);
	latest.current = keys;

	useEffect(() => {
		const f = (e: KeyboardEvent) => {
			const at = e.target instanceof Element ? e.target : document.body;
			if (
				!keysOn() ||
				e.ctrlKey ||
				e.altKey ||
				e.metaKey ||
				e.repeat ||
				e.isComposing ||
				document.querySelector("dialog[open]") !== null ||
				at.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null ||
				!Object.hasOwn(latest.current, e.key)
			)
				return;
			const act = latest.current[e.key];
			if (act !== undefined) {
				e.preventDefault();
				act();
			}
		};
		document.addEventListener("keydown", f);
		return () => document.removeEventListener("keydown", f);
	}, []);
}

/** Draws the list of keys, and the box that turns them off. */
export function KeysHelp({onClose}: {onClose: () => void}) {
	const [on, setOn] = useState(keysOn());

	return (
		<Dialog title={en.approvals.keys} onClose={onClose}>
			<dl class="keys">
				{en.approvals.keyList.map(([key, what]) => (
					<div key={key}>
						<dt>
							<kbd>{key}</kbd>
						</dt>
						<dd>{what}</dd>
					</div>
				))}
			</dl>
			<Tick
				label={en.approvals.keysUse}
				hint={en.approvals.keysHint}
				value={on}
				onValue={v => {
					if (v) sessionStorage.removeItem(KEY);
					else sessionStorage.setItem(KEY, "1");
					setOn(v);
				}}
			/>
			<div class="buttons">
				<button type="button" onClick={onClose}>
					{en.close}
				</button>
			</div>
		</Dialog>
	);
}
