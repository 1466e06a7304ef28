/* Parts that the sign-in, the proof and the account share: where passkeys work, and a ceremony that ends with its part. */
import {useEffect, useRef} from "preact/hooks";
import type {PasskeysLack} from "../api/passkeys";
import {useRead} from "../api/use";
import {en} from "../en";

/** Says in a sentence why this page can use no passkey, and names the pages that can. */
export function PasskeyPlaces({lack}: {lack: PasskeysLack}) {
	const places = useRead(lack === "address" ? "/api/panel" : null),
		origins = places.data?.origins;

	if (lack === "browser") return <p>{en.passkey.browser}</p>;
	return (
		<p>
			{en.passkey.address}{" "}
			{origins?.length ? (
				<>
					{en.passkey.open}{" "}
					{origins.map((o, i) => (
						<span key={o}>
							{i > 0 ? `, ${en.or} ` : ""}
							<a href={`${o}/`}>{o}</a>
						</span>
					))}
					.
				</>
			) : origins || places.problem ? (
				en.passkey.noPlace
			) : null}
		</p>
	);
}

export interface Ceremony {
	/** Runs f, which ends when the signal aborts. Returns false where it was ended, and throws what f throws otherwise. */
	run: (f: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
	/** Ends what runs. */
	end: () => void;
}

/** Returns a runner of ceremonies. One that runs ends when another begins, and when the component goes. */
export function useCeremony(): Ceremony {
	const running = useRef<AbortController | undefined>(undefined);
	const end = () => running.current?.abort();

	useEffect(() => end, []);
	return {
		end,
		run: async f => {
			end();
			const {signal} = (running.current = new AbortController());
			try {
				await f(signal);
			} catch (e) {
				if (!signal.aborted) throw e;
			}
			return !signal.aborted;
		},
	};
}
