import { type ReactNode, useId } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ChangeFailed, type RequestedChange } from "./managed-badge.tsx";

/**
 * A window with a form, open as long as it stands in the page. Its button and Enter send the form, unless something is wrong with it or
 * the answer to the last attempt is on its way. A refusal stays below the form until the next attempt; what a manifest manages is said
 * to be changed there.
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
  children,
}: {
  title: string;
  /** What its button says: "Create". */
  action: string;
  kind?: "main" | "danger";
  /** Why it cannot be sent yet, in words; undefined when it can. */
  fault: string | undefined;
  isBusy: boolean;
  /** Of the attempt; null or undefined when there was none, or it was no failure. */
  error: unknown;
  /** "Creating the key" */
  doing: string;
  /** What to change in the manifest when that manages the object. */
  wanted?: readonly RequestedChange[];
  onSubmit: () => void;
  onClose: () => void;
  /** Buttons between the one that closes it and its own. */
  otherActions?: ReactNode;
  isWide?: boolean;
  children: ReactNode;
}): ReactNode {
  const form = useId();
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      isWide={isWide}
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
