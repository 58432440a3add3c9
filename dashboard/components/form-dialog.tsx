import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { FieldFaultsContext, fieldFaultsOf } from "./form-faults.ts";
import { ChangeFailed, type RequestedChange } from "./managed-badge.tsx";

/**
 * Dialog with a form; open while it is rendered. The submit button and Enter submit the form unless the input has a problem or a submission
 * is pending. Problems are shown at their fields, the first of which gets the focus; what concerns no field is shown above the buttons. An
 * error about a manifest-managed object shows the change to make in the manifest.
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
  /** Whether to ask before input is discarded. */
  isGuarded?: boolean;
  children: ReactNode;
}): ReactNode {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const summary = useRef<HTMLDivElement>(null);
  const [isDirty, setDirty] = useState(false);
  /** Whether the person has tried to submit a form with a problem. */
  const [isTried, setTried] = useState(false);
  /** Error of the last submission whose problems the fields show, and the fields that have changed since. */
  const [shown, setShown] = useState<{ error: unknown; changed: readonly string[] }>({ error, changed: [] });
  if (shown.error !== error) setShown({ error, changed: [] });
  const faults = useMemo(
    () => new Map([...fieldFaultsOf(error)].filter(([name]) => !shown.changed.includes(name))),
    [error, shown],
  );
  const isFailed = error !== null && error !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each failed submission moves the focus.
  useEffect(() => {
    if (isFailed) focusProblem(form.current, summary.current);
  }, [error]);
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      isWide={isWide}
      notice={
        (isFailed || (isTried && fault !== undefined)) && (
          <div ref={summary} tabIndex={-1} className="form-summary">
            {isTried && fault !== undefined && (
              <p role="alert" className="field-fault">
                {fault}
              </p>
            )}
            <ChangeFailed
              error={error}
              doing={doing}
              isAtField={(member) => form.current?.elements.namedItem(member) != null}
              {...(wanted === undefined ? {} : { wanted })}
            />
          </div>
        )
      }
      // A submission that succeeds closes the dialog, and may open another page.
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
              // A marked field says what is wrong.
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
        onInput={({ target }) => {
          setDirty(true);
          const { name } = target as HTMLInputElement;
          setShown((before) =>
            before.changed.includes(name) ? before : { ...before, changed: [...before.changed, name] },
          );
        }}
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === undefined && !isBusy) onSubmit();
        }}
      >
        <FieldFaultsContext value={faults}>{children}</FieldFaultsContext>
      </form>
    </Dialog>
  );
}

/** Focuses the first field with a problem, or else `otherwise`. Returns what has the focus. */
function focusProblem(form: HTMLFormElement | null, otherwise: HTMLElement | null): HTMLElement | null {
  const field = form?.querySelector<HTMLElement>("[aria-invalid=true], :is(input, textarea, select):invalid");
  const target = field ?? otherwise;
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
  return target;
}
