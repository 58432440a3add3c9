import { type ReactNode, useState } from "react";
import { FormDialog } from "./form-dialog.tsx";
import { TextField } from "./text-field.tsx";

/**
 * Asks before something that cannot be undone, as long as it stands in the page. With `typed` the person has to type a name first, so that
 * it is the right one.
 */
export function ConfirmDialog({
  title,
  onClose,
  onConfirm,
  action,
  typed,
  isBusy,
  error,
  children,
}: {
  title: string;
  onClose: () => void;
  onConfirm: () => void;
  /** What the button says: "Revoke the key". */
  action: string;
  /** What has to be typed. */
  typed?: string;
  isBusy: boolean;
  /** Of the attempt. */
  error: unknown;
  /** What will happen, and to whom. */
  children: ReactNode;
}): ReactNode {
  const [text, setText] = useState("");
  const isRight = typed === undefined || text === typed;
  return (
    <FormDialog
      title={title}
      action={action}
      kind="danger"
      fault={isRight ? undefined : "Type the name first."}
      isBusy={isBusy}
      error={error}
      doing={action}
      onSubmit={onConfirm}
      onClose={onClose}
    >
      {children}
      {typed !== undefined && (
        <TextField
          label={
            <>
              Type <code>{typed}</code> to confirm
            </>
          }
          value={text}
          onChange={setText}
        />
      )}
    </FormDialog>
  );
}
