/* Forms: fields with labels, hints and errors in text, and buttons that say what they do. */
import type {ComponentChildren} from "preact";
import {useId} from "preact/hooks";
import type {Problem} from "../api/client";
import {en} from "../en";
import {ProblemNote} from "./notice";

interface FieldProps {
	label: string;
	hint?: ComponentChildren;
	error?: string;
	/** Why the form can't be sent yet. The browser says it where the person tries. */
	refuse?: string;
	value: string;
	onValue: (value: string) => void;
	required?: boolean;
	disabled?: boolean;
	autofocus?: boolean;
}

function marks(id: string, {hint, error, refuse, required, disabled, autofocus}: Omit<FieldProps, "label" | "value" | "onValue">) {
	return {
		id,
		ref: (e: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement | null) => e?.setCustomValidity(refuse ?? ""),
		required,
		disabled,
		autoFocus: autofocus,
		"aria-invalid": error ? true : undefined,
		"aria-describedby": [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].join(" ").trim() || undefined,
	};
}

function Frame({
	id,
	label,
	hint,
	error,
	children,
}: {
	id: string;
	label: string;
	hint?: ComponentChildren;
	error?: string;
	children: ComponentChildren;
}) {
	return (
		<div class="field">
			<label for={id}>{label}</label>
			{children}
			{hint ? (
				<p class="hint" id={`${id}-hint`}>
					{hint}
				</p>
			) : null}
			{error ? (
				<p class="error" id={`${id}-error`}>
					{error}
				</p>
			) : null}
		</div>
	);
}

/** Draws a field of one line. */
export function Field(
	p: FieldProps & {
		type?: "text" | "password" | "number" | "url" | "search" | "datetime-local";
		autocomplete?: string;
		placeholder?: string;
		pattern?: string;
		min?: number;
		max?: number;
		maxLength?: number;
		name?: string;
	},
) {
	const id = useId();
	return (
		<Frame id={id} {...p}>
			<input
				{...marks(id, p)}
				type={(p.type ?? "text") as "text"}
				name={p.name}
				value={p.value}
				autocomplete={p.autocomplete ?? "off"}
				placeholder={p.placeholder}
				pattern={p.pattern}
				min={p.min}
				max={p.max}
				maxLength={p.maxLength}
				spellcheck={false}
				onInput={e => p.onValue(e.currentTarget.value)}
			/>
		</Frame>
	);
}

/** Draws a field of several lines. */
export function Area(p: FieldProps & {rows?: number; maxLength?: number; code?: boolean}) {
	const id = useId();
	return (
		<Frame id={id} {...p}>
			<textarea
				{...marks(id, p)}
				rows={p.rows ?? 4}
				maxLength={p.maxLength}
				class={p.code ? "code" : undefined}
				spellcheck={!p.code}
				value={p.value}
				onInput={e => p.onValue(e.currentTarget.value)}
			/>
		</Frame>
	);
}

/** Draws a choice of a few words. `options` are values with their labels. */
export function Choice(p: FieldProps & {options: readonly (readonly [string, string])[]}) {
	const id = useId();
	return (
		<Frame id={id} {...p}>
			<select {...marks(id, p)} value={p.value} onChange={e => p.onValue(e.currentTarget.value)}>
				{p.options.map(([value, label]) => (
					<option key={value} value={value}>
						{label}
					</option>
				))}
			</select>
		</Frame>
	);
}

/** Draws a box that is ticked or not. */
export function Tick({
	label,
	hint,
	value,
	onValue,
	disabled,
}: {
	label: string;
	hint?: string;
	value: boolean;
	onValue: (value: boolean) => void;
	disabled?: boolean;
}) {
	const id = useId();
	return (
		<div class="field tick">
			<input
				id={id}
				type="checkbox"
				checked={value}
				disabled={disabled}
				aria-describedby={hint ? `${id}-hint` : undefined}
				onChange={e => onValue(e.currentTarget.checked)}
			/>
			<label for={id}>{label}</label>
			{hint ? (
				<p class="hint" id={`${id}-hint`}>
					{hint}
				</p>
			) : null}
		</div>
	);
}

/** Draws a form with its problem and its button. It sends by Enter, too, and never twice at once. */
export function Form({
	action,
	label,
	busy,
	problem,
	children,
	danger,
	onCancel,
	disabled,
}: {
	action: () => unknown;
	label: string;
	busy?: boolean;
	problem?: Problem;
	children?: ComponentChildren;
	danger?: boolean;
	onCancel?: () => void;
	disabled?: boolean;
}) {
	return (
		<form
			onSubmit={e => {
				e.preventDefault();
				if (!busy && !disabled) action();
			}}
		>
			{children}
			<ProblemNote problem={problem} />
			<div class="buttons">
				<button type="submit" class={danger ? "danger" : "primary"} disabled={disabled} aria-disabled={busy}>
					{busy ? en.working : label}
				</button>
				{onCancel ? (
					<button type="button" onClick={onCancel}>
						{en.cancel}
					</button>
				) : null}
			</div>
		</form>
	);
}
