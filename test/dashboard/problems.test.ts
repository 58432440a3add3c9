import type { BrowserContext, Locator, Page } from "playwright-core";
import { describe, expect } from "vitest";
import { inDatabase } from "./database.ts";
import { EVERY_PAGE } from "./every-page.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { type Made, makeObjects } from "./window-objects.ts";

/*
 * On every page, a lost connection, rights that were taken and a session that has ended, while something is typed: each says what to do, nothing
 * that was typed is lost, and it goes on as soon as the trouble is over.
 */

const test = dashboardTest();
let made: Made;
test.beforeAll(async ({ dashboard }) => {
  let count = 0;
  made = await makeObjects(dashboard, (what, lengthMax) => `${what} in trouble ${++count}`.slice(0, lengthMax));
});

interface Typing {
  /** As the route says it. */
  readonly route: string;
  /** The address, where it is another. */
  readonly at?: (made: Made) => string;
  /** Opens the form. */
  readonly begin?: (page: Page) => Promise<void>;
  /** Opens the popup that the field stands in. */
  readonly unfold?: (page: Page) => Promise<void>;
  /** What is typed into; none on a page that asks by itself. */
  readonly field?: (page: Page) => Locator;
  /** What stands in it at first, and what is typed each time, where these texts would not do. */
  readonly typed?: readonly [first: string, more: string];
  /** What else the form needs. */
  readonly more?: (page: Page) => Promise<void>;
  /** What sends it; a filter asks as soon as something is typed. */
  readonly send?: string;
}

const press = (name: string) => (page: Page) => page.getByRole("button", { name, exact: true }).click();
const inDialog = (label: string) => (page: Page) => page.getByRole("dialog").getByLabel(label, { exact: true }).first();
const labelled = (label: string) => (page: Page) => page.getByLabel(label, { exact: true });

const TYPINGS: readonly Typing[] = [
  {
    route: "/root-keys",
    begin: press("Create a root key"),
    field: inDialog("Name"),
    more: async (page) => {
      await page.getByLabel("Which").click();
      await page.getByRole("option", { name: "All APIs" }).click();
      await page.getByRole("checkbox", { name: "create api" }).check();
    },
    send: "Create",
  },
  { route: "/apis", begin: press("Create an API"), field: inDialog("Name"), send: "Create" },
  {
    route: "/apis/$apiId",
    at: ({ apiId }) => `/apis/${apiId}`,
    begin: press("Rename"),
    field: inDialog("Name"),
    send: "Rename",
  },
  {
    route: "/keys",
    at: ({ apiId }) => `/keys?api=${apiId}`,
    begin: press("Create a key"),
    field: inDialog("Name"),
    send: "Create",
  },
  {
    route: "/keys/$keyId",
    at: ({ keyId }) => `/keys/${keyId}`,
    begin: press("Change"),
    field: inDialog("Name"),
    send: "Save",
  },
  { route: "/identities", begin: press("Create an identity"), field: inDialog("External id"), send: "Create" },
  {
    route: "/identities/$identityId",
    at: ({ identityId }) => `/identities/${identityId}`,
    begin: press("Change"),
    field: inDialog("Limit name"),
    send: "Save",
  },
  { route: "/permissions", begin: press("Create a role"), field: inDialog("Name"), send: "Create" },
  { route: "/ratelimits", begin: press("Create a namespace"), field: inDialog("Name"), send: "Create" },
  {
    route: "/ratelimits/$namespaceId",
    at: ({ namespaceId }) => `/ratelimits/${namespaceId}`,
    begin: press("Set an override"),
    field: inDialog("Limit"),
    typed: ["5", "1"],
    more: (page) => inDialog("Identifier")(page).fill("typed"),
    send: "Save",
  },
  { route: "/usage", unfold: press("Filters"), field: labelled("Owner") },
  { route: "/requests", unfold: press("Filters"), field: labelled("Owner") },
  { route: "/usage/sql", field: (page) => page.locator(".cm-content"), send: "Run" },
  { route: "/policies", field: labelled("Name contains") },
  { route: "/policies/$policyId", at: ({ policyId }) => `/policies/${policyId}` },
  {
    route: "/explain",
    at: ({ keyId }) => `/explain?keyId=${keyId}`,
    field: labelled("Required permissions"),
    send: "Explain",
  },
  { route: "/audit", unfold: press("Filters"), field: labelled("Object id") },
  {
    route: "/people",
    begin: press("Create a sign-in link"),
    field: inDialog("Name of the person"),
    send: "Create",
  },
  {
    route: "/settings",
    begin: press("Change the quota"),
    field: inDialog("Requests per minute"),
    typed: ["9", "1"],
    send: "Save",
  },
  { route: "/workspaces", begin: press("Create a workspace"), field: inDialog("Name"), send: "Create" },
  { route: "/" },
  { route: "/installation" },
];

