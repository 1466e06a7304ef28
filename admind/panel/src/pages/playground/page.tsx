/*
 * The Playground (docs/decisions/0116): a client of MCP in this page. This file
 * holds the connection, and ends it with all that belongs to it.
 */
import {useEffect, useReducer, useRef, useState} from "preact/hooks";
import {sessionBeforeEnd} from "../../api/session";
import {useAction, useRead} from "../../api/use";
import {en} from "../../en";
import {McpClient, type Server} from "../../mcp/client";
import {McpFailure} from "../../mcp/failure";
import {MessageRecord} from "../../mcp/record";
import type {PageProps} from "../../pages";
import {link} from "../../route";
import {done, Empty, Loading, Note, ProblemNote} from "../../ui/notice";
import {Page} from "../../ui/page";
import {Text} from "../../ui/text";
import {Connect, type Wish} from "./connect";
import {Messages} from "./messages";
import {Connected} from "./connected";
import {refused} from "./refused";
import {type Temporary, temporaryMake, temporaryRevoke} from "./temporary";

const t = en.playground;

export interface Connection {
	client: McpClient;
	server: Server;
	as: Wish["as"];
	temporary: Temporary | undefined;
}

export default function Playground({rest}: PageProps) {
	const status = useRead("/api/status");
	const [at, setAt] = useState<Connection>(),
		[left, setLeft] = useState<string>();
	const [, draw] = useReducer((n: number) => n + 1, 0);
	const [record] = useState(() => new MessageRecord(draw as () => void));
	/* The connection that has to end, known at once and not only when the page is drawn. */
	const open = useRef<{temporary?: Temporary; client?: McpClient}>({}),
		gone = useRef(false),
		stop = useRef(new AbortController());

	/* Ends all that is open. Nothing waits for the gateway's answer to the end of a session: a false gateway that says nothing
	 * would keep the token alive, or the person from signing out. */
	async function close(leaving: boolean): Promise<void> {
		const {temporary, client} = open.current;
		open.current = {};
		stop.current.abort();
		stop.current = new AbortController();
		void client?.disconnect();
		if (temporary)
			try {
				await temporaryRevoke(temporary, leaving);
			} catch (e) {
				setLeft(temporary.name);
				throw e;
			}
	}
	useEffect(() => {
		const leave = () => {
			setAt(undefined);
			void close(true).catch(() => undefined);
		};
		const forget = sessionBeforeEnd(() => {
			setAt(undefined);
			return close(false);
		});

		gone.current = false;
		addEventListener("pagehide", leave);
		return () => {
			gone.current = true;
			removeEventListener("pagehide", leave);
			forget();
			leave();
		};
	}, []);

	const begin = useAction(async (wish: Wish) => {
		const {signal} = stop.current;
		setLeft(undefined);
		try {
			const temporary = wish.as === "temporary" ? await temporaryMake(wish.rights) : undefined;
			open.current = {temporary};
			if (gone.current) return await close(true);
			const client = new McpClient(wish.url, wish.revision, temporary?.token ?? wish.token, record);
			open.current.client = client;
			const server = await client.connect(signal);
			setAt({client, server, as: wish.as, temporary});
		} catch (e) {
			const stopped = signal.aborted;
			await close(false).catch(() => undefined);
			if (stopped) return;
			throw e instanceof McpFailure ? refused(e) : e;
		}
	});
	const end = useAction(async () => {
		const name = at?.temporary?.name;
		setAt(undefined);
		await close(false);
		done(name ? t.tokenRevoked(name) : t.disconnected);
	});

	return (
		<Page title={t.title} intro={t.intro}>
			<ProblemNote problem={status.problem} again={status.reload} />
			<ProblemNote problem={end.problem} />
			{left ? (
				<Note kind="warn">
					<p>
						<Text text={t.tokenStays(left)} /> <a href={link("access", {state: "active"})}>{t.toTokens}</a>
					</p>
				</Note>
			) : null}
			{at ? (
				<Connected at={at} tab={rest[0] ?? ""} onEnd={end.run} busy={end.busy} />
			) : status.data === undefined ? (
				status.problem ? null : (
					<Loading />
				)
			) : status.data.mcp_url === null ? (
				<Empty title={t.noUrl}>
					<p>{t.noUrlWhy}</p>
				</Empty>
			) : (
				<Connect url={status.data.mcp_url} busy={begin.busy} problem={begin.problem} onConnect={begin.run} onStop={() => stop.current.abort()} />
			)}
			<Messages record={record} />
		</Page>
	);
}
