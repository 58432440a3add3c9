import { type ReactNode, useEffect, useId, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";
import { TextField } from "./text-field.tsx";

/** Asks before something that cannot be undone. With `typed` the person has to type a name first, so that it is the right one. */
export function ConfirmDialog({
  title,
  isOpen,
  onClose,
  onConfirm,
  action,
  typed,
  isBusy,
  error,
  children,
}: {
  title: string;
  isOpen: boolean;
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
  const form = useId();
  useEffect(() => {
    if (isOpen) setText("");
  }, [isOpen]);
  const isRight = typed === undefined || text === typed;
  return (
    <Dialog
      title={title}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button
          kind="danger"
          type="submit"
          form={form}
          isBusy={isBusy}
          unusable={isRight ? undefined : "Type the name first."}
        >
          {action}
        </Button>
      }
    >
      <form
        id={form}
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isRight && !isBusy) onConfirm();
        }}
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
      </form>
      {error !== null && error !== undefined && <ErrorNote error={error} doing={action} />}
    </Dialog>
  );
}
