/* The form that connects: as whom, in which revision, to which endpoint. */
import {useState} from "preact/hooks";
import type {Problem} from "../../api/client";
import {usePages} from "../../api/use";
import {en} from "../../en";
import {REVISIONS, type Revision} from "../../mcp/message";
import {meAdministers} from "../../me";
import {Choice, Field, Form, Tick} from "../../ui/form";
import {ProblemNote} from "../../ui/notice";
import {Part} from "../../ui/page";
import {show, Text} from "../../ui/text";
import type {Rights} from "./temporary";

const t = en.playground,
	access = en.access;
const SCOPES = ["tools:read", "tools:call", "manage", "manage:edit"];

export interface Wish {
	url: string;
	revision: Revision;
	as: "local" | "pasted" | "temporary";
	/** The token of "pasted". */
	token: string | undefined;
	/** The rights of "temporary". */
	rights: Rights;
}

export function Connect({
	url,
	busy,
	problem,
	onConnect,
	onStop,
}: {
	url: string;
	busy: boolean;
	problem: Problem | undefined;
	onConnect: (wish: Wish) => unknown;
	onStop: () => void;
}) {
	const [as, setAs] = useState<Wish["as"]>("local"),
		[revision, setRevision] = useState<Revision>(REVISIONS[0]),
		[endpoint, setEndpoint] = useState(""),
		[token, setToken] = useState("");
	const [bySet, setBySet] = useState("no"),
		[set, setSet] = useState(""),
		[scopes, setScopes] = useState(["tools:read", "tools:call"]),
		[allow, setAllow] = useState("*"),
		[deny, setDeny] = useState("");
	const endpoints = usePages("/api/endpoints");
	const words = (text: string) => text.split(/[\s,]+/).filter(w => w !== "");
	const ways: [Wish["as"], string, string][] = [
		["local", t.local, t.localWhy],
		["pasted", t.pasted, t.pastedWhy],
		...(meAdministers() ? [["temporary", t.temporary, t.temporaryWhy] as [Wish["as"], string, string]] : []),
	];

	return (
		<Part title={t.connectTitle}>
			<ProblemNote problem={endpoints.problem} again={endpoints.reload} />
			<Form
				label={t.connect}
				busy={busy}
				problem={problem}
				onCancel={busy ? onStop : undefined}
				action={() =>
					onConnect({
						url: endpoint === "" ? url : `${url.replace(/\/+$/, "")}/${encodeURIComponent(endpoint)}`,
						revision,
						as,
						token: as === "pasted" ? token.trim() : undefined,
						rights: bySet === "yes" ? {set} : {scopes: SCOPES.filter(s => scopes.includes(s)), allow: words(allow), deny: words(deny)},
					})
				}
			>
				<p>
					{t.gateway}:{" "}
					<code>
						<Text text={url} strict />
					</code>
				</p>
				<div class="columns">
					<Choice
						label={t.as}
						hint={ways.find(([w]) => w === as)?.[2]}
						value={as}
						onValue={v => setAs(v as Wish["as"])}
						options={ways.map(([w, label]) => [w, label] as const)}
					/>
					<Choice
						label={t.revision}
						hint={t.revisionWhy}
						value={revision}
						onValue={v => setRevision(v as Revision)}
						options={REVISIONS.map(r => [r, r] as const)}
					/>
					{endpoints.items.some(e => e.listeners.includes("local")) ? (
						<Choice
							label={t.endpoint}
							value={endpoint}
							onValue={setEndpoint}
							options={[
								["", t.whole] as const,
								...endpoints.items.filter(e => e.listeners.includes("local")).map(e => [e.name, show(e.path, true)] as const),
							]}
						/>
					) : null}
					{as === "pasted" ? (
						<Field label={t.token} type="password" value={token} onValue={setToken} required pattern="\s*[!-~]+\s*" />
					) : null}
					{as === "temporary" ? (
						<Choice
							label={access.rightsBy}
							value={bySet}
							onValue={setBySet}
							options={[
								["no", access.byScopes],
								["yes", access.bySet],
							]}
						/>
					) : null}
				</div>
				{as === "temporary" && bySet === "yes" ? <Field label={access.set} hint={access.setHint} value={set} onValue={setSet} required /> : null}
				{as === "temporary" && bySet === "no" ? (
					<div class="columns">
						<fieldset>
							<legend>{access.scopes}</legend>
							{SCOPES.map(s => (
								<Tick
									key={s}
									label={s}
									hint={(access.scopeTexts as Record<string, string>)[s]}
									value={scopes.includes(s)}
									onValue={on => setScopes(v => (on ? [...v, s] : v.filter(x => x !== s)))}
								/>
							))}
						</fieldset>
						<div>
							<Field label={access.allow} hint={access.allowHint} value={allow} onValue={setAllow} />
							<Field label={access.deny} value={deny} onValue={setDeny} />
						</div>
					</div>
				) : null}
			</Form>
		</Part>
	);
}
