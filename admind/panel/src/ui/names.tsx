/* A choice of names: those that are known as boxes, and a field for others. */
import {useState} from "preact/hooks";
import {en} from "../en";
import {Field, Tick} from "./form";
import {show} from "./text";

/** Draws the choice. `known` are names with a remark, or "". Chosen names that are not known have a box, too. */
export function Names({
	label,
	hint,
	known,
	value,
	onValue,
	other,
	max,
}: {
	label: string;
	hint?: string;
	known: readonly (readonly [string, string])[];
	value: readonly string[];
	onValue: (value: string[]) => void;
	/** The label of the field for a name that is not known; without it there is none. */
	other?: string;
	max: number;
}) {
	const [typed, setTyped] = useState("");
	/* A name that was chosen keeps its box when it is taken away, so that it can be taken back. */
	const [seen, setSeen] = useState<readonly string[]>([]);
	const names = [...new Set([...known.map(([n]) => n), ...seen, ...value])].sort(),
		remarks = new Map(known);
	const set = (name: string, on: boolean) => {
		setSeen([...new Set([...seen, ...value, name])]);
		onValue(on ? [...value.filter(v => v !== name), name].sort() : value.filter(v => v !== name));
	};
	const add = () => {
		const name = typed.trim();
		if (name === "") return;
		set(name, true);
		setTyped("");
	};

	return (
		<fieldset>
			<legend>{label}</legend>
			{hint ? <p class="hint">{hint}</p> : null}
			{names.length === 0 && other === undefined ? <p class="quiet">{en.none}</p> : null}
			{names.map(n => (
				<Tick
					key={n}
					label={show(n, true)}
					hint={remarks.get(n) || undefined}
					value={value.includes(n)}
					onValue={on => set(n, on)}
					disabled={!value.includes(n) && value.length >= max}
				/>
			))}
			{other !== undefined && value.length < max ? (
				<div
					class="filters"
					onKeyDown={e => {
						if (e.key !== "Enter") return;
						/* Else Enter sends the form, without the name that was typed. */
						e.preventDefault();
						add();
					}}
				>
					<Field label={other} value={typed} onValue={setTyped} maxLength={255} refuse={typed.trim() === "" ? undefined : en.edit.pressAdd} />
					<button type="button" onClick={add}>
						{en.edit.addNamed(other)}
					</button>
				</div>
			) : null}
		</fieldset>
	);
}
