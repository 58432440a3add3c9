import { HOP_BY_HOP } from "../../core/policies/hop-by-hop.ts";
import type { Head } from "../http/head.ts";

/** Headers that a proxy sets itself. Removing them would be wrong or have no effect. */
const KEPT: ReadonlySet<string> = new Set([...HOP_BY_HOP, "host", "content-length", "expect"]);

/**
 * Returns the names of headers that a gateway must remove before it forwards the request: credentials, and identity headers that the client
 * sent. The names are unique, in lower case, and exclude those in `set` (alternating names and values), which the gateway overwrites.
 */
export function removedHeaders(
  rawHeaders: readonly string[],
  { forwarded }: Pick<Head, "forwarded">,
  set: readonly string[],
): string[] {
  const passed = new Set<string>();
  for (const list of [forwarded, set]) {
    for (let i = 0; i < list.length; i += 2) passed.add((list[i] as string).toLowerCase());
  }
  const removed = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    if (!passed.has(name) && !KEPT.has(name) && !name.startsWith(":")) removed.add(name);
  }
  return [...removed];
}
