import { expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/*
 * A key gets a new hash, as a migrated key does on first use, while another transaction changes a related row. Neither sees the other's
 * uncommitted rows.
 */
test.each(["the key's new hash first", "the deletion first"])(
  "permission that is deleted during a key hash change disappears from the new hash: %s",
  async (order) => {
    const system = await openSystem();
    const api = await system.api();
    const { keyId, apiId } = await makeKey(api, { permissions: ["orders.read"] });
    const newKey = "a key that was issued elsewhere";
    const workspaceId = await system.workspaceId();
    const [rehash, removal] = [await system.db.connect(), await system.db.connect()];
    try {
      await rehash.query("begin");
      await removal.query("begin");
      await rehash.query("update keys set hash = $2 where id = $1", [keyId, hashKey(newKey)]);
      // This trigger runs before the new hash is committed.
      await removal.query("delete from key_permissions where key_id = $1", [keyId]);
      const first = order === "the deletion first" ? removal : rehash;
      await first.query("commit");
      await waitFor("its marks to be carried", async () => {
        const { rows } = await system.db.query("select from outbox");
        return rows.length === 0;
      });
      await (first === removal ? rehash : removal).query("commit");
    } finally {
      rehash.release();
      removal.release();
    }
    const ref = { workspaceId, kind: "key", id: hashKey(newKey) } as const;
    await waitFor("the record without the permission", async () => {
      const read = await api.edge.source.read([ref]);
      const [record] = read.usable ? read.records : [];
      return record?.state === "found" && (record.data as { permissions: string[] }).permissions.length === 0;
    });
    const gate = await system.gate(api, { apiId });
    expect(await gate.status(newKey)).toBe(200);
  },
);
