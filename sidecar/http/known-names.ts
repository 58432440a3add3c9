/** Maximum number of cached names. A sender may use any number of names, but the relevant ones are few and short. */
const KNOWN_NAMES_MAX = 1024;
const NAME_LENGTH_MAX = 64;

/**
 * Caches the meaning of a header name by its spelling. When unusual names have filled the cache, it is cleared and fills with the usual
 * names again.
 */
export function rememberName<Meaning>(known: Map<string, Meaning>, name: string, meaning: Meaning): void {
  if (name.length > NAME_LENGTH_MAX) return;
  if (known.size === KNOWN_NAMES_MAX) known.clear();
  known.set(ownText(name), meaning);
}

/** Copies received text: a substring, or a lower-case form that is equal to it, would keep the complete text in memory. */
export const ownText = (received: string): string => Buffer.from(received, "latin1").toString("latin1");
