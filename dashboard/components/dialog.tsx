import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import "./dialog.css";

/**
 * A window over the page. It keeps the focus until it is closed, by Escape too, and gives it back to what opened it. What stands in it is
 * gone when it is closed.
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
  /** Buttons at its end, the main one last; beside them stands one that closes it. */
  actions?: ReactNode;
  isWide?: boolean;
  /** A click beside it and Escape do not close it: it shows what cannot be shown again. */
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
