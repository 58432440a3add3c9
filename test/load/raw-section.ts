import { compare } from "./measure.ts";
import { type Section, toFigures } from "./section.ts";
import { verifyKeyLoad } from "./verify-key-load.ts";

/**
 * CPU of `keys.verifyKey` per request, compared with the least that a server in JavaScript can do: it parses the head and answers fixed
 * bytes, as many as a verification's answer. The bounds are goals.
 */
export const raw: Section = async (environment, options) => {
  const { plain, limited, verify } = await verifyKeyLoad(environment, options);
  const response = await environment.call("keys.verifyKey", { key: plain[0]?.key });
  const meta = { requestId: "req_0000000000000000000000" };
  const server = await environment.startChild("raw-server.ts", [JSON.stringify({ meta, data: response })]);
  try {
    const baseline = verify(plain)("fixed bytes", server);
    const results = await compare({
      contestants: [
        { contestant: verify(plain)("verifyKey", environment.apiServer), baseline },
        { contestant: verify(limited)("verifyKey + strict limit", environment.apiServer), baseline },
      ],
      rounds: options.rounds,
      onRound: (round) => options.progress(`raw: round ${round} of ${options.rounds}`),
    });
    return toFigures(results, [1.6, 2.6]);
  } finally {
    await server.stop();
  }
};
