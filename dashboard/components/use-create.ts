import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

/**
 * Opens the dialog given by the URL's search parameter `create`, for links such as `/apis?create=api`. The parameter is then removed from
 * the URL, so that neither a reload nor the Back button opens the dialog again.
 */
export function useCreate<What extends string>(what: What | undefined, open: (what: What) => unknown): void {
  const navigate = useNavigate();
  const latest = useRef(open);
  latest.current = open;
  useEffect(() => {
    if (what === undefined) return;
    latest.current(what);
    void navigate({ to: ".", search: ({ create: _, ...others }) => others, replace: true });
  }, [what, navigate]);
}
