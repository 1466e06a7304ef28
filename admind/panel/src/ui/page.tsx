/* The frame of a page: its title, what can be done, and tabs. */
import type {ComponentChildren} from "preact";
import {useEffect} from "preact/hooks";
import {en} from "../en";

/** Draws a page with its only h1. `actions` stand beside the title, `back` leads to the list that it is of. */
export function Page({
	title,
	heading,
	intro,
	actions,
	back,
	children,
}: {
	title: string;
	heading?: ComponentChildren;
	intro?: ComponentChildren;
	actions?: ComponentChildren;
	back?: [string, string];
	children?: ComponentChildren;
}) {
	useEffect(() => {
		document.title = `${title} · mcpbox`;
	}, [title]);
	return (
		<>
			{back ? (
				<p class="back">
					<a href={back[0]}>← {back[1]}</a>
				</p>
			) : null}
			<div class="head">
				<h1 tabIndex={-1}>{heading ?? title}</h1>
				{actions ? <div class="buttons">{actions}</div> : null}
			</div>
			{intro ? <p class="intro">{intro}</p> : null}
			{children}
		</>
	);
}

/** Draws a part of a page, with its title. */
export function Part({title, actions, children}: {title: string; actions?: ComponentChildren; children: ComponentChildren}) {
	return (
		<section class="part" aria-label={title}>
			<div class="head">
				<h2>{title}</h2>
				{actions ? <div class="buttons">{actions}</div> : null}
			</div>
			{children}
		</section>
	);
}

/** Draws links to the parts of a page that has several addresses. Each is [address, label]. */
export function Tabs({tabs, at}: {tabs: readonly (readonly [string, string])[]; at: string}) {
	return (
		<nav class="tabs" aria-label={en.parts}>
			{tabs.map(([to, label]) => (
				<a key={to} href={to} aria-current={to === at ? "page" : undefined}>
					{label}
				</a>
			))}
		</nav>
	);
}
