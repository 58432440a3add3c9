import { compare } from "./measure.ts";
import { forEachKeyCount, type Section, toFigures } from "./section.ts";
import { verifyKeyLoad } from "./verify-key-load.ts";

/**
 * CPU of `keys.verifyKey` and `ratelimit.limit` per request, compared with Node's own `http`, which answers as many fixed bytes. The bounds
 * are goals.
 */
export const raw: Section = async (environment, options) => {
  const [example] = await environment.keys(1);
  const response = await environment.call("keys.verifyKey", { key: example?.key });
  const meta = { requestId: "req_0000000000000000000000" };
  const node = await environment.startChild("fixed-bytes.ts", [JSON.stringify({ meta, data: response })]);
  try {
    return await forEachKeyCount(options, async (count) => {
      const { verifyPlain, verifyLimited, limit, mixed } = await verifyKeyLoad(environment, options, count);
      const baseline = verifyPlain("node:http, fixed bytes", node);
      const results = await compare({
        contestants: [
          { contestant: verifyPlain("verifyKey", environment.apiServer), baseline },
          { contestant: verifyLimited("verifyKey + strict limit", environment.apiServer), baseline },
          { contestant: limit("ratelimit.limit", environment.apiServer), baseline },
          { contestant: mixed("nine verifyKey, one createKey", environment.apiServer), baseline },
        ],
        rounds: options.rounds,
        onRound: (round) => options.progress(`raw: round ${round} of ${options.rounds}`),
      });
      return toFigures(results, [1.6, undefined, 2.4]);
    });
  } finally {
    await node.stop();
  }
};
