import { startOwnRedis } from "../harness/redis.ts";
import { startSidecar } from "./environment.ts";
import { STRICT, untilKeysPass, untilPasses, untilStatus } from "./gate-load.ts";
import { findNginx, MISSING, peersOf } from "./peers/start.ts";
import { storeKeys } from "./peers/store-keys.ts";
import { compareGates, contestant, forEachKeyCount, requestsOf, type Section, Started, toFigures } from "./section.ts";

/**
 * CPU of the sidecar per request, beside what a user would take in its place: nginx of Debian's packages, in front of the same app,
 * with the same connections and one worker process. The bounds are goals.
 */
export const peers: Section = async (environment, options) => {
  const programs = await findNginx();
  if (programs === undefined) {
    options.progress(`peers: left out, ${MISSING}`);
    return [];
  }
  const nginx = peersOf(programs);
  const keys = await environment.keys(Math.max(...options.keyCounts));
  const authorization = { authorization: `Bearer ${keys[0]?.key}` };
  const started = new Started();
  try {
    const redis = await started.add(startOwnRedis());
    await storeKeys(redis.url, keys);
    const app = await started.add(nginx.app());
    const guarded = async (name: string, ratelimits: Parameters<typeof environment.createPolicy>[1]) =>
      started.add(
        startSidecar(environment, { policyId: await environment.createPolicy(name, ratelimits), upstream: app }),
      );
    const verified = await guarded("peers-verified", []);
    const limited = await guarded("peers-limited", [STRICT]);
    const plainPolicy = await environment.createPolicy("peers-unchecked", []);
    const unchecked = await started.add(
      environment.startChild("unchecked-sidecar.ts", [app.url, environment.workspaceId, plainPolicy]),
    );
    const [bare, map] = [await started.add(nginx.bare(app)), await started.add(nginx.map(app, keys))];
    const lua = await started.add(nginx.lua(app, redis.url));
    const checking = [verified, limited, map, lua];
    for (const { url } of [...checking, unchecked, bare]) await untilPasses(url, authorization);
    for (const { url } of checking) await untilStatus(url, { authorization: "Bearer unknown" }, 401);
    await untilKeysPass(verified.url, keys);

    return await forEachKeyCount(options, async (count) => {
      const requests = requestsOf(keys.slice(0, count));
      const as = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, requests }));
      const pairs = [
        { contestant: as("key + strict limit", limited), baseline: as("nginx + lua + Redis", lua), max: 0.85 },
        { contestant: as("verified key", verified), baseline: as("nginx with map and limit_req", map), max: 1.8 },
        { contestant: as("checks off", unchecked), baseline: as("nginx, bare proxy", bare), max: 1.4 },
      ];
      const results = await compareGates(environment, options, "peers", pairs);
      return toFigures(
        results,
        pairs.map(({ max }) => max),
      );
    });
  } finally {
    await started.stop();
  }
};
