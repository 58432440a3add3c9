import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Pool } from "pg";
import { expect } from "vitest";
import { type Ask, makeResources, type Resources } from "../../api-server/test/resources.ts";
import { SAMPLE_CALLS } from "../../api-server/test/sample-calls.ts";
import { expectHarmless } from "./harmless.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { type TextField, textFields, withText } from "./text-fields.ts";

/*
 * A caller with a root key can store texts that people then look at. Every text field of every procedure that stores something gets hostile
 * ones, and then every page of the dashboard is visited: no script of theirs runs, and none of them breaks a page. windows-of-*.test.ts test
 * dialogs, drawers and menus in the same way.
 */

const test = dashboardTest();

/** Sets a mark that no page has, asks a person something, or goes elsewhere. `N` is a number that tells texts apart. */
const HOSTILE: readonly string[] = [
  "<img src=x onerror=hacked=N>",
  '"><script>hacked=N</script>',
  "</script><script>hacked=N</script>",
  "'-alert(N)-'",
  "javascript:alert(N)",
  "data:text/html,<script>alert(N)</script>",
  "{{constructor.constructor('hacked=N')()}}#{hacked=N}<%=hacked=N%>",
  "<svg/onload=hacked=N><style>*{display:none}</style>",
  "\u202Edrow\u202C\u2066N\u200B\u200D\uFEFF\u0301\u0301\u0301\u0301",
  `N${"W".repeat(10_000)}`,
];

const REFUSALS_MAX = 3;

let made = 0;

/** No two texts are equal, because many names must be unique. Cut to what the field takes. */
function hostileText(text: string, lengthMax: number): string {
  made += 1;
  return text.replaceAll("N", String(made)).slice(0, lengthMax);
}

const ROOT = resolve(import.meta.dirname, "../..");

/** The addresses of the pages, as their routes say them. */
function routesOfTheApp(): string[] {
  const router = readFileSync(join(ROOT, "dashboard/router.tsx"), "utf8");
  const paths = [...router.matchAll(/path: "([^"]+)"/g)].map(([, path = ""]) => path);
  return paths.filter((path) => path !== "/").sort();
}

/** Ids of what is shown, for the parameters of addresses: a new one must be added here. */
async function addressOf(route: string, resources: Resources): Promise<string> {
  const parameters: Record<string, () => Promise<string>> = {
    namespaceId: async () => (await resources.override()).namespaceId,
    apiId: async () => (await resources.key()).apiId,
    keyId: async () => (await resources.key()).keyId,
    identityId: async () => (await resources.identity()).identityId,
    policyId: async () => (await resources.policy()).policyId,
  };
  let address = route;
  for (const [whole, name = ""] of route.matchAll(/\$(\w+)/g)) {
    const make = parameters[name];
    if (make === undefined) throw new Error(`say in test/dashboard/xss.test.ts what $${name} of ${route} is`);
    address = address.replace(whole, await make());
  }
  return address;
}

interface Tried {
  /** By `<path> <field>`: how many hostile texts were stored, or refused. */
  readonly accepted: Map<string, number>;
  readonly refused: Map<string, number>;
}

/** Sets every field to every hostile text, one at a time, each time with objects of its own. */
async function storeHostileTexts({ url, rootKey }: Dashboard, resources: Resources): Promise<Tried> {
  const tried: Tried = { accepted: new Map(), refused: new Map() };
  const note = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  const call = (path: string, body: unknown) =>
    fetch(`${url}/v2/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${rootKey}`,
        "content-type": "application/json",
        // Kept with every change.
        "user-agent": '<img src=x onerror=hacked=1>"><script>hacked=2</script>',
      },
      body: JSON.stringify(body),
    });
  for (const { path, field, lengthMax } of textFields()) {
    const makers = Object.values(SAMPLE_CALLS[path] ?? {});
    const name = `${path} ${field}`;
    for (const text of HOSTILE) {
      // A field that takes none of the first ones takes no free text at all.
      if (!tried.accepted.has(name) && (tried.refused.get(name) ?? 0) >= REFUSALS_MAX) break;
      let isPlaced = false;
      for (const make of makers) {
        const { body } = await make(resources);
        const hostile = withText(withField(body, field), field, hostileText(text, lengthMax));
        if (hostile === undefined) continue;
        isPlaced = true;
        const { status } = await call(path, hostile);
        expect(status, `${path} ${field} ${text}`).toBeLessThan(500);
        note(status === 200 ? tried.accepted : tried.refused, name);
        if (status === 200) break;
      }
      if (!isPlaced) note(tried.refused, name);
    }
  }
  return tried;
}

/** Their names have a pattern, and stand on every page: what the schema refuses is stored all the same. `default` stays the first of them. */
async function nameWorkspaces(pool: Pool): Promise<void> {
  for (const [at, text] of HOSTILE.entries()) {
    const values = [`ws_hostile${at}`, `z ${hostileText(text, 2000)}`];
    await pool.query("insert into workspaces (id, name, created_at) values ($1, $2, 0)", values);
  }
}

