import { type ReactNode, useEffect, useRef } from "react";
import { agoLastsMs, agoText, exactText, fullText, logText, preciseText, shortText } from "./time.ts";

/** Maximum delay of a browser timer, ms. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/* Times are shown in the time zone of the browser, and in UTC in the tooltip. */

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
  return <time ref={element} dateTime={new Date(atMs).toISOString()} title={`${fullText(atMs)}\n${exactText(atMs)}`} />;
}

interface Optional {
  readonly atMs: number | null | undefined;
  /** Text to show instead of a missing time. */
  readonly otherwise: string;
}

/** Shows how long ago an event happened, or `otherwise` if it has not happened. */
export function AgoOr({ atMs, otherwise }: Optional): ReactNode {
  return atMs === null || atMs === undefined ? <span className="muted">{otherwise}</span> : <Ago atMs={atMs} />;
}

/** Shows a local time in the short form for lists, or in the form for logs, with milliseconds. */
export function Time({ atMs, form = "short" }: { atMs: number; form?: "short" | "log" }): ReactNode {
  const nowMs = Date.now();
  return (
    <time dateTime={new Date(atMs).toISOString()} title={form === "log" ? preciseText(atMs) : exactText(atMs)}>
      {form === "log" ? logText(atMs, nowMs) : shortText(atMs, nowMs)}
    </time>
  );
}

/** Shows a time in a list, or `otherwise` if there is none. */
export function TimeOr({ atMs, otherwise }: Optional): ReactNode {
  return atMs === null || atMs === undefined ? <span className="muted">{otherwise}</span> : <Time atMs={atMs} />;
}

/** Shows a local time with its zone, and how long ago it was. */
export function FullTime({ atMs }: { atMs: number }): ReactNode {
  return (
    <>
      <time dateTime={new Date(atMs).toISOString()} title={exactText(atMs)}>
        {fullText(atMs)}
      </time>{" "}
      <span className="muted">
        (<Ago atMs={atMs} />)
      </span>
    </>
  );
}

/** Shows a time among the details of an object, or `otherwise` if there is none. */
export function FullTimeOr({ atMs, otherwise }: Optional): ReactNode {
  return atMs === null || atMs === undefined ? <span className="muted">{otherwise}</span> : <FullTime atMs={atMs} />;
}
