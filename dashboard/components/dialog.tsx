import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import "./dialog.css";

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
  isWide = false,
  isKept = false,
}: {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Buttons in the footer, the primary button last, in addition to the close button. */
  actions?: ReactNode;
  isWide?: boolean;
  /** Whether the dialog ignores the Escape key and clicks outside of it, because its content cannot be shown again. */
  isKept?: boolean;
}): ReactNode {
  return (
    <Base.Root
      open={isOpen}
      disablePointerDismissal={isKept}
      onOpenChange={(open, { reason }) => {
        if (!open && !(isKept && reason === "escape-key")) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="dialog-backdrop" />
        <Base.Popup className={isWide ? "dialog dialog-wide" : "dialog"}>
          <Base.Title className="dialog-title">{title}</Base.Title>
          <div className="dialog-body">{children}</div>
          <div className="dialog-actions">
            <Button onClick={onClose}>{actions === undefined ? "Close" : "Cancel"}</Button>
            {actions}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
