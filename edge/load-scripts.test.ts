import { expect, test } from "vitest";
import { CONSUME, GIVE_BACK, SPEND_CREDITS, SYNC_COUNTS } from "./counters/scripts.ts";
import { APPEND, TAKE_QUOTA } from "./events/redis-sink.ts";
import { COUNT_ALIVE, REPORT } from "./pods/redis.ts";
import { POSITION } from "./projection/scripts.ts";

/*
 * The Redis user of a pod may run the scripts that an api-server has loaded, but not load any. While pods and api-servers have different
 * versions, a pod can use only scripts whose text, including comments, is equal in both (docs/upgrades.md). A change of such a text affects
 * upgrades: make it intentionally, mention it in CHANGELOG.md and update the hash here.
 */
test.each([
  { name: "CONSUME", script: CONSUME, sha: "3e70ce35c04733fe74e7f4f29797219c4d6f04c7" },
  { name: "GIVE_BACK", script: GIVE_BACK, sha: "25b0e300add8012d629a277a35329063bbf07b98" },
  { name: "SPEND_CREDITS", script: SPEND_CREDITS, sha: "71a6277802675061e3633f944d556a7ac49e0779" },
  { name: "SYNC_COUNTS", script: SYNC_COUNTS, sha: "03ec77fff8e40fcb66822264d1f21c19127b7390" },
  { name: "POSITION", script: POSITION, sha: "0ad2d65d403d91a50c6a5c01be0f8d6bbaab2257" },
  { name: "REPORT", script: REPORT, sha: "84e497463494d73aacfe20069cd6882c0f4472bf" },
  { name: "COUNT_ALIVE", script: COUNT_ALIVE, sha: "fd32d801ebda61af80464a695f94650209ab5281" },
  { name: "APPEND", script: APPEND, sha: "f233c20925f7d292a2d92ca9151e47b1a9a9d87d" },
  { name: "TAKE_QUOTA", script: TAKE_QUOTA, sha: "022564b3d533ce325f229065e71c3ac24adef06d" },
])("pod script $name has the same SHA as in older versions", ({ script, sha }) => {
  expect(script.sha).toBe(sha);
});
