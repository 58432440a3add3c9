import { useEffect, useState } from "react";

/**
 * Returns the time of the current poll, Unix ms, and a function that polls immediately. The time advances by `everyMs` and stops while the
 * page is hidden or `isPaused` is set. A page that becomes visible again polls immediately.
 */
export function useNow(everyMs: number, isPaused = false): readonly [nowMs: number, askNow: () => void] {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    if (isPaused) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = (): void => {
      clearTimeout(timer);
      if (document.hidden) return;
      const restMs = nowMs + everyMs - Date.now();
      if (restMs <= 0) setNowMs(Date.now());
      else timer = setTimeout(poll, restMs);
    };
    poll();
    document.addEventListener("visibilitychange", poll);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", poll);
    };
  }, [nowMs, everyMs, isPaused]);
  return [nowMs, () => setNowMs(Date.now())];
}
