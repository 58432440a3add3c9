import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Part, Recipe } from "./recipe.ts";

/* `ApiKeyPolicy.spec.realm`: what the gate calls itself in `WWW-Authenticate`. */

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "add-a-manifest-field", name), "utf8");

const JUDGE = "sidecar/decision/evaluate-head.ts";
const POLICY = "core/policies/policy.ts";
const CRD = "crds/postern.dev_apikeypolicies.yaml";
const GENERATED = "scripts/generate.test.ts";
const RECORDS = "test/contracts/records/records.test.ts";

const inPolicy: Part = {
  step: 2,
  file: POLICY,
  after: '    apiId: z.string().min(1).max(255).describe("Id of the API whose keys are accepted."),\n',
  text: '    realm: z.string().min(1).max(64).default("postern").describe("What the gate calls itself."),\n',
};

export const addAManifestField: Recipe = {
  heading: "Add a field to a manifest",
  parts: [
    {
      step: 1,
      file: "core/manifests/api-key-policy.ts",
      after: "    selector: Selector.optional(),\n",
      text: `    realm: z
      .string()
      .min(1)
      .max(64)
      .regex(/^[ !#-[\\]-~]*$/, { error: "expected visible ASCII without quotes and backslashes" })
      .default("postern")
      .describe("What the gate calls itself when it asks for a key."),
`,
    },
    inPolicy,
    {
      step: 2,
      file: "core/manifests/compile-policy.ts",
      after: "    mode: spec.mode,\n",
      text: "    realm: spec.realm,\n",
    },
    {
      step: 2,
      file: "core/manifests/from-store/policy-spec.ts",
      after: '    ...(mode === "Enforce" ? {} : { mode }),\n',
      text: '    ...(policy.realm === "postern" ? {} : { realm: policy.realm }),\n',
    },
    { step: 2, file: "api-server/test/references.ts", after: '  ...["exact", ', text: '"realm", ' },
    {
      step: 4,
      file: "sidecar/decision/problems.ts",
      after: 'import type { Problem } from "../http/responses.ts";\n',
      text: `
/** The same problem; a challenge in it names this realm. */
export function inRealm(problem: Problem, realm: string): Problem {
  const { authenticate } = problem;
  if (authenticate === undefined) return problem;
  return { ...problem, authenticate: authenticate.replace('"postern"', \`"\${realm}"\`) };
}
`,
    },
    { step: 4, file: JUDGE, after: "  duplicateKeyProblem,\n  ", text: "inRealm,\n  " },
    {
      step: 4,
      file: JUDGE,
      instead: "missingKeyProblem, admitted)",
      text: "inRealm(missingKeyProblem, active.policy.realm), admitted)",
    },
    {
      step: 4,
      file: JUDGE,
      instead: "problem: problemOf(verdict),",
      text: "problem: inRealm(problemOf(verdict), policy.realm),",
    },
    { step: 2, file: POLICY, after: '        apiId: "api_9xKp3Rt6VwY1zAbC",\n', text: '        realm: "postern",\n' },
    {
      step: 5,
      file: "core/manifests/check.test.ts",
      after: '      onCreditFailure: "Deny",\n',
      text: '      realm: "postern",\n',
    },
    {
      step: 5,
      file: "core/manifests/compile-policy.test.ts",
      after:
        '      clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"] },\n      allowPaths: ["Semicolon"],\n',
      text: '      realm: "postern",\n',
    },
    {
      step: 5,
      file: "core/policies/policy-format.test.ts",
      after: '  formatVersion: 2,\n  apiId: "api_1",\n',
      text: '  realm: "postern",\n',
    },
    {
      step: 5,
      file: "core/policies/stored-policy.test.ts",
      after: '  apiId: "api_1",\n  mode: "Audit",\n',
      text: '  realm: "orders",\n',
    },
    {
      step: 5,
      file: "core/policies/stored-policy.test.ts",
      after: "  const DEFAULTS: Readonly<Record<string, unknown>> = {\n",
      text: '    realm: "postern",\n',
    },
    {
      step: 5,
      file: "core/manifests/from-store/yaml-text.test.ts",
      after: 'const POLICY: CompiledPolicy = {\n  formatVersion: 1,\n  apiId: "api_12345678",\n',
      text: '  realm: "orders",\n',
    },
    { step: 5, file: "core/manifests/realm.test.ts", text: fixture("manifest.test.ts.txt") },
    { step: 5, file: "sidecar/decision/realm.test.ts", text: fixture("sidecar.test.ts.txt") },
  ],
  notTaken: { 3: "is run for all recipes" },
  lists: ["core/manifests", "core/policies", "sidecar/decision/realm.test.ts", RECORDS, GENERATED],
  about: { words: [], files: [] },
  omissions: [
    {
      what: "generating",
      leaveOut: (copy) => copy.restore(CRD),
      noticedBy: { file: GENERATED, says: new RegExp(CRD) },
    },
    {
      what: "the default for policies that are stored",
      leaveOut: (copy) => copy.replace(POLICY, inPolicy.text, inPolicy.text.replace(/.default\(.*?\)/, "")),
      noticedBy: { file: RECORDS, says: /realm/ },
    },
  ],
};
