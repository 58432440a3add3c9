import { useEffect, useState } from "react";

/* Light, dark, or as the system says. The choice is remembered by this browser; tokens.css has the colors. */

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const REMEMBERED_AS = "postern-theme";

/** A browser may refuse its storage; then the choice lasts as long as the page. */
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
    } catch {
      // See above.
    }
  }, [theme]);
  return [theme, setTheme];
}
