import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import "./dialog.css";

/**
 * Modal dialog without visible title and footer; open while it is rendered. Its first control gets the focus. Escape and a click outside
 * close it.
 */
export function BareDialog({
  title,
  onClose,
  focusAfter,
  className,
  children,
}: {
  /** Name for screen readers. */
  title: string;
  onClose: () => void;
  /** Returns the element that gets the focus when the dialog closes; `true` for the element that had the focus before. */
  focusAfter: () => HTMLElement | null | true;
  className: string;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.Root open onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="dialog-backdrop" />
        <Base.Popup className={`dialog ${className}`} finalFocus={focusAfter}>
          <Base.Title className="unseen">{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
