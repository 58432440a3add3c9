import { join, resolve } from "node:path";
import { STRICT, untilKeysPass } from "./gate-load.ts";
import { compare } from "./measure.ts";
import { compareGates, contestant, requestsOf, type Section, toFigures } from "./section.ts";
import { READY_LOG } from "./stack.ts";
import { verifyKeyLoad } from "./verify-key-load.ts";

/** More than this is a regression; on a shared machine even equal code differs by a percent or two. */
const RATIO_MAX = 1.03;

/**
 * CPU per request of this checkout compared with that of another one in `folder`, which has its own dependencies installed: an
 * api-server and two sidecars of each, on the same Postgres and the same Redis, measured alternately. Both must know the same
 * migrations and records.
 */
export const against =
  (folder: string): Section =>
  async (environment, options) => {
    const main = join(resolve(folder), "cli", "main.ts");
    const server = environment.apiServer;
    const otherServer = await environment.start([main, "api-server", "--host", "127.0.0.1", "--port", "0"], READY_LOG);
    const [count = 1] = options.keyCounts;
    const { plain, verifyPlain, verifyLimited, limit, mixed } = await verifyKeyLoad(environment, options, count);
    const pair = (name: string, as: typeof mixed) => ({
      contestant: as(name, server),
      baseline: as("the other's", otherServer),
    });
    const verifications = await compare({
      contestants: [
        pair("verifyKey", verifyPlain),
        pair("verifyKey + strict limit", verifyLimited),
        pair("ratelimit.limit", limit),
        pair("nine verifyKey, one createKey", mixed),
      ],
      rounds: options.rounds,
      onRound: (round) => options.progress(`verifyKey against ${folder}: round ${round} of ${options.rounds}`),
    });
    await otherServer.stop();

    const as = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, requests: requestsOf(plain) }));
    const policies = [
      { name: "verified key", policyId: await environment.createPolicy("verified", []) },
      { name: "key + strict limit", policyId: await environment.createPolicy("limited", [STRICT]) },
    ];
    const pairs = await Promise.all(
      policies.map(async ({ name, policyId }) => {
        const [mine, other] = [
          await environment.startSidecar(policyId),
          await environment.startSidecar(policyId, [main, "sidecar"]),
        ];
        for (const { url } of [mine, other]) await untilKeysPass(url, plain);
        return { contestant: as(name, mine), baseline: as("the other's", other), running: [mine, other] };
      }),
    );
    const proxied = await compareGates(environment, options, `proxy against ${folder}`, pairs);
    for (const { running } of pairs) for (const one of running) await one.stop();

    const results = [...verifications, ...proxied];
    return toFigures(
      results,
      results.map(() => RATIO_MAX),
    );
  };
