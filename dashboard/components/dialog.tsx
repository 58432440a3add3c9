import { Dialog as Base } from "@base-ui/react/dialog";
import { useBlocker } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { Button } from "./button.tsx";
import "./dialog.css";

const QUESTIONS = {
  input: { title: "Discard your input?", text: "The form has input that is not saved.", leave: "Discard" },
  import: {
    title: "Stop the import?",
    text: "The remaining rows are not imported.",
    leave: "Stop",
  },
  batch: {
    title: "Stop before the end?",
    text: "Items that have not changed yet stay as they are.",
    leave: "Stop",
  },
  secret: {
    title: "Leave without the secret?",
    text: "It is shown only once. If you have not copied it, create another one.",
    leave: "Leave",
  },
} as const;

/**
 * Modal dialog. It keeps the focus until a button or Escape closes it, then returns the focus to the element that opened it. Its content is
 * unmounted when the dialog closes.
 */
export function Dialog({
  title,
  isOpen,
  onClose,
  children,
  actions,
  notice,
  cancel = actions === undefined ? "Close" : "Cancel",
  isWide = false,
  keeps,
}: {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Buttons in the footer besides the close button; the primary button is last. */
  actions?: ReactNode;
  /** Content above the footer, where it is always visible. */
  notice?: ReactNode;
  /** Label of the close button. */
  cancel?: string;
  isWide?: boolean;
  /**
   * What the person would lose. The dialog asks for confirmation before Escape, a click outside, a navigation or a reload closes it. With
   * `secret`, Escape and clicks outside have no effect.
   */
  keeps?: keyof typeof QUESTIONS | undefined;
}): ReactNode {
  const [isAsked, setAsked] = useState(false);
  const isGuarded = isOpen && keeps !== undefined;
  const blocker = useBlocker({
    shouldBlockFn: () => isGuarded,
    enableBeforeUnload: () => isGuarded,
    disabled: !isGuarded,
    withResolver: true,
  });
  // Once nothing can be lost, drops the question that the person has not answered, so that it does not appear again later.
  if (isAsked && !isGuarded) setAsked(false);
  useEffect(() => {
    if (!isGuarded) blocker.reset?.();
  });
  const question = isGuarded && (isAsked || blocker.status === "blocked") ? QUESTIONS[keeps] : undefined;
  return (
    <Base.Root
      open={isOpen}
      disablePointerDismissal={keeps === "secret"}
      onOpenChange={(open, { reason }) => {
        if (open || (keeps === "secret" && reason === "escape-key")) return;
        if (isGuarded) setAsked(true);
        else onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="dialog-backdrop" forceRender />
        <Base.Popup className={isWide ? "dialog dialog-wide" : "dialog"}>
          <Base.Title className="dialog-title">{title}</Base.Title>
          <div className="dialog-body">{children}</div>
          {notice && <div className="dialog-notice">{notice}</div>}
          <div className="dialog-actions">
            <Button onClick={onClose}>{cancel}</Button>
            {actions}
          </div>
          {question !== undefined && (
            <Dialog
              title={question.title}
              isOpen
              cancel="Stay"
              onClose={() => {
                setAsked(false);
                blocker.reset?.();
              }}
              actions={
                <Button
                  kind="danger"
                  onClick={() => {
                    setAsked(false);
                    blocker.proceed?.();
                    onClose();
                  }}
                >
                  {question.leave}
                </Button>
              }
            >
              <p>{question.text}</p>
            </Dialog>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
