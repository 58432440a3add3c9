import type { ClientBase } from "pg";

/** What a statement needs: a pool or a transaction's client. */
export type Queryable = Pick<ClientBase, "query">;
