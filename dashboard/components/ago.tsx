import { type ReactNode, useEffect, useRef } from "react";
import { agoLastsMs, agoText, exactText } from "./time.ts";

/** A timer holds no more than this many ms. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * "2 min ago", with the exact time in its title. It ticks by itself and writes its text into the document, so a table of thousand
 * rows is not rendered again each second.
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

/** The same for what may not have happened. */
export function AgoOr({ atMs, otherwise }: { atMs: number | null | undefined; otherwise: string }): ReactNode {
  return atMs === null || atMs === undefined ? <span className="muted">{otherwise}</span> : <Ago atMs={atMs} />;
}
