import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactNode } from "react";
import "./field.css";

/** More about a word, on hover and on focus. What a person must know does not stand in one. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }): ReactNode {
  return (
    <Base.Root>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without it the text could not be reached by keyboard. */}
      <Base.Trigger render={<span tabIndex={0} />}>{children}</Base.Trigger>
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={4}>
          <Base.Popup className="tooltip">{text}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
