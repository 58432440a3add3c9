import { expect, test } from "vitest";
import { CONSUME, GIVE_BACK, SPEND_CREDITS, SYNC_COUNTS } from "./counters/scripts.ts";
import { APPEND, TAKE_ROOM } from "./events/redis-sink.ts";
import { COUNT_ALIVE, REPORT } from "./pods/redis.ts";
import { POSITION } from "./projection/scripts.ts";

/*
 * A pod's user may run the scripts that an api-server has loaded, and load none. So while pods and api-servers are of two releases, a
 * pod can do what both have a script of the same text for, comments included (docs/upgrades.md). A change of one of these
 * texts changes what works during an upgrade: make it on purpose, say so in CHANGELOG.md, and write the new hash here.
 */
test.each([
  { name: "CONSUME", script: CONSUME, sha: "1544db6d1ecb2776feef364d8b8cec8c782b04e2" },
  { name: "GIVE_BACK", script: GIVE_BACK, sha: "8e82c74b795a0f22d061e5774e0aa9844ec2e31f" },
  { name: "SPEND_CREDITS", script: SPEND_CREDITS, sha: "10d1425f7e606f1243b8a2f5941185da01bc5afe" },
  { name: "SYNC_COUNTS", script: SYNC_COUNTS, sha: "058966ca5b3af8c0aa0782841073d1fd17b22ea1" },
  { name: "POSITION", script: POSITION, sha: "f2a138f1b705b69dd7664dc7255ae15cd175e7bc" },
  { name: "REPORT", script: REPORT, sha: "6a566070e42886bf7fda858fa4e4f64fec6408cf" },
  { name: "COUNT_ALIVE", script: COUNT_ALIVE, sha: "17e3596d9fa19842925bb697ddd90e9f762be744" },
  { name: "APPEND", script: APPEND, sha: "b9950b4c234070b4f81c2c71d8f63a5c55a89ec4" },
  { name: "TAKE_ROOM", script: TAKE_ROOM, sha: "e3d907796fda7be84cda7b5dad91edf822d1a237" },
])("the script $name of pods is the one that the release before has", ({ script, sha }) => {
  expect(script.sha).toBe(sha);
});
