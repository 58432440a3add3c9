import { useEffect, useState } from "react";

/**
 * Returns the time of the current poll, Unix ms, and a function that polls at once. The time advances by this interval and stops while the
 * page is hidden or `isPaused` is set. A page that becomes visible again catches up at once.
 */
export function useNow(everyMs: number, isPaused = false): readonly [nowMs: number, askNow: () => void] {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    if (isPaused) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      clearTimeout(timer);
      if (document.hidden) return;
      const restMs = nowMs + everyMs - Date.now();
      if (restMs <= 0) setNowMs(Date.now());
      else timer = setTimeout(look, restMs);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [nowMs, everyMs, isPaused]);
  return [nowMs, () => setNowMs(Date.now())];
}
