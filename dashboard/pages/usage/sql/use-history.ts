import { useState } from "react";
import { type PastQuery, readHistory, withQuery } from "../../../usage/query-history.ts";

/** Queries that ran in this browser, by workspace. If the browser denies storage, the history lasts until the page is closed. */
export function useHistory(workspaceId: string): {
  history: readonly PastQuery[];
  add: (sql: string) => void;
  clear: () => void;
} {
  const name = `postern-queries:${workspaceId}`;
  const [history, setHistory] = useState(() => readHistory(stored(name)));
  const keep = (next: readonly PastQuery[]): void => {
    setHistory([...next]);
    try {
      if (next.length === 0) localStorage.removeItem(name);
      else localStorage.setItem(name, JSON.stringify(next));
    } catch {}
  };
  return {
    history,
    add: (sql) => keep(withQuery(history, { sql, atMs: Date.now() })),
    clear: () => keep([]),
  };
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
