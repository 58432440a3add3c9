import { useEffect, useRef } from "react";

/**
 * Returns `begin` and `stop` for work that a person can stop and that stops when its dialog closes. `begin` starts a new attempt and
 * returns its abort signal.
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
