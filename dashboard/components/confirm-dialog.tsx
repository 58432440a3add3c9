import { type ReactNode, useState } from "react";
import { FormDialog } from "./form-dialog.tsx";
import { TextField } from "./text-field.tsx";

/**
 * Dialog that confirms an action that cannot be undone; open while it is rendered. With `typed`, the person must type a name first, which
 * prevents mistakes.
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
  /** Label of the button, such as "Revoke the key". */
  action: string;
  /** Text that the person must type to confirm. */
  typed?: string;
  isBusy: boolean;
  /** Error of the last attempt. */
  error: unknown;
  /** Explanation of the consequences. */
  children: ReactNode;
}): ReactNode {
  const [text, setText] = useState("");
  const isRight = typed === undefined || text === typed;
  return (
    <FormDialog
      title={title}
      action={action}
      kind="danger"
      fault={isRight ? undefined : "Type the name to confirm."}
      isBusy={isBusy}
      error={error}
      doing={action}
      onSubmit={onConfirm}
      onClose={onClose}
      isGuarded={false}
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
