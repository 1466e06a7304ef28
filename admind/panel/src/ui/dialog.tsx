/* Dialogs: the browser's own, so that focus, Escape and what is outside are as users know them. */
import type {ComponentChildren} from "preact";
import {useEffect, useId, useRef, useState} from "preact/hooks";
import {useAction} from "../api/use";
import {Area, Form} from "./form";

/** Draws a modal dialog while it is mounted. `onClose` is called by Escape and by its own buttons. */
export function Dialog({
	title,
	onClose,
	children,
	wide,
}: {
	title: string;
	onClose: () => void;
	children: ComponentChildren;
	wide?: boolean;
}) {
	const ref = useRef<HTMLDialogElement>(null),
		id = useId();

	useEffect(() => {
		const before = document.activeElement,
			el = ref.current!;
		el.showModal();
		return () => {
			el.close();
			if (before instanceof HTMLElement && before.isConnected) before.focus();
		};
	}, []);
	return (
		<dialog
			ref={ref}
			aria-labelledby={id}
			class={wide ? "wide" : undefined}
			onCancel={e => {
				e.preventDefault();
				onClose();
			}}
		>
			<h2 id={id}>{title}</h2>
			{children}
		</dialog>
	);
}

/** Draws a button that asks before it acts. `reason` asks for a reason, too, and hands it to the action. */
export function AskButton({
	label,
	title,
	children,
	action,
	danger,
	reason,
	small,
	disabled,
}: {
	label: string;
	title: string;
	children?: ComponentChildren;
	action: (reason: string) => Promise<unknown>;
	danger?: boolean;
	reason?: {label: string; hint?: string; max?: number};
	small?: boolean;
	disabled?: boolean;
}) {
	const [open, setOpen] = useState(false),
		[text, setText] = useState("");
	const act = useAction(action);
	const close = () => {
		setOpen(false);
		act.clear();
	};

	return (
		<>
			<button
				type="button"
				class={[danger ? "danger" : "", small ? "small" : ""].join(" ").trim() || undefined}
				disabled={disabled}
				onClick={() => setOpen(true)}
			>
				{label}
			</button>
			{open ? (
				<Dialog title={title} onClose={close}>
					{children}
					<Form
						label={label}
						danger={danger}
						busy={act.busy}
						problem={act.problem}
						onCancel={close}
						action={async () => (await act.run(text)) && (setOpen(false), setText(""))}
					>
						{reason ? (
							<Area
								label={reason.label}
								hint={reason.hint}
								value={text}
								onValue={setText}
								required
								rows={3}
								maxLength={reason.max ?? 2000}
								autofocus
							/>
						) : null}
					</Form>
				</Dialog>
			) : null}
		</>
	);
}
