import { Popover } from "@base-ui/react/popover";
import { ListFilter, X } from "lucide-react";
import type { ReactNode } from "react";
import "./button.css";
import "./filter-menu.css";

/** A filter that is set. */
export interface FilterChip {
  /** Filter and value in words, such as "State: disabled". */
  readonly label: string;
  readonly onRemove: () => void;
}

/** Button that opens the fields of the filters, and one chip per filter that is set. On a phone the fields open as a sheet. */
export function FilterMenu({ chips, children }: { chips: readonly FilterChip[]; children: ReactNode }): ReactNode {
  return (
    <div className="filter-menu">
      <Popover.Root>
        <Popover.Trigger className="button">
          <ListFilter size={16} aria-hidden />
          Filters
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Positioner className="positioner filter-positioner" sideOffset={4} align="start">
            <Popover.Popup className="filter-popup">
              <Popover.Title className="unseen">Filters</Popover.Title>
              {children}
              <Popover.Close className="button">Done</Popover.Close>
            </Popover.Popup>
          </Popover.Positioner>
        </Popover.Portal>
      </Popover.Root>
      {chips.map(({ label, onRemove }) => (
        <button key={label} type="button" className="chip" title={label} onClick={onRemove}>
          <span className="unseen">Remove the filter </span>
          <span className="cut">{label}</span>
          <X size={14} aria-hidden />
        </button>
      ))}
    </div>
  );
}