/** A body in which what the field is in is there, also where it may be left out. */
function withField(body: unknown, field: string): unknown {
  const copy = structuredClone(body) as Record<string, unknown> & { keys?: Record<string, unknown>[]; policy?: object };
  if (field.startsWith("ratelimits[]")) copy.ratelimits = [A_LIMIT];
  if (field.startsWith("keys[].ratelimits[]")) for (const key of copy.keys ?? []) key.ratelimits = [A_LIMIT];
  // A header's name has a pattern.
  if (field.startsWith("policy.credentials[].name")) {
    copy.policy = { ...copy.policy, credentials: [{ in: "query", name: "key" }] };
  }
  if (field.startsWith("policy.rules[]")) copy.policy = { ...copy.policy, formatVersion: 2, rules: [A_RULE] };
  if (field.startsWith("policy.clientAddress")) {
    copy.policy = { ...copy.policy, clientAddress: { from: "forwardedFor", trustedProxies: [""] } };
  }
  const [outer = "", inner] = field.replace(/\{\}$/, "").split(/\.|(?=\[\])/);
  if (inner !== undefined && copy[outer] === undefined) copy[outer] = inner === "[]" ? [""] : {};
  return copy;
}

const A_LIMIT = { name: "requests", limit: 5, duration: 60_000 };
const A_RULE = {
  name: "rule",
  hosts: ["a.test"],
  headers: [{ name: "X-A", exact: "1" }],
  access: "Key",
  creditCost: 1,
  path: { prefix: "/" },
  ratelimits: [
    {
      scope: { kind: "name", name: "requests" },
      identifier: "key",
      limit: 5,
      durationMs: 60_000,
      cost: 1,
      accuracy: "strict",
    },
  ],
};

/** Fields with a strict schema of their own, whose texts are those of the procedures that store the same objects; and addresses. */
const STRICT: ReadonlySet<string> = new Set(["managed.applyObject spec{}", "apis.updateApi ipAllowList[]"]);

/** Fields that name an object, which must exist. Of the others only those take no hostile text whose schema has a pattern. */
const NAMES =
  /(?:^|\.|\])(?:\w*[iI]d|key|hash|keys|roles|role|permission|permissions|identity|namespace|manager|cursor|expected|identifier|\w*Ids)(?:\[\])?$/;

test("stored text of an API caller never runs as a script", { timeout: 900_000 }, async ({
  dashboard,
  open,
  context,
  faults,
}) => {
  const pool = new Pool({ connectionString: dashboard.databaseUrl, max: 2 });
  try {
    const { id: workspaceId } = await dashboard.call("workspaces.getWorkspace", {});
    const resources = makeResources(pool, { workspaceId, ask: dashboard.call as Ask });
    const { accepted } = await storeHostileTexts(dashboard, resources);
    await nameWorkspaces(pool);
    const fields: readonly TextField[] = textFields();
    const untouched = fields
      .filter(
        ({ path, field, pattern }) => !accepted.has(`${path} ${field}`) && pattern === undefined && !NAMES.test(field),
      )
      .map(({ path, field }) => `${path} ${field}`)
      .filter((name) => !STRICT.has(name));
    expect(untouched).toEqual([]);
    expect(accepted.size).toBeGreaterThan(20);

    const page = await open("/installation");
    const dialogs: string[] = [];
    context.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    // Of what the texts name, nothing is there.
    faults.expect(/status of 4\d\d/);
    const routes = routesOfTheApp();
    expect(routes).toContain("/permissions");
    for (const route of routes) {
      const address = await addressOf(route, resources);
      for (const width of [1280, 375]) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(`${dashboard.url}/dashboard${address}`);
        await page.locator("main h1").first().waitFor();
        await expectHarmless(page, `${address} at ${width} px`);
        const rows = page.locator('[role="row"][tabindex]');
        for (let at = 0; at < Math.min(width > 1000 ? 2 : 0, await rows.count()); at += 1) {
          await rows.nth(at).click({ position: { x: 4, y: 4 } });
          await expectHarmless(page, `row ${at} of ${address} at ${width} px`);
          await page.keyboard.press("Escape");
          if (new URL(page.url()).pathname !== `/dashboard${address}`)
            await page.goto(`${dashboard.url}/dashboard${address}`);
        }
      }
    }
    expect(dialogs).toEqual([]);
  } finally {
    await pool.end();
  }
});

test("toast and error message show entered scripts as text", async ({ open, faults }) => {
  faults.expect(/409/);
  const page = await open("/permissions");
  const name = hostileText(HOSTILE.slice(0, 3).join(""), 128);
  for (const says of [`Role ${name} created.`, "failed."]) {
    await page.getByRole("button", { name: "Create a role" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(name);
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText(says).waitFor();
    await expectHarmless(page, says);
  }
});