interface Trouble {
  readonly name: string;
  /** What the page says: of the attempt, or of all that it shows. */
  readonly says: RegExp;
  /** A link leads to signing in without leaving the page. */
  readonly hasWayIn?: boolean;
  /** Of the browser's console. */
  readonly fault: RegExp;
  /** Returns what ends it. */
  readonly begin: (where: {
    dashboard: Dashboard;
    context: BrowserContext;
    isForm: boolean;
  }) => Promise<() => Promise<unknown>>;
}

const isApi = (url: URL): boolean => /^\/(v2|dashboard\/session)/.test(url.pathname);

/** Runs a statement on the sessions; they are again as they were when it is over. */
async function changeSessions(dashboard: Dashboard, text: string): Promise<() => Promise<unknown>> {
  const rows = await inDatabase(dashboard, "select to_jsonb(s) as session from sessions s");
  await inDatabase(dashboard, text);
  return async () => {
    await inDatabase(dashboard, "delete from sessions");
    for (const { session } of rows) {
      const insert = "insert into sessions select * from jsonb_populate_record(null::sessions, $1)";
      await inDatabase(dashboard, insert, [JSON.stringify(session)]);
    }
  };
}

const TROUBLES: readonly Trouble[] = [
  {
    name: "the connection is lost",
    says: /Check the connection to the server, then try again|The server has not responded since/,
    fault: /ERR_FAILED/,
    begin: async ({ context }) => {
      await context.route(isApi, (route) => route.abort());
      return () => context.unroute(isApi);
    },
  },
  {
    name: "the rights were taken",
    says: /An admin of the workspace can assign you a role/,
    fault: /\b403\b/,
    // A viewer may read all pages but one; who may do nothing may not read them either.
    begin: ({ dashboard, isForm }) => {
      const roles = isForm ? `[{"workspace": "*", "role": "viewer"}]` : "[]";
      return changeSessions(dashboard, `update sessions set roles = '${roles}'`);
    },
  },
  {
    name: "the session has ended",
    says: /Your session has ended: sign in again\. The page keeps your input/,
    hasWayIn: true,
    fault: /\b401\b/,
    begin: ({ dashboard }) => changeSessions(dashboard, "delete from sessions"),
  },
];

const textOf = (field: Locator): Promise<string> =>
  field.evaluate((element) => (element as HTMLInputElement).value ?? element.textContent ?? "");

describe("a page during a failure", () => {
  test.for(TYPINGS)(
    "dashboard page shows advice, keeps input and recovers: $route",
    async (typing, { dashboard, open, context, faults }) => {
      const { route, at, begin, unfold, more, send, typed: [first, letter] = ["typed-", "x"] } = typing;
      const page = await open(at?.(made) ?? route);
      await begin?.(page);
      await unfold?.(page);
      const field = typing.field?.(page);
      const go = async (): Promise<void> => {
        await field?.focus();
        await page.keyboard.press("Control+End");
        if (field !== undefined) await page.keyboard.type(letter);
        if (send !== undefined) await press(send)(page);
      };
      if (field !== undefined && send !== undefined && begin !== undefined) await field.fill(first);
      await more?.(page);
      for (const problem of TROUBLES) {
        faults.expect(problem.fault);
        const end = await problem.begin({ dashboard, context, isForm: begin !== undefined });
        try {
          const before = field === undefined ? "" : await textOf(field);
          await go();
          await (begin === undefined ? page : page.getByRole("dialog")).getByText(problem.says).first().waitFor();
          if (problem.hasWayIn)
            await page
              .getByRole("link", { name: /[Ss]ign in.* in another tab/ })
              .first()
              .waitFor();
          if (field !== undefined) expect(await textOf(field), problem.name).toBe(`${before}${letter}`);
        } finally {
          await end();
        }
      }
      if (begin !== undefined) {
        await go();
        const form = page
          .getByRole("dialog")
          .filter({ has: page.getByRole("button", { name: send ?? "", exact: true }) });
        await form.waitFor({ state: "hidden" });
      }
    },
  );

  test("failure tests cover every page of the navigation", () => {
    const tried = TYPINGS.map(({ route }) => route);
    expect(EVERY_PAGE.filter((path) => !tried.includes(path))).toEqual([]);
  });
});
