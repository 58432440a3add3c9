import { formatKey, type ObjectKey } from "./object-key.ts";

export interface CollectedKeys {
  add(key: ObjectKey): void;
  close(): void;
}

/** Debounces keys: passes each key once, `afterMs` after the first of a series of changes. */
export function collectKeys(afterMs: number, pass: (key: ObjectKey) => void): CollectedKeys {
  const keys = new Map<string, ObjectKey>();
  let timer: NodeJS.Timeout | undefined;
  const passAll = () => {
    timer = undefined;
    const all = [...keys.values()];
    keys.clear();
    for (const key of all) pass(key);
  };
  return {
    add: (key) => {
      keys.set(formatKey(key), key);
      timer ??= setTimeout(passAll, afterMs);
    },
    close: () => {
      clearTimeout(timer);
      keys.clear();
    },
  };
}
