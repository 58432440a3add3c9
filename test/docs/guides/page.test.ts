import { expect, test } from "vitest";
import { masked, responseText } from "./masked.ts";
import { runSteps, type Shell, type Step } from "./page.ts";

const json = (commands: string, text: string): Step => ({ commands, shown: { language: "json", text } });
const shell = (): Shell => ({ variables: {}, printed: "" });

test("page runner detects a block whose output differs from the page", async () => {
  const [ran] = await runSteps([json(`echo '{"data":{"valid":false}}'`, '{ "data": { "valid": true } }\n')], shell());
  expect(ran?.printed).toBe('{\n  "data": { "valid": false }\n}\n');
  expect(ran?.printed).not.toBe(ran?.shown);
});

test("page runner checks the output lines that the page shows", async () => {
  const step = {
    commands: "printf 'root  key_1  now\\nother\\n'",
    shown: { language: "text", text: "root key_… now\nno\n" },
  };
  expect(await runSteps([step], shell())).toMatchObject([{ printed: "root key_… now\n(not printed: no)\n" }]);
});

test("page runner replaces a value that ends in … with the one from the last output, and omits meta", async () => {
  const steps = [
    { commands: "echo first acme_1abc acme_2\n", shown: undefined },
    { commands: "export KEY=acme_…   # of the answer\nexport URL=http://here\n", shown: undefined },
    json('echo "{ \\"data\\": [\\"$KEY\\", \\"$URL\\"], \\"meta\\": {} }"\n', ""),
  ];
  const ran = await runSteps(steps, { variables: { URL: "http://there" }, printed: "" });
  expect(ran.map(({ printed }) => JSON.parse(printed))).toEqual([{ data: ["acme_1abc", "http://there"] }]);
  await expect(runSteps([{ commands: "export ID=api_…", shown: undefined }], shell())).rejects.toThrow(
    "nothing like api_…",
  );
});

test("page runner fails a page whose command fails", async () => {
  await expect(runSteps([{ commands: "echo before\nfalse\necho after", shown: undefined }], shell())).rejects.toThrow(
    "false",
  );
});

test("page runner masks only ids, keys and times", () => {
  const nowMs = 1_700_000_000_000;
  const response = {
    keyId: "key_iF4wrqAXIPSesam4",
    key: "acme_live_M8i9KjsDMvT6Lt63fQQcA1",
    start: "acme_live_M8i9",
    name: "key_short",
    expires: 4_102_444_800_000,
    reset: nowMs + 3_600_000,
    limits: [{ remaining: 9, createdAt: nowMs - 1 }, null],
  };
  expect(masked(response, nowMs)).toEqual({
    keyId: "key_…",
    key: "acme_live_…",
    start: "acme_live_…",
    name: "key_short",
    expires: 4_102_444_800_000,
    reset: 1_795_000_000_000,
    limits: [{ remaining: 9, createdAt: 1_795_000_000_000 }, null],
  });
});

test("page runner formats short responses on one line that can be parsed again", () => {
  const value = { data: { list: [{ a: 1 }, "x".repeat(120), {}], none: null }, meta: {} };
  expect(JSON.parse(responseText(value))).toEqual(value);
  expect(responseText({ data: { a: [1, "b"] } })).toBe('{\n  "data": { "a": [1, "b"] }\n}\n');
});
