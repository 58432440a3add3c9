import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import "./tabs.css";

/** Tabs; only the active tab is rendered. */
export function Tabs<Value extends string>({
  label,
  value,
  onChange,
  tabs,
}: {
  label: string;
  value: Value;
  onChange: (value: Value) => void;
  tabs: readonly { readonly value: Value; readonly label: ReactNode; readonly content: ReactNode }[];
}): ReactNode {
  return (
    <Base.Root value={value} onValueChange={onChange}>
      <Base.List className="tabs" aria-label={label} activateOnFocus>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className="tab">
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.value} value={tab.value} className="tab-panel">
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
