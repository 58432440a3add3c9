import { useEffect, useState } from "react";

/* Color theme: light, dark, or the system's choice. The browser stores the selection; tokens.css has the colors. */

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const REMEMBERED_AS = "postern-theme";

/** If the browser denies storage, the theme lasts until the page is closed. */
function rememberedTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(REMEMBERED_AS)) ?? "system";
  } catch {
    return "system";
  }
}

export function useTheme(): [Theme, (theme: Theme) => void] {
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
