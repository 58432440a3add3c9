import type { Client } from "pg";
import type { Closeable } from "../../edge/closeable.ts";
import { tryLock } from "../../postgres/advisory-locks.ts";
import { createNamedClient } from "../../postgres/named-client.ts";
import { customTypes, type DatabaseUrl, urlOf } from "../../postgres/pool.ts";
import { OUTBOX_CHANNEL } from "../db/outbox.ts";

/*
 * Elects the api-server that relays: the holder of an advisory lock. The lock belongs to a dedicated connection, which its holder uses
 * once a second. If the connection is silent for five seconds, because the process hangs, or its host or network is unreachable,
 * Postgres closes it and releases the lock. Then another api-server takes over. If the old leader continues, it finds its connection
 * lost; versions make its late writes ineffective.
 *
 *   trying ──lock free──► leading ──silent for 5 s, connection lost──► lost
 */

const KEEP_ALIVE_MS = 1000;
/** Time after which the process stops leading if Postgres does not respond, even though it may still hold the lock. */
const RESPONSE_MS = 4000;
const SILENCE = "5s";
/**
 * Time after which Postgres ends an idle transaction. The transaction's process probably hangs then, and the open snapshot would prevent
 * vacuum from removing old rows.
 */
const IDLE_IN_TRANSACTION = "15s";

/** Settings that let Postgres detect an unreachable client. They require Postgres 14 or newer. */
const KEEP_ALIVE_SETTINGS = `set tcp_keepalives_idle = 3;
                             set tcp_keepalives_interval = 1;
                             set tcp_keepalives_count = 3;
                             set tcp_user_timeout = 5000`;

export interface Leadership extends Closeable {
  /** Signal that is aborted when leadership is lost. */
  readonly lost: AbortSignal;
}

/** Becomes the leader. Returns `undefined` if another process is the leader. `onEntries` is called when new outbox entries may exist. */
export async function takeLead(databaseUrl: DatabaseUrl, onEntries: () => void): Promise<Leadership | undefined> {
  const lost = new AbortController();
  const db = newClient(databaseUrl, "postern-relay-lead");
  db.on("error", (error) => lost.abort(error));
  db.on("end", () => lost.abort(new Error("the connection that holds the relay's lock has ended")));
  let keepAlive: NodeJS.Timeout | undefined;
  const close = async () => {
    clearInterval(keepAlive);
    await db.end().catch(() => undefined);
  };
  try {
    await db.connect();
    await db.query(`${KEEP_ALIVE_SETTINGS}; set idle_session_timeout = '${SILENCE}'`);
    if (!(await tryLock(db, "relay"))) {
      await close();
      return undefined;
    }
    db.on("notification", onEntries);
    await db.query(`listen ${OUTBOX_CHANNEL}`);
  } catch (error) {
    await close();
    throw error;
  }
  keepAlive = setInterval(() => db.query("select 1").catch((error: unknown) => lost.abort(error)), KEEP_ALIVE_MS);
  return { lost: lost.signal, close };
}

/**
 * Opens a connection for the leader's work. If the process hangs, Postgres soon closes the connection; otherwise the caller must close it.
 */
export async function connectWorker(databaseUrl: DatabaseUrl): Promise<Client> {
  const db = newClient(databaseUrl, "postern-relay");
  // Without an `error` listener, a lost connection would end the process. The loss is noticed anyway, because the next query fails.
  db.on("error", () => undefined);
  try {
    await db.connect();
    await db.query(`${KEEP_ALIVE_SETTINGS}; set idle_in_transaction_session_timeout = '${IDLE_IN_TRANSACTION}'`);
    return db;
  } catch (error) {
    await db.end().catch(() => undefined);
    throw error;
  }
}

const newClient = (databaseUrl: DatabaseUrl, name: string): Client =>
  createNamedClient({
    connectionString: urlOf(databaseUrl),
    application_name: name,
    connectionTimeoutMillis: 5000,
    query_timeout: name === "postern-relay-lead" ? RESPONSE_MS : 30_000,
    keepAlive: true,
    types: customTypes,
  });
