import type { Pool } from "pg";
import { OUTBOX_CHANNEL } from "./outbox.ts";

/**
 * Returns a function that notifies the relay of new outbox entries. Call it after a commit, never inside a transaction: transactions that
 * contain a notification commit one at a time, because Postgres takes a server-wide lock for it. Only one notification is in flight at a
 * time; it covers all calls in the meantime. A failed notification is not repeated, because the relay polls the outbox every second.
 */
export function createRelayWaker(db: Pool): () => void {
  let isSending = false;
  let isDesired = false;

  async function send(): Promise<void> {
    isSending = true;
    while (isDesired) {
      isDesired = false;
      await db.query(`notify ${OUTBOX_CHANNEL}`).catch(() => undefined);
    }
    isSending = false;
  }

  return () => {
    isDesired = true;
    if (!isSending) void send();
  };
}
