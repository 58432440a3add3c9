import { type ReactNode, useEffect, useState } from "react";
import { Select } from "../components/select.tsx";

const LABELS = { system: "System", light: "Light", dark: "Dark" } as const;

export function ThemeSwitch(): ReactNode {
  const [theme, setTheme] = useTheme();
  return (
    <Select
      label="Theme"
      value={theme}
      options={THEMES.map((value) => ({ value, label: LABELS[value] }))}
      onChange={setTheme}
    />
  );
}

/* Color theme: light, dark, or the system's choice. The browser stores the selection; tokens.css has the colors. */

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const REMEMBERED_AS = "postern-theme";

/** If the browser denies storage, the theme lasts until the page is closed. */
function rememberedTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(REMEMBERED_AS)) ?? "system";
  } catch {
    return "system";
  }
}

function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(rememberedTheme);
  useEffect(() => {
    if (theme === "system") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
    try {
      localStorage.setItem(REMEMBERED_AS, theme);
    } catch {}
  }, [theme]);
  return [theme, setTheme];
}
