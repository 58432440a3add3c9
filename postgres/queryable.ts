import type { ClientBase } from "pg";

/** Runs statements: a pool, or the client of a transaction. */
export type Queryable = Pick<ClientBase, "query">;

/** Rows of one workspace that are older than `beforeMs`. */
export interface Batch {
  readonly workspaceId: string;
  /** Unix ms. */
  readonly beforeMs: number;
  readonly rowsMax: number;
}

/** Removes a batch, oldest rows first. Returns the number of removed rows. */
export type RemoveBatch = (db: Queryable, batch: Batch) => Promise<number>;
