import { type ReactNode, useId, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ChangeFailed, type RequestedChange } from "./managed-badge.tsx";

/**
 * Dialog with a form; open while it is rendered. The submit button and Enter submit the form unless the input has a problem or a submission
 * is pending. An error stays below the form until the next submission; an error about a manifest-managed object shows the change to make in
 * the manifest.
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
  const form = useId();
  const [isDirty, setDirty] = useState(false);
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      isWide={isWide}
      // A submission that succeeds closes the dialog, and may open another page.
      keeps={isGuarded && isDirty && !isBusy ? "input" : undefined}
      actions={
        <>
          {otherActions}
          <Button kind={kind} type="submit" form={form} isBusy={isBusy} unusable={fault}>
            {action}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="form"
        onInput={() => setDirty(true)}
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === undefined && !isBusy) onSubmit();
        }}
      >
        {children}
      </form>
      <ChangeFailed error={error} doing={doing} {...(wanted === undefined ? {} : { wanted })} />
    </Dialog>
  );
}
