import { Menu as Base } from "@base-ui/react/menu";
import { type ReactNode, useId } from "react";
import "./button.css";
import "./field.css";

export interface MenuItem {
  readonly label: string;
  readonly onChoose: () => void;
  readonly isDanger?: boolean;
  /** Reason why the item is disabled. */
  readonly unusable?: string | undefined;
}

/** Button that opens a menu of further actions. */
export function Menu({
  label,
  items,
  children,
  title,
}: {
  label: ReactNode;
  items: readonly MenuItem[];
  /** Header above the items, such as the name of the signed-in person. */
  children?: ReactNode;
  title?: string;
}): ReactNode {
  const id = useId();
  return (
    <Base.Root>
      <Base.Trigger className="button" title={title}>
        {label}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={4} align="end">
          <Base.Popup className="popup">
            {children}
            {items.map((item, at) => (
              <Base.Item
                key={item.label}
                className={item.isDanger ? "popup-item popup-item-danger" : "popup-item"}
                disabled={item.unusable !== undefined}
                aria-labelledby={`${id}-${at}`}
                aria-describedby={item.unusable === undefined ? undefined : `${id}-${at}-why`}
                onClick={item.onChoose}
              >
                <span id={`${id}-${at}`}>{item.label}</span>
                {item.unusable !== undefined && (
                  <span id={`${id}-${at}-why`} className="popup-item-why">
                    {item.unusable}
                  </span>
                )}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
