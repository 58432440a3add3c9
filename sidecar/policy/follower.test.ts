import { PassThrough } from "node:stream";
import pino from "pino";
import { afterEach, expect, test } from "vitest";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { aPolicy, POLICY, Records, WORKSPACE } from "../../test/harness/gate.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { followPolicy, type PolicyFollower } from "./follower.ts";

/* A gate without a policy waits for one, and logs why. `stale.test.ts` tests that the active policy is kept. */

let edge: Edge;
let projection: Projection;
let follower: PolicyFollower;
afterEach(async () => {
  follower.close();
  await projection.close();
  await edge.close();
});

/** Follows a policy, and returns the log records. */
async function follow({ projected }: { projected: boolean }): Promise<{ records: Records; lines: () => string[] }> {
  edge = createMemoryEdge();
  const records = new Records(edge);
  if (projected) {
    await records.begin();
    await records.complete();
  }
  projection = await openProjection({ source: edge.source, stream: edge.stream, follow: { workspaceId: WORKSPACE } });
  const out = new PassThrough().setEncoding("utf8");
  const lines: string[] = [];
  out.on("data", (line: string) => lines.push(line));
  follower = followPolicy({
    projection,
    workspaceId: WORKSPACE,
    policyId: POLICY,
    logger: pino(out),
    missedAfterMs: 100,
  });
  return { records, lines: () => lines };
}

test.each([
  { name: "the workspace has none of its name", projected: true, reason: "no policy of this name or id" },
  { name: "nothing of the workspace is there", projected: false, reason: "nothing is projected" },
])("policy follower logs once that it is waiting because $name", async ({ projected, reason }) => {
  const { records, lines } = await follow({ projected });
  await waitFor("the line", () => lines().length > 0);
  if (!projected) {
    await records.begin();
    await records.complete();
  }
  await records.putPolicy(aPolicy());
  await waitFor("the policy", () => follower.current !== undefined);
  const [first, ...others] = lines().map((line) => JSON.parse(line));
  expect(first).toMatchObject({
    level: 40,
    msg: "there is no policy yet; requests get 503",
    policyId: POLICY,
    workspaceId: WORKSPACE,
    reason: expect.stringContaining(reason),
  });
  expect(others).toMatchObject([{ level: 30, msg: "policy in force" }]);
});
