import { untilPasses } from "./gate-load.ts";
import { compare } from "./measure.ts";
import { findNginx, MISSING, peersOf } from "./peers/start.ts";
import { contestant, type Section, Started, toFigures } from "./section.ts";

const KINDS = ["copied", "text", "parsed", "heads"] as const;

/**
 * CPU per request of gates that are stripped of more and more (`children/stripped-gate.ts`), and of the gate with its checks off, beside nginx as
 * a bare proxy: what of the gate's cost is Node's, and what is its own. There is nothing to reach but for the last, whose bound is the goal.
 */
export const floor: Section = async (environment, options) => {
  const programs = await findNginx();
  if (programs === undefined) {
    options.progress(`floor: left out, ${MISSING}`);
    return [];
  }
  const nginx = peersOf(programs);
  const started = new Started();
  try {
    const app = await started.add(nginx.app());
    const bare = await started.add(nginx.bare(app));
    const as = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, headers: { authorization: "Bearer key" } }));
    const baseline = as("nginx, bare proxy", bare);
    const policy = await environment.createPolicy("floor", []);
    const unchecked = [app.url, environment.workspaceId, policy];
    const pairs = [];
    for (const kind of KINDS) {
      const gate = await started.add(environment.startChild("stripped-gate.ts", [kind, app.url]));
      await untilPasses(gate.url, {});
      pairs.push({ contestant: as(kind, gate), baseline, max: Number.POSITIVE_INFINITY });
    }
    const gate = await started.add(environment.startChild("unchecked-sidecar.ts", unchecked));
    await untilPasses(gate.url, {});
    pairs.push({ contestant: as("checks off", gate), baseline, max: 1.4 });
    const results = await compare({
      contestants: pairs,
      rounds: options.rounds,
      onRound: (round) => options.progress(`floor: round ${round} of ${options.rounds}`),
    });
    return toFigures(
      results,
      pairs.map(({ max }) => max),
    );
  } finally {
    await started.stop();
  }
};
