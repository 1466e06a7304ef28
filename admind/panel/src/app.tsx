/* The frame of every page: the login, the menu, and the page that the address names. */
import type {ComponentType} from "preact";
import {useEffect, useRef, useState} from "preact/hooks";
import {api, type Schemas} from "./api/client";
import {sessionAsk, sessionEnd, sessionHalf, sessionLeave, sessionWatch} from "./api/session";
import {useAction, useRead} from "./api/use";
import {en} from "./en";
import {meHolds, meWatch, useEvery} from "./me";
import {type PageProps, type PageRow, pages} from "./pages";
import {link, useRoute} from "./route";
import {Signin, SigninPage} from "./signin";
import {Dialog} from "./ui/dialog";
import {DoneLine, Loading, Note, ProblemNote} from "./ui/notice";
import {Page} from "./ui/page";
import {Proof} from "./ui/proof";
import {Hidden, Text, Time} from "./ui/text";

/* The counts of the menu are at most this old. */
const COUNTS_MS = 30_000;
/* The page warns this long before a login ends for good. */
const WARN_MS = 10 * 60_000;

type Me = Schemas["Session"];

/** Draws a login if there is none, else the page. */
export function App() {
	const [half, setHalf] = useState(sessionHalf());
	const [asked, setAsked] = useState(half !== null);
	const [me, setMe] = useState<Me>();
	const who = useRead(half === null ? null : "/api/me");

	useEffect(() => sessionWatch(() => setHalf(sessionHalf())), []);
	useEffect(() => {
		if (!asked) void sessionAsk().then(() => setAsked(true));
	}, []);
	useEffect(() => {
		if (half !== null) who.reload();
	}, [half]);
	useEffect(() => meWatch(who.reload), [who.reload]);
	useEffect(() => {
		if (who.data !== undefined) {
			setMe(who.data);
			meHolds(who.data);
		}
	}, [who.data]);

	if (!asked) return <Loading />;
	if (me === undefined) {
		if (half === null) return <SigninPage />;
		return who.problem ? (
			<main class="signin">
				<h1>mcpbox</h1>
				<ProblemNote problem={who.problem} again={who.reload} />
			</main>
		) : (
			<Loading />
		);
	}
	return <Frame key={me.username} me={me} over={half === null} onOut={() => setMe(undefined)} />;
}

function Frame({me, over, onOut}: {me: Me; over: boolean; onOut: () => void}) {
	const route = useRoute();
	const page = pages.find(p => p.place === (route.parts[0] ?? ""));
	const counts = useRead(over ? null : "/api/dashboard", {query: {period: "1h"}});
	const content = useRef<HTMLElement>(null);
	const [menu, setMenu] = useState(false);
	const out = useAction(async () => {
		await sessionLeave();
		await api.post("/api/logout");
		sessionEnd();
		onOut();
	});
	const where = route.parts.join("/");
	const first = useRef(true);

	useEvery(COUNTS_MS, counts.reload);
	useEffect(() => {
		setMenu(false);
		if (first.current) {
			first.current = false;
			return;
		}
		/* A new page begins at its title, for eyes and for screen readers. */
		scrollTo(0, 0);
		content.current?.focus();
	}, [where]);
	return (
		<>
			<a
				class="skip"
				href="#content"
				onClick={e => {
					e.preventDefault();
					content.current?.focus();
				}}
			>
				{en.frame.skip}
			</a>
			<header class="top">
				<a class="brand" href={link()}>
					<span class="mark" aria-hidden="true" />
					mcpbox
				</a>
				<button type="button" class="menu-button" aria-expanded={menu} aria-controls="menu" onClick={() => setMenu(!menu)}>
					{en.frame.menu}
				</button>
				<span class="who">
					<a href={link("account")}>
						<Text text={me.username} />
					</a>{" "}
					<span class="quiet">{me.role}</span>
				</span>
				<button type="button" class="small" onClick={out.run} aria-disabled={out.busy}>
					{en.frame.signOut}
				</button>
			</header>
			<div class="body">
				<nav id="menu" class={menu ? "menu open" : "menu"} aria-label={en.frame.nav}>
					<Menu at={route.parts[0] ?? ""} waiting={counts.data?.pending.all} />
				</nav>
				<main id="content" ref={content} tabIndex={-1}>
					<Ending me={me} />
					<ProblemNote problem={out.problem} />
					<DoneLine />
					{page ? (
						<Place key={page.place} page={page} rest={route.parts.slice(1)} query={route.query} />
					) : (
						<Page title={en.problem.missingTitle}>
							<p>{en.problem.missing}</p>
						</Page>
					)}
				</main>
			</div>
			<Proof username={me.username} />
			{over ? (
				<Dialog title={en.session.over} onClose={onOut}>
					<p>{en.session.overWhy}</p>
					<Signin name={me.username} />
				</Dialog>
			) : null}
		</>
	);
}

function Menu({at, waiting}: {at: string; waiting: number | undefined}) {
	const groups = [...new Set(pages.map(p => p.group).filter(g => g !== undefined))];
	return (
		<>
			{groups.map(g => (
				<div key={g} class="group">
					{g ? (
						<p class="group-title" id={`group-${g}`}>
							{g}
						</p>
					) : null}
					<ul aria-labelledby={g ? `group-${g}` : undefined}>
						{pages
							.filter(p => p.group === g)
							.map(p => (
								<li key={p.place}>
									<a href={p.place ? link(p.place) : link()} aria-current={p.place === at ? "page" : undefined}>
										{p.title}
										{p.place === "approvals" && waiting ? (
											<span class="count">
												<span aria-hidden="true">{waiting}</span>
												<Hidden>{en.frame.waiting(waiting)}</Hidden>
											</span>
										) : null}
									</a>
								</li>
							))}
					</ul>
				</div>
			))}
		</>
	);
}

function Ending({me}: {me: Me}) {
	const [near, setNear] = useState(false);
	useEvery(COUNTS_MS, () => setNear(new Date(me.expires_at).getTime() - Date.now() < WARN_MS));
	return near ? (
		<Note kind="warn">
			<p role="status">
				{en.session.ends} <Time at={me.expires_at} />
			</p>
		</Note>
	) : null;
}

/* Fetches the file of a page when it is first opened. */
function Place({page, rest, query}: {page: PageRow} & PageProps) {
	const [loaded, set] = useState<{Content: ComponentType<PageProps>}>();
	const load = useAction(async () => set({Content: (await page.load()).default}));

	useEffect(() => void load.run(), []);
	if (loaded === undefined)
		return <Page title={page.title}>{load.problem ? <ProblemNote problem={load.problem} again={load.run} /> : <Loading />}</Page>;
	return <loaded.Content rest={rest} query={query} />;
}
