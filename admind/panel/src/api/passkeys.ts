/*
 * Passkeys (docs/decisions/0104, 0115): the browser's part of a ceremony. The
 * vault makes the challenge and judges the answer, so nothing here decides
 * anything.
 *
 * A browser uses passkeys at a page with a domain name, not at an address. So
 * each ceremony is asked for only where passkeysLack() is undefined.
 */
import {en} from "../en";
import {api, Refusal, type Schemas, send} from "./client";

/** The reason why this page can use no passkey: it is at an address, or the browser lacks a part of WebAuthn. */
export type PasskeysLack = "address" | "browser";

type Kind = "register" | "login" | "proof";

/* An address of IPv6 is in brackets; one of IPv4 ends with a number, as no domain name does. */
const ADDRESS = /^\[|(^|\.)\d+$/;

/** Returns the reason why this page can use no passkey, or undefined where it can. */
export function passkeysLack(): PasskeysLack | undefined {
	if (ADDRESS.test(location.hostname)) return "address";
	/* The forms as JSON came last; browsers since 2025 have them. */
	return isSecureContext &&
		"PublicKeyCredential" in window &&
		"parseRequestOptionsFromJSON" in PublicKeyCredential &&
		"parseCreationOptionsFromJSON" in PublicKeyCredential
		? undefined
		: "browser";
}

/* Names a refusal of the browser. Its own message is of no use to people, and says the same for several causes. */
function refused(e: unknown): Refusal {
	const name = e instanceof DOMException ? e.name : "";
	const said = Object.hasOwn(en.passkey.faults, name) ? en.passkey.faults[name]! : en.passkey.faults.other!;
	return new Refusal({type: "about:blank", title: en.passkey.refused, status: 0, failure_mode: "passkey", ...said});
}

/* Asks the vault for a challenge of this login. half: of a login that waits for its passkey. */
async function challenge(kind: Kind, half?: string): Promise<object> {
	const answer = await send("POST", "/api/passkeys/challenge", {body: {kind}, half});
	return ((await answer.json()) as {publicKey: object}).publicKey;
}

/* Runs a ceremony. The signal ends it: no device is to be touched for a dialog that is gone. */
async function ceremony<T>(kind: Kind, signal: AbortSignal, half?: string): Promise<T> {
	const options = await challenge(kind, half);
	let made: Credential | null;

	try {
		signal.throwIfAborted();
		made =
			kind === "register"
				? await navigator.credentials.create({
						publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON),
						signal,
					})
				: await navigator.credentials.get({
						publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON),
						signal,
					});
	} catch (e) {
		throw refused(e);
	}
	if (!(made instanceof PublicKeyCredential)) throw refused(undefined);
	return made.toJSON() as T;
}

/** Shows the passkey that a login by password waits for. half: that login's. Throws a Refusal. */
export async function passkeysLogin(half: string, signal: AbortSignal): Promise<void> {
	const assertion = await ceremony<Schemas["Assertion"]>("login", signal, half);
	await send("POST", "/api/login/passkey", {body: {assertion}, half});
}

/** Proves with a passkey that the person is there. Throws a Refusal. */
export async function passkeysProve(signal: AbortSignal): Promise<void> {
	const assertion = await ceremony<Schemas["Assertion"]>("proof", signal);
	await api.post("/api/proof", {body: {assertion}});
}

/** Makes a passkey and registers it. code: of root, for the first one of an issuer's person. Throws a Refusal. */
export async function passkeysRegister(label: string, code: string, signal: AbortSignal): Promise<void> {
	const credential = await ceremony<Schemas["Credential"]>("register", signal);
	await api.post("/api/passkeys", {body: code === "" ? {label, credential} : {label, code, credential}});
}
