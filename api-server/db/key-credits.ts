import type { Queryable } from "../../postgres/queryable.ts";

export interface KeyCreditsRow {
  readonly key_id: string;
  readonly workspace_id: string;
  readonly rev: number;
  readonly granted: number;
  readonly spent: number;
  readonly refill_amount: number | null;
  readonly refill_day: number | null;
}

export interface KeyRef {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** Returns the credits of keys. The result has no row for an unlimited key. */
export async function listKeyCredits(
  db: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<KeyCreditsRow[]> {
  const text = `select key_id, workspace_id, rev, granted, spent, refill_amount, refill_day
                  from key_credits
                 where workspace_id = $1 and key_id = any($2)`;
  const { rows } = await db.query<KeyCreditsRow>({ name: "list-key-credits", text, values: [workspaceId, keyIds] });
  return rows;
}

/**
 * Returns the credits of keys and locks them, so that a change and the loading of a Redis counter exclude each other. Unlimited keys have
 * no row. Rows are locked in id order, to avoid deadlock.
 */
export async function lockKeyCredits(tx: Queryable, keys: readonly KeyRef[]): Promise<KeyCreditsRow[]> {
  const text = `select c.key_id, c.workspace_id, c.rev, c.granted, c.spent, c.refill_amount, c.refill_day
                  from unnest($1::text[], $2::text[]) as asked (workspace_id, key_id)
                  join key_credits c on c.workspace_id = asked.workspace_id and c.key_id = asked.key_id
                 order by c.key_id
                   for update of c`;
  const { rows } = await tx.query<KeyCreditsRow>({ name: "lock-key-credits", text, values: columnsOf(keys) });
  return rows;
}

/**
 * Locks the keys, so that no other transaction can lock them to change their credits until the current transaction ends. Other columns can
 * still be updated.
 */
export async function shareLockKeys(tx: Queryable, keys: readonly KeyRef[]): Promise<void> {
  const text = `select
                  from unnest($1::text[], $2::text[]) as asked (workspace_id, key_id)
                  join keys k on k.workspace_id = asked.workspace_id and k.id = asked.key_id
                 order by k.id
                   for key share of k`;
  await tx.query({ name: "share-lock-keys", text, values: columnsOf(keys) });
}

/** Returns the ids of the given keys that exist and are not deleted. */
export async function listLiveKeys(tx: Queryable, keys: readonly KeyRef[]): Promise<ReadonlySet<string>> {
  const text = `select k.id
                  from unnest($1::text[], $2::text[]) as asked (workspace_id, key_id)
                  join keys k on k.workspace_id = asked.workspace_id and k.id = asked.key_id
                 where k.deleted_at is null`;
  const { rows } = await tx.query<{ id: string }>({ name: "list-live-keys", text, values: columnsOf(keys) });
  return new Set(rows.map(({ id }) => id));
}

export interface NewKeyCredits extends KeyRef {
  readonly granted: number;
  readonly refillAmount: number | null;
  readonly refillDay: number | null;
}

/**
 * Sets the credits of keys. Each key gets a new `rev`, and its spent credits start at 0. The first refill of a new schedule is on its next
 * due date after `today`.
 */
export async function putKeyCredits(
  tx: Queryable,
  { credits, today }: { credits: readonly NewKeyCredits[]; today: string },
): Promise<void> {
  const text = `insert into key_credits (workspace_id, key_id, granted, refill_amount, refill_day, last_refill_on)
                select n.workspace_id, n.key_id, n.granted, n.refill_amount, n.refill_day, $6::date
                  from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::smallint[])
                       as n (workspace_id, key_id, granted, refill_amount, refill_day)
                 order by n.key_id
                on conflict (key_id) do update
                   set rev = nextval('credit_rev'), granted = excluded.granted, spent = 0,
                       refill_amount = excluded.refill_amount, refill_day = excluded.refill_day,
                       last_refill_on = case when key_credits.refill_amount is null
                                               or key_credits.refill_day is distinct from excluded.refill_day
                                             then excluded.last_refill_on
                                             else key_credits.last_refill_on end`;
  const values = [
    ...columnsOf(credits),
    credits.map(({ granted }) => granted),
    credits.map(({ refillAmount }) => refillAmount),
    credits.map(({ refillDay }) => refillDay),
    today,
  ];
  await tx.query({ name: "put-key-credits", text, values });
}

export async function deleteKeyCredits(tx: Queryable, keys: readonly KeyRef[]): Promise<void> {
  const text = `delete from key_credits c
                 using unnest($1::text[], $2::text[]) as gone (workspace_id, key_id)
                 where c.workspace_id = gone.workspace_id and c.key_id = gone.key_id`;
  await tx.query({ name: "delete-key-credits", text, values: columnsOf(keys) });
}

const columnsOf = (keys: readonly KeyRef[]): [string[], string[]] => [
  keys.map(({ workspaceId }) => workspaceId),
  keys.map(({ keyId }) => keyId),
];

/**
 * Stores the spent credits that the Redis counters report, unless the stored number is higher or the grant has changed. Rows are locked in
 * id order, to avoid deadlock.
 */
export async function raiseSpent(
  db: Queryable,
  seen: ReadonlyArray<{ workspaceId: string; keyId: string; rev: number; spent: number }>,
): Promise<void> {
  const text = `with locked as materialized (
                  select c.key_id, s.spent
                    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as s (workspace_id, key_id, rev, spent)
                    join key_credits c on c.workspace_id = s.workspace_id and c.key_id = s.key_id
                   where c.rev = s.rev and c.spent < s.spent
                   order by c.key_id
                     for no key update of c
                )
                update key_credits c
                   set spent = least(c.granted, greatest(c.spent, l.spent))
                  from locked l
                 where c.key_id = l.key_id`;
  await db.query({
    name: "raise-spent",
    text,
    values: [...columnsOf(seen), seen.map(({ rev }) => rev), seen.map(({ spent }) => spent)],
  });
}

/**
 * Advances the sequence of revs after a restore of Postgres, because the Redis counters may contain higher revs than Postgres would assign
 * next.
 */
export async function renewCreditRevs(db: Queryable): Promise<void> {
  await db.query(`select setval('credit_rev', greatest((select last_value from credit_rev),
                                                       (extract(epoch from clock_timestamp()) * 1000)::bigint))`);
  await db.query("update key_credits set rev = nextval('credit_rev')");
}

export interface RefillRow extends KeyCreditsRow {
  /** Date of the last refill, `YYYY-MM-DD`. */
  readonly last_refill_on: string;
  readonly api_id: string;
}

/**
 * Returns live keys that have a refill and were last refilled before `today`, so their next refill might be due. The keys are sorted by the
 * date of the last refill and then by id, which matches an index. `after` is the last key of the previous call.
 */
export async function listRefillCandidates(
  db: Queryable,
  { today, after, max }: { today: string; after: { lastRefillOn: string; keyId: string } | undefined; max: number },
): Promise<RefillRow[]> {
  const text = `select c.key_id, c.workspace_id, c.rev, c.granted, c.spent, c.refill_amount, c.refill_day,
                       c.last_refill_on, k.api_id
                  from key_credits c
                  join keys k on k.id = c.key_id
                 where c.refill_amount is not null and c.last_refill_on < $1::date
                   and (c.last_refill_on, c.key_id) > ($2::date, $3)
                   and k.deleted_at is null
                 order by c.last_refill_on, c.key_id
                 limit $4`;
  const values = [today, after?.lastRefillOn ?? "-infinity", after?.keyId ?? "", max];
  const { rows } = await db.query<RefillRow>({ name: "list-refill-candidates", text, values });
  return rows;
}

/** Returns the date of each key's last refill, and locks the credits of the keys in id order. Keys without a refill have no row. */
export async function lockRefills(
  tx: Queryable,
  keys: readonly KeyRef[],
): Promise<Array<Pick<RefillRow, "key_id" | "last_refill_on">>> {
  const text = `select c.key_id, c.last_refill_on
                  from unnest($1::text[], $2::text[]) as asked (workspace_id, key_id)
                  join key_credits c on c.workspace_id = asked.workspace_id and c.key_id = asked.key_id
                 where c.refill_amount is not null
                 order by c.key_id
                   for update of c`;
  const { rows } = await tx.query<RefillRow>({ name: "lock-refills", text, values: columnsOf(keys) });
  return rows;
}

/** Returns the date of the key's last refill, `YYYY-MM-DD`; `undefined` if it has no refill. */
export async function findLastRefill(tx: Queryable, { workspaceId, keyId }: KeyRef): Promise<string | undefined> {
  const text = `select last_refill_on
                  from key_credits
                 where workspace_id = $1 and key_id = $2 and refill_amount is not null`;
  const values = [workspaceId, keyId];
  const { rows } = await tx.query<{ last_refill_on: string }>({ name: "find-last-refill", text, values });
  return rows[0]?.last_refill_on;
}

/** Records the date on which the keys were refilled, or checked without a refill being due. Never moves the recorded date back. */
export async function setLastRefill(
  tx: Queryable,
  { keyIds, today }: { keyIds: readonly string[]; today: string },
): Promise<void> {
  const text = `update key_credits
                   set last_refill_on = $2::date
                 where key_id = any($1) and last_refill_on < $2::date`;
  await tx.query({ name: "set-last-refill", text, values: [keyIds, today] });
}
