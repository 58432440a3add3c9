/** Maximum cached names. A sender may use any number of names; the relevant ones are few and short. */
const KNOWN_NAMES_MAX = 1024;
const NAME_LENGTH_MAX = 64;

/**
 * Caches the meaning of a header name by its spelling. When unique names fill the cache, it is cleared, so that the usual names are cached
 * again.
 */
export function rememberName<Meaning>(known: Map<string, Meaning>, name: string, meaning: Meaning): void {
  if (name.length > NAME_LENGTH_MAX) return;
  if (known.size === KNOWN_NAMES_MAX) known.clear();
  known.set(ownText(name), meaning);
}

/** Copies received text: a substring keeps the complete text alive, and so does its lower case if it is equal. */
export const ownText = (received: string): string => Buffer.from(received, "latin1").toString("latin1");
