import { expect, test } from "vitest";
import { masked, responseText } from "./masked.ts";
import { runSteps, type Shell, type Step } from "./page.ts";

const json = (commands: string, text: string): Step => ({ commands, shown: { language: "json", text } });
const shell = (): Shell => ({ variables: {}, printed: "" });

test("a block that prints something else than its page shows is noticed", async () => {
  const [ran] = await runSteps([json(`echo '{"data":{"valid":false}}'`, '{ "data": { "valid": true } }\n')], shell());
  expect(ran?.printed).toBe('{\n  "data": { "valid": false }\n}\n');
  expect(ran?.printed).not.toBe(ran?.shown);
});

test("of a text those lines count that the page shows", async () => {
  const step = {
    commands: "printf 'root  key_1  now\\nother\\n'",
    shown: { language: "text", text: "root key_… now\nno\n" },
  };
  expect(await runSteps([step], shell())).toMatchObject([{ printed: "root key_… now\n(not printed: no)\n" }]);
});

test("a value that ends in … is what was printed last", async () => {
  const steps = [
    { commands: "echo first acme_1abc acme_2\n", shown: undefined },
    { commands: "export KEY=acme_…   # of the answer\nexport URL=http://here\n", shown: undefined },
    json('echo "[\\"$KEY\\", \\"$URL\\"]"\n', ""),
  ];
  const ran = await runSteps(steps, { variables: { URL: "http://there" }, printed: "" });
  expect(ran.map(({ printed }) => JSON.parse(printed))).toEqual([["acme_1abc", "http://there"]]);
  await expect(runSteps([{ commands: "export ID=api_…", shown: undefined }], shell())).rejects.toThrow(
    "nothing like api_…",
  );
});

test("a command that fails fails the page", async () => {
  await expect(runSteps([{ commands: "echo before\nfalse\necho after", shown: undefined }], shell())).rejects.toThrow(
    "false",
  );
});

test("ids, keys and times of an answer are masked, and nothing else", () => {
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

test("an answer is written so that it reads back, what fits on one line", () => {
  const value = { data: { list: [{ a: 1 }, "x".repeat(120), {}], none: null }, meta: {} };
  expect(JSON.parse(responseText(value))).toEqual(value);
  expect(responseText({ data: { a: [1, "b"] } })).toBe('{\n  "data": { "a": [1, "b"] }\n}\n');
});
