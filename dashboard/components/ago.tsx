import { type ReactNode, useEffect, useRef } from "react";
import { agoLastsMs, agoText, exactText } from "./time.ts";

/** Maximum delay of a browser timer, ms. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Shows "2 min ago", with the exact time in the tooltip. The component updates its text node directly, so a table of a thousand rows is not
 * rendered every second.
 */
export function Ago({ atMs }: { atMs: number }): ReactNode {
  const element = useRef<HTMLTimeElement>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const tick = (): void => {
      const now = Date.now();
      if (element.current !== null) element.current.textContent = agoText(atMs, now);
      timer = setTimeout(tick, Math.min(agoLastsMs(atMs, now), TIMER_MS_MAX));
    };
    tick();
    return () => clearTimeout(timer);
  }, [atMs]);
  return <time ref={element} dateTime={new Date(atMs).toISOString()} title={exactText(atMs)} />;
}

/** Shows how long ago an event happened, or `otherwise` if it has not happened. */
export function AgoOr({ atMs, otherwise }: { atMs: number | null | undefined; otherwise: string }): ReactNode {
  return atMs === null || atMs === undefined ? <span className="muted">{otherwise}</span> : <Ago atMs={atMs} />;
}
