/** A sender may use any number of names; those that matter are few, and short. */
const KNOWN_NAMES_MAX = 1024;
const NAME_LENGTH_MAX = 64;

/**
 * Remembers what the name of a header means, by its spelling. When others have filled the memory with names that do not occur again, it
 * begins again, so that the usual ones find their place.
 */
export function rememberName<Meaning>(known: Map<string, Meaning>, name: string, meaning: Meaning): void {
  if (name.length > NAME_LENGTH_MAX) return;
  if (known.size === KNOWN_NAMES_MAX) known.clear();
  known.set(ownText(name), meaning);
}

/** A copy of what was received: a part of a longer text keeps all of that text, and so does its lower case if it is equal. */
export const ownText = (received: string): string => Buffer.from(received, "latin1").toString("latin1");
