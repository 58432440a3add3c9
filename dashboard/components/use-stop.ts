import { useEffect, useRef } from "react";

/**
 * Returns `begin` and `stop` for work that a person can stop and that stops when its dialog closes. `begin` returns the signal of a new
 * attempt.
 */
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
