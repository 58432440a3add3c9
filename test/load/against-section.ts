import { join, resolve } from "node:path";
import { STRICT, untilPasses } from "./gate-load.ts";
import { compare } from "./measure.ts";
import { compareGates, contestant, type Section, toFigures } from "./section.ts";
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
    const { plain, limited, verify, mixed } = await verifyKeyLoad(environment, options);
    const verifications = await compare({
      contestants: [
        {
          contestant: verify(plain)("verifyKey", server),
          baseline: verify(plain)("the other's", otherServer),
        },
        {
          contestant: verify(limited)("verifyKey + strict limit", server),
          baseline: verify(limited)("the other's", otherServer),
        },
        { contestant: mixed("nine verifyKey, one createKey", server), baseline: mixed("the other's", otherServer) },
      ],
      rounds: options.rounds,
      onRound: (round) => options.progress(`verifyKey against ${folder}: round ${round} of ${options.rounds}`),
    });
    await otherServer.stop();

    const authorization = { authorization: `Bearer ${plain[0]?.key}` };
    const as = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, headers: authorization }));
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
        for (const { url } of [mine, other]) await untilPasses(url, authorization);
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
