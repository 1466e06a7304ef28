/* One module of the store: where it came from, and what is known against it. */
import type {Schemas} from "../../api/client";
import {en} from "../../en";
import {link} from "../../route";
import {Note, State} from "../../ui/notice";
import {Facts} from "../../ui/table";
import {count, Hash, Text, Time} from "../../ui/text";

const t = en.modules;
type Module = Schemas["Module"];
type Advisories = NonNullable<NonNullable<Module["wheel"]>["advisories"]>;

function known(a: Advisories): number {
	return "known" in a ? a.known.length + a.more : 0;
}

/** Draws the state of a module, with weaknesses in the same place. */
export function ModuleState({m}: {m: Module}) {
	const a = m.wheel?.advisories,
		n = a ? known(a) : 0;
	return (
		<>
			<State state={m.state} kind={m.state === "available" ? "good" : "bad"} />
			{n > 0 ? (
				<>
					{" "}
					<State state={t.weak(n)} kind="bad" />
				</>
			) : a && "error" in a ? (
				<>
					{" "}
					<State state={t.notJudged} kind="warn" />
				</>
			) : null}
		</>
	);
}

/** Draws the name of a module, and on demand all that is known of it. */
export function OneModule({m}: {m: Module}) {
	const w = m.wheel,
		a = w?.advisories;
	return (
		<details class="plain-weight">
			<summary>
				<strong>
					<Text text={m.name} />
				</strong>
			</summary>
			{w?.summary ? (
				<p>
					<Text text={w.summary} />
				</p>
			) : null}
			<Facts
				facts={[
					[t.digest, <Hash hash={m.digest} />],
					[t.files, count(m.files)],
					[t.license, w ? w.license ? <Text text={w.license} /> : t.notSaid : null],
					[t.from, w ? <Text text={w.url} /> : t.byRoot],
					[
						t.added,
						<>
							{t.by} <Text text={m.added_by} />, <Time at={m.added_at} />
						</>,
					],
					[t.python, w?.requires_python ? <Text text={w.requires_python} /> : null],
					[
						t.advisories,
						!w ? null : !a ? (
							t.noFeed
						) : "error" in a ? (
							<>
								{t.feedFailed}: <Text text={a.error} />
							</>
						) : known(a) === 0 ? (
							t.noAdvisories
						) : (
							count(known(a))
						),
					],
					[
						t.fetchedAt,
						w ? (
							<>
								<Time at={w.installed_at} />, <a href={link("calls", w.execution)}>{t.run}</a>
							</>
						) : null,
					],
				]}
			/>
			{w?.needs && w.needs.length > 0 ? (
				<>
					<p class="quiet">{t.needs}</p>
					<ul class="rows">
						{w.needs.map(n => (
							<li key={n.requirement}>
								<code>
									<Text text={n.requirement} />
								</code>{" "}
								{n.error ? (
									<Text text={n.error} />
								) : n.version ? (
									<span class="quiet">
										<Text text={n.version} />
									</span>
								) : null}
							</li>
						))}
					</ul>
				</>
			) : null}
			{a && "known" in a
				? a.known.map(k => (
						<Note key={k.id} kind="warn">
							<p>
								<code>
									<Text text={k.id} />
								</code>{" "}
								<Text text={k.summary} />
							</p>
							{k.aliases.length > 0 ? (
								<p class="quiet">
									{k.aliases.map((x, i) => (
										<>
											{i > 0 ? ", " : ""}
											<Text text={x} />
										</>
									))}
								</p>
							) : null}
						</Note>
					))
				: null}
			{a && "known" in a && a.more > 0 ? <p class="quiet">{t.more(a.more)}</p> : null}
		</details>
	);
}
