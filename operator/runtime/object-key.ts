/** Namespace and name of an object. Together with its kind, they identify the object during its lifetime. */
export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

export const formatKey = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;

/** Parses a key that `formatKey` returned. Neither part can contain a slash, because both are DNS names. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

export interface CollectedKeys {
  add(key: ObjectKey): void;
  close(): void;
}

/** Debounces keys: collects the keys of a series of calls, and passes each key on once, `afterMs` after the first call. */
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
