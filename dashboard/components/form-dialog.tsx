import { type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { FormContext, fieldFaultsOf, listOf } from "./form-faults.ts";
import { ChangeFailed, type RequestedChange } from "./managed-badge.tsx";
import { useDelayed } from "./use-delayed.ts";
import "./form.css";

/**
 * Dialog with a form; open while it is rendered. The submit button and Enter submit the form unless the input has a problem or a submission
 * is pending. Problems are shown at their fields, and the first such field gets the focus; other errors are shown above the buttons. If a
 * manifest manages the object, an error shows the change to make in the manifest.
 */
export function FormDialog({
  title,
  action,
  kind = "main",
  fault,
  isBusy,
  error,
  doing,
  wanted,
  onSubmit,
  onClose,
  otherActions,
  isWide = false,
  isGuarded = true,
  outcome,
  children,
}: {
  title: string;
  /** Label of the submit button, such as "Create". */
  action: string;
  kind?: "main" | "danger";
  /** Reason why the form cannot be submitted yet; `undefined` if the form can be submitted. */
  fault: string | undefined;
  isBusy: boolean;
  /** Error of the last submission; `null` or `undefined` if it did not fail. */
  error: unknown;
  /** The submitted action, such as "Creating the key". */
  doing: string;
  /** Changes to make in the manifest if a manifest manages the object. */
  wanted?: readonly RequestedChange[];
  onSubmit: () => void;
  onClose: () => void;
  /** Buttons between the close button and the submit button. */
  otherActions?: ReactNode;
  isWide?: boolean;
  /** Whether to ask for confirmation before input is discarded. */
  isGuarded?: boolean;
  /** Sentences that describe the effect of submitting the form; shown above the buttons. */
  outcome?: string | undefined;
  children: ReactNode;
}): ReactNode {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const summary = useRef<HTMLDivElement>(null);
  const [isDirty, setDirty] = useState(false);
  /** Whether the person has tried to submit a form with a problem. */
  const [isTried, setTried] = useState(false);
  /** The last submission's error, whose problems the fields show, and the fields that have changed since. */
  const [shown, setShown] = useState<{ error: unknown; changed: readonly string[] }>({ error, changed: [] });
  if (shown.error !== error) setShown({ error, changed: [] });
  const onChanged = useCallback((name: string | undefined) => {
    setDirty(true);
    if (name === undefined || name === "") return;
    setShown((before) => (before.changed.includes(name) ? before : { ...before, changed: [...before.changed, name] }));
  }, []);
  const state = useMemo(() => {
    const { changed } = shown;
    const isShown = (member: string) => !changed.includes(member) && !changed.includes(listOf(member));
    return { faults: new Map([...fieldFaultsOf(error)].filter(([member]) => isShown(member))), onChanged };
  }, [error, shown, onChanged]);
  const isFailed = error !== null && error !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each failed submission moves the focus.
  useEffect(() => {
    if (isFailed) focusProblem(form.current, summary.current);
  }, [error]);
  const isAtField = (member: string): boolean =>
    [member, listOf(member)].some((name) => form.current?.elements.namedItem(name) != null);
  const problem = (isFailed || (isTried && fault !== undefined)) && (
    <div ref={summary} tabIndex={-1} className="form-summary">
      {isTried && fault !== undefined && (
        <p role="alert" className="field-fault">
          {fault}
        </p>
      )}
      <ChangeFailed error={error} doing={doing} isAtField={isAtField} {...(wanted === undefined ? {} : { wanted })} />
    </div>
  );
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      isWide={isWide}
      notice={
        (problem || outcome !== undefined) && (
          <>
            {problem}
            {outcome !== undefined && <Outcome text={outcome} />}
          </>
        )
      }
      // Does not ask for confirmation during a submission, because a successful one closes the dialog and may open another page.
      keeps={isGuarded && isDirty && !isBusy ? "input" : undefined}
      actions={
        <>
          {otherActions}
          <Button
            kind={kind}
            type="submit"
            form={id}
            isBusy={isBusy}
            unusable={fault}
            onUnusable={() => {
              const field = focusProblem(form.current, null);
              // A field that is marked as invalid shows its problem itself.
              setTried(field?.ariaInvalid !== "true");
            }}
          >
            {action}
          </Button>
        </>
      }
    >
      <form
        id={id}
        ref={form}
        className="form"
        onInput={({ target }) => onChanged((target as HTMLInputElement).name)}
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === undefined && !isBusy) onSubmit();
        }}
      >
        <FormContext value={state}>{children}</FormContext>
      </form>
    </Dialog>
  );
}

/** Delay between the last change of the form and the update of the shown outcome, so that a screen reader does not read every keystroke. */
const OUTCOME_MS = 300;

function Outcome({ text }: { text: string }): ReactNode {
  return (
    <p role="status" className="form-outcome">
      {useDelayed(text, OUTCOME_MS)}
    </p>
  );
}

/** Focuses the first field with a problem, or else `otherwise`; unfolds the sections that hide the field. Returns the focused element. */
function focusProblem(form: HTMLFormElement | null, otherwise: HTMLElement | null): HTMLElement | null {
  const field = form?.querySelector<HTMLElement>("[aria-invalid=true], :is(input, textarea, select):invalid");
  const target = field ?? otherwise;
  for (let folded = target?.closest("details"); folded != null; folded = folded.parentElement?.closest("details")) {
    folded.open = true;
  }
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
  return target;
}
