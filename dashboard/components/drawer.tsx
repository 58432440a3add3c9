import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import "./dialog.css";

/**
 * Side panel with the details of a row, next to its list. Store the id of the row in the URL's search parameters, so that a link can open
 * the panel.
 */
export function Drawer({
  title,
  isOpen,
  onClose,
  actions,
  children,
}: {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  actions?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="dialog-backdrop" />
        <Base.Popup className="drawer">
          <div className="drawer-head">
            <Base.Title>{title}</Base.Title>
            <div className="field-row">
              {actions}
              <Button onClick={onClose}>Close</Button>
            </div>
          </div>
          <div className="drawer-body">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
