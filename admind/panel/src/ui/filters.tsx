/* Filters of a list that stand in the address: each is a word of it, so a link leads to the filtered list. */
import {useEffect, useRef, useState} from "preact/hooks";
import {goWords} from "../route";
import {Choice, Field} from "./form";
import {ServerChoice, type Servers} from "./servers";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/* Typing is over after this; then the list is fetched once. */
const TYPED_MS = 350;

export interface Filter {
	name: string;
	label: string;
	/** Values with labels; without them it is a text. The empty one is first. */
	options?: readonly (readonly [string, string])[];
	/** Servers to choose from; the value is an id. `any` is the label of no server. */
	servers?: Servers;
	any?: string;
	hint?: string;
	/** A time: the reader's clock in the field, UTC in the address. */
	time?: true;
	/** Values that the API takes, and the sentence for all others. Those are not sent. */
	only?: RegExp;
	otherwise?: string;
}

/* Returns a time of the address as a field of the browser has it, "" where it is none. */
function localOf(value: string): string {
	const at = new Date(value);
	return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function takes(f: Filter, value: string): boolean {
	return f.servers ? UUID.test(value) : f.options ? f.options.some(([v]) => v === value) : f.time ? localOf(value) !== "" : (f.only?.test(value) ?? true);
}

function TextFilter({f, value}: {f: Filter; value: string}) {
	const [typed, setTyped] = useState(value),
		timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

	/* A late change must not undo what else changed the words meanwhile. */
	useEffect(() => {
		clearTimeout(timer.current);
		setTyped(value);
	}, [value]);
	useEffect(() => () => clearTimeout(timer.current), []);
	return (
		<Field
			label={f.label}
			hint={f.hint}
			type="search"
			value={typed}
			error={value !== "" && !takes(f, value) ? f.otherwise : undefined}
			onValue={v => {
				setTyped(v);
				clearTimeout(timer.current);
				timer.current = setTimeout(() => goWords({[f.name]: v}), TYPED_MS);
			}}
		/>
	);
}

/* The browser says the value once all its parts are there, and "" before. */
function TimeFilter({f, value}: {f: Filter; value: string}) {
	return (
		<Field
			label={f.label}
			hint={f.hint}
			type="datetime-local"
			value={localOf(value)}
			onValue={v => goWords({[f.name]: v === "" ? "" : new Date(v).toISOString()})}
		/>
	);
}

/** Draws the filters with their values in the address. */
export function Filters({filters, query}: {filters: readonly Filter[]; query: URLSearchParams}) {
	return (
		<div class="filters" role="search">
			{filters.map(f =>
				f.servers ? (
					<ServerChoice
						key={f.name}
						servers={f.servers}
						label={f.label}
						any={f.any}
						value={query.get(f.name) ?? ""}
						onValue={v => goWords({[f.name]: v})}
					/>
				) : f.options ? (
					<Choice
						key={f.name}
						label={f.label}
						value={query.get(f.name) ?? ""}
						options={f.options}
						onValue={v => goWords({[f.name]: v})}
					/>
				) : f.time ? (
					<TimeFilter key={f.name} f={f} value={query.get(f.name) ?? ""} />
				) : (
					<TextFilter key={f.name} f={f} value={query.get(f.name) ?? ""} />
				),
			)}
		</div>
	);
}

/** Returns the filters' values that the API takes, as a query of it. */
export function filterValues(filters: readonly Filter[], query: URLSearchParams): Record<string, string> {
	return Object.fromEntries(
		filters.flatMap(f => {
			const value = query.get(f.name) ?? "";
			return value !== "" && takes(f, value) ? [[f.name, value]] : [];
		}),
	);
}
