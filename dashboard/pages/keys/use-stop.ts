import { useEffect, useRef } from "react";

/** For work that the person can stop, and that stops when its window is closed. `begin` returns the signal of a new attempt. */
export function useStop(): { begin: () => AbortSignal; stop: () => void } {
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  return {
    begin: () => {
      current.current = new AbortController();
      return current.current.signal;
    },
    stop: () => current.current?.abort(),
  };
}
