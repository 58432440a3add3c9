import * as z from "zod";
import { describeInstallation } from "../../domain/installation/describe.ts";
import type { UnavailableSince } from "../../domain/installation/part.ts";
import { onInstallation } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { unixMs } from "../schemas.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const Part = z.strictObject({
  part: z
    .string()
    .describe(
      "`postgres`, `redis`, `relay`, `projection`, `events`, `usage`, `api-servers`, `sidecars`, `encryption`, `certificate` or `retention`.",
    )
    .meta({ examples: ["postgres"] }),
  state: z
    .enum(["ok", "warn", "away", "off"])
    .describe("State of the component. `away`: it did not respond in time. `off`: this installation does not use it."),
  problem: z
    .string()
    .optional()
    .describe("Description of the problem.")
    .meta({ examples: ["Nearly all connections are in use."] }),
  help: z
    .string()
    .optional()
    .describe("Documentation page about the problem.")
    .meta({ examples: ["docs/sizing.md"] }),
  unavailableSince: unixMs("Since when this api-server has seen the component as `away`, Unix ms.").optional(),
  facts: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .describe("Details of the component. The suffix of a name is its unit: `Bytes`, `Ms`, `At` (Unix ms), `Days`.")
    .meta({ examples: [{ version: "18.4", sizeBytes: 104_857_600 }] }),
});

const Data = z.strictObject({
  now: unixMs("Time of this report, Unix ms."),
  parts: z.array(Part).describe("Components of the installation, in the order in which a change passes through them."),
});
type Data = z.input<typeof Data>;

const required = { readInstallation: onInstallation("read_installation") };

/** Time at which this process first saw each unavailable component fail to respond. */
const away: UnavailableSince = new Map();

export const getInstallation = defineProcedure({
  path: "admin.getInstallation",
  effect: "read",
  summary: "Describe the installation",
  description:
    "Returns versions, sizes, lags and problems, by component. Each component has its own deadline, so an unreachable database does not make the call fail. The api-server that responds describes only itself; of the others, only the number is known.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.readInstallation);
  const { deps } = call;
  const parts = await describeInstallation(deps, away);
  return { now: deps.nowMs(), parts: parts.map((part) => ({ ...part, facts: { ...part.facts } })) };
}
