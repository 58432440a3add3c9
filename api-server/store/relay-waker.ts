import type { Pool } from "pg";
import { OUTBOX_CHANNEL } from "./outbox.ts";

/**
 * Returns a function that tells the relay of new marks. Call it after a commit, never inside of a transaction: a notification
 * takes a lock of the whole server when it is committed, which makes all transactions with one commit one after the other.
 * One notification is under way at a time, and stands for all calls that come meanwhile. One that fails is not sent again: the
 * relay looks into the outbox each second.
 */
export function createRelayWaker(db: Pool): () => void {
  let isSending = false;
  let isWanted = false;

  async function send(): Promise<void> {
    isSending = true;
    while (isWanted) {
      isWanted = false;
      await db.query(`notify ${OUTBOX_CHANNEL}`).catch(() => undefined);
    }
    isSending = false;
  }

  return () => {
    isWanted = true;
    if (!isSending) void send();
  };
}
