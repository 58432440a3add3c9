import type { ReactNode } from "react";
import { Select } from "../components/select.tsx";
import { THEMES, useTheme } from "./theme.ts";

const LABELS = { system: "System", light: "Light", dark: "Dark" } as const;

export function ThemeSwitch(): ReactNode {
  const [theme, setTheme] = useTheme();
  return (
    <Select
      label="Theme"
      isLabelUnseen
      value={theme}
      options={THEMES.map((value) => ({ value, label: LABELS[value] }))}
      onChange={setTheme}
    />
  );
}
