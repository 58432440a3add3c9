import type { Queryable } from "../../postgres/queryable.ts";

/** Size and age of the roll-up queue. */
export interface QueueDepth {
  /** Estimated number of queued events; an upper bound. */
  readonly events: number;
  /** Age of the oldest entry in ms; 0 if the queue is empty. */
  readonly ageMs: number;
}

export async function findQueueDepth(db: Queryable): Promise<QueueDepth> {
  const text = `select coalesce(sum(q.events), 0)::integer as events,
                       coalesce(greatest(0, extract(epoch from clock_timestamp() - min(q.queued_at)) * 1000), 0)::float as "ageMs"
                  from rollup_queue q`;
  const { rows } = await db.query<QueueDepth>({ name: "find-queue-depth", text });
  return rows[0] ?? { events: 0, ageMs: 0 };
}

/** Returns the age in ms of a workspace's oldest queued batch; 0 if there is none. */
export async function findWaitingMs(db: Queryable, workspaceId: string): Promise<number> {
  const text = `select coalesce(greatest(0, extract(epoch from clock_timestamp() - min(q.queued_at)) * 1000), 0)::float as "waitingMs"
                  from rollup_queue q
                 where q.workspace_id = $1`;
  const { rows } = await db.query<{ waitingMs: number }>({ name: "find-waiting-ms", text, values: [workspaceId] });
  return rows[0]?.waitingMs ?? 0;
}

export interface QueuedBatch {
  readonly id: number;
  readonly workspaceId: string;
}

/** Selects batches of one workspace, or of all workspaces except recently failed ones. */
export interface QueueChoice {
  readonly groupsMax: number;
  readonly except: readonly string[];
  readonly only?: string | undefined;
}

/**
 * Returns the next batches with up to `groupsMax` groups in total, but at least one batch. They alternate between workspaces, oldest first.
 * `isMore` is true if batches remain.
 */
export async function listQueued(
  db: Queryable,
  { groupsMax, except, only }: QueueChoice,
): Promise<{ portions: QueuedBatch[]; isMore: boolean }> {
  const text = `select q.id, q.workspace_id as "workspaceId", q.portions
                  from (select t.*, sum(t.groups) over (order by t.turn, t.id) - t.groups as before,
                               (count(*) over ())::integer as portions
                          from (select w.id, w.workspace_id, w.groups,
                                       row_number() over (partition by w.workspace_id order by w.id) as turn
                                  from rollup_queue w
                                 where w.workspace_id <> all($2) and ($3::text is null or w.workspace_id = $3)) t) q
                 where q.before < $1
                 order by q.turn, q.id`;
  const values = [groupsMax, except, only ?? null];
  const { rows } = await db.query<QueuedBatch & { portions: number }>({ name: "list-queued", text, values });
  return { portions: rows, isMore: (rows[0]?.portions ?? 0) > rows.length };
}

/** Queues the counts of a batch. `verifications` and `ratelimits` are array literals of groups. */
export async function insertQueued(
  tx: Queryable,
  queued: { workspaceId: string; events: number; groups: number; verifications: string; ratelimits: string },
): Promise<void> {
  const text = `insert into rollup_queue (workspace_id, events, groups, verifications, ratelimits)
                values ($1, $2, $3, $4::verification_group[], $5::ratelimit_group[])`;
  const { workspaceId, events, groups, verifications, ratelimits } = queued;
  await tx.query({ name: "insert-queued", text, values: [workspaceId, events, groups, verifications, ratelimits] });
}
