/** Maximum number of cached names. Clients may send any number of different names, but only a few, short ones occur often. */
const KNOWN_NAMES_MAX = 1024;
const NAME_LENGTH_MAX = 64;

/**
 * Caches the meaning of a header name by its spelling. A full cache is cleared, because unusual names may have filled it; the usual names
 * soon return.
 */
export function rememberName<Meaning>(known: Map<string, Meaning>, name: string, meaning: Meaning): void {
  if (name.length > NAME_LENGTH_MAX) return;
  if (known.size === KNOWN_NAMES_MAX) known.clear();
  known.set(ownText(name), meaning);
}

/** Copies received text. A substring would keep the complete received text in memory, and so would `toLowerCase` if it changes nothing. */
export const ownText = (received: string): string => Buffer.from(received, "latin1").toString("latin1");
