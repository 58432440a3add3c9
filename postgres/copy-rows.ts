import pg, { type PoolClient } from "pg";

interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

class CopyQuery extends pg.Query {
  readonly #rows: Buffer;

  constructor(text: string, rows: Buffer, callback: (error: Error | null) => void) {
    // In the types of `pg`, a submitted query has no callback. In fact, the class accepts a callback for any query.
    super(text as never, callback as never);
    this.#rows = rows;
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#rows);
    connection.endCopyFrom();
  }
}

/** Runs `copy … from stdin` with rows in text format. The caller bounds their size, because they are sent as one message. */
export function copyRows(tx: PoolClient, { text, rows }: { text: string; rows: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    tx.query(new CopyQuery(text, Buffer.from(rows), (error) => (error ? reject(error) : resolve())));
  });
}

/** Returns a string that is escaped as one field of a row for `copyRows`. */
export const copyField = (value: string): string =>
  /[\\\n\r\t]/.test(value) ? value.replace(/[\\\n\r\t]/g, (found) => ESCAPES[found] ?? found) : value;

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
