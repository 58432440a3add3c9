/** Maximum number of cached names. A sender may use any number of names, but the relevant ones are few and short. */
const KNOWN_NAMES_MAX = 1024;
const NAME_LENGTH_MAX = 64;

/**
 * Caches the meaning of a header name by its spelling. When the cache is full of unusual names, it is cleared, so that it fills with the
 * usual names again.
 */
export function rememberName<Meaning>(known: Map<string, Meaning>, name: string, meaning: Meaning): void {
  if (name.length > NAME_LENGTH_MAX) return;
  if (known.size === KNOWN_NAMES_MAX) known.clear();
  known.set(ownText(name), meaning);
}

/** Copies received text, because a substring, or an equal lower-case form, would keep the complete text in memory. */
export const ownText = (received: string): string => Buffer.from(received, "latin1").toString("latin1");
