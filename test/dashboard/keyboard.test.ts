import type { Page } from "playwright-core";
import { expect } from "vitest";
import { EVERY_PAGE } from "./every-page.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { tabTo } from "./keyboard.ts";
import { type Made, makeObjects } from "./window-objects.ts";

/*
 * What people come to each page for, done by keys alone from the moment at which the address is entered: nothing is clicked, filled in or given the
 * focus by the test. That windows keep and give back the focus is in windows-of-*.test.ts, that Tab reaches everything in sweep.test.ts.
 */

const test = dashboardTest();
let made: Made;
test.beforeAll(async ({ dashboard }) => {
  let count = 0;
  made = await makeObjects(dashboard, (what, lengthMax) => `${what} by keys ${++count}`.slice(0, lengthMax));
});

interface Doing {
  readonly route: string;
  /** The address, where it is another. */
  readonly at?: (made: Made) => string;
  readonly does: string;
  readonly act: (hands: Hands, dashboard: Dashboard, made: Made) => Promise<void>;
}

/** A person without a mouse. */
interface Hands {
  readonly page: Page;
  readonly toButton: (name: string, press?: "Tab" | "Shift+Tab") => Promise<void>;
  readonly toField: (label: string) => Promise<void>;
  readonly press: (...keys: readonly string[]) => Promise<void>;
  readonly type: (text: string) => Promise<void>;
}

const handsOn = (page: Page): Hands => ({
  page,
  toButton: (name, press) => tabTo(page, page.getByRole("button", { name, exact: true }).last(), press),
  toField: (label) => tabTo(page, page.getByLabel(label, { exact: true }).first()),
  press: async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  },
  type: (text) => page.keyboard.type(text),
});

/** The window is closed, and has given the focus back: a key that comes before would go elsewhere. */
async function gone(page: Page): Promise<void> {
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.locator(":focus").waitFor();
}

const heading = (page: Page, name: string | RegExp): Promise<void> =>
  page.getByRole("heading", { name }).first().waitFor();

const DOINGS: readonly Doing[] = [
  {
    route: "/root-keys",
    does: "makes a root key with one permission",
    act: async ({ page, toButton, toField, press, type }, { call }) => {
      await toButton("Create a root key");
      await press("Enter");
      await toField("Name");
      await type("made by keys");
      await tabTo(page, page.getByRole("combobox", { name: "Which" }));
      await press("ArrowDown");
      await page.locator("[role=option][data-highlighted]").getByText("All APIs").waitFor();
      await press("Tab");
      await tabTo(page, page.getByRole("checkbox", { name: "create api" }));
      await press("Space");
      await toButton("Create");
      await press("Enter");
      await page.getByText("The key is shown only once").waitFor();
      await toButton("Close");
      await press("Enter");
      await gone(page);
      expect(await call("admin.listRootKeys", { search: "made by keys" })).toMatchObject([
        { permissions: ["api.*.create_api"] },
      ]);
    },
  },
  {
    route: "/apis",
    does: "makes an API, and opens the menu of one",
    act: async ({ page, toButton, toField, press, type }) => {
      await toButton("Create an API");
      await press("Enter");
      await toField("Name");
      await type("made without a mouse");
      await press("Enter");
      await gone(page);
      await page.getByRole("link", { name: "made without a mouse" }).first().waitFor();
      await tabTo(page, page.getByRole("row").getByRole("button").first());
      await press("Enter");
      // The menu, or its first item, takes the focus when it is open. A key that comes before opens it, too, and is not an arrow in it.
      await page.locator("[role=menu]:focus, [role=menu] :focus").waitFor();
      const focused = page.getByRole("menuitem", { name: "Delete" }).and(page.locator(":focus"));
      for (let i = await page.getByRole("menuitem").count(); i > 0 && (await focused.count()) === 0; i--) {
        await press("ArrowDown");
      }
      await focused.waitFor();
      await press("Escape");
    },
  },
  {
    route: "/apis/$apiId",
    at: ({ apiId }) => `/apis/${apiId}`,
    does: "renames an API, and goes to its keys",
    act: async ({ page, toButton, toField, press, type }, { call }, { apiId }) => {
      const { name } = await call("apis.getApi", { apiId });
      await toButton("Rename");
      await press("Enter");
      await toField("Name");
      await press("End");
      await type(", renamed");
      await press("Enter");
      await gone(page);
      await heading(page, `${name}, renamed`);
      await tabTo(page, page.getByRole("main").getByRole("link", { name: "Keys", exact: true }));
      await press("Enter");
      await heading(page, `Keys of ${name}, renamed`);
    },
  },
  {
    route: "/keys",
    does: "chooses an API, and makes a key of it",
    act: async ({ page, toButton, toField, press, type }, { call }, { apiId }) => {
      await toButton("Filters");
      await press("Enter");
      await tabTo(page, page.getByRole("combobox", { name: "API" }));
      await type("api by keys");
      // What the server found for the text has taken the place of what was offered before.
      await expect.poll(() => page.getByRole("option").count()).toBe(1);
      await page.locator("[role=option][data-highlighted]").waitFor();
      await press("Enter");
      await heading(page, /^Keys of api by keys/);
      await toButton("Done");
      await press("Enter");
      await gone(page);
      await toButton("Create a key", "Shift+Tab");
      await press("Enter");
      await toField("Name");
      await type("a key by keys");
      await press("Enter");
      await page.getByText("The key is shown only once").waitFor();
      await toButton("Close");
      await press("Enter");
      await gone(page);
      expect(await call("admin.searchKeys", { apiId, name: "a key by keys" })).toHaveLength(1);
    },
  },
  {
    route: "/keys/$keyId",
    at: ({ keyId }) => `/keys/${keyId}`,
    does: "renames a key, and disables it",
    act: async ({ page, toButton, toField, press, type }, { call }, { keyId }) => {
      await toButton("Change");
      await press("Enter");
      await toField("Name");
      await press("Control+a");
      await type("renamed by keys");
      await press("Enter");
      await heading(page, "renamed by keys");
      await toButton("Disable");
      await press("Enter");
      await toButton("Disable the key");
      await press("Enter");
      await gone(page);
      expect(await call("keys.getKey", { keyId })).toMatchObject({ name: "renamed by keys", enabled: false });
    },
  },
  {
    route: "/identities",
    does: "makes an identity with a limit, and sees it",
    act: async ({ page, toButton, toField, press, type }, { call }) => {
      await toButton("Create an identity");
      await press("Enter");
      await toField("External id");
      await type("by-keys");
      await toButton("Add a limit");
      await press("Enter");
      await tabTo(page, page.getByLabel("Requests", { exact: true }).first(), "Shift+Tab");
      await press("Control+a");
      await type("10");
      await press("Enter");
      await page.locator("h1:focus", { hasText: "by-keys" }).waitFor();
      await page.getByText("0 of 10").waitFor();
      expect(await call("identities.getIdentity", { identity: "by-keys" })).toMatchObject({
        ratelimits: [{ name: "requests", limit: 10 }],
      });
    },
  },
  {
    route: "/permissions",
    at: ({ roleName, slug }) => `/permissions?search=${slug}&roles=${encodeURIComponent(roleName)}`,
    does: "takes a permission from a role in the matrix, reviews that, and saves it",
    act: async ({ page, toButton, press }, { call }, { roleName }) => {
      await tabTo(page, page.locator('[data-place="1,1"]'));
      await press("Space");
      await toButton("Review 1 change", "Shift+Tab");
      await press("Enter");
      await page.locator("button:not([aria-disabled])", { hasText: "Save 1 role" }).waitFor();
      await toButton("Save 1 role");
      await press("Enter");
      await gone(page);
      expect((await call("permissions.getRole", { role: roleName })).permissions ?? []).toEqual([]);
    },
  },
  {
    route: "/ratelimits",
    does: "makes a namespace, and is led to it",
    act: async ({ page, toButton, toField, press, type }) => {
      await toButton("Create a namespace");
      await press("Enter");
      await toField("Name");
      await type("namespace.by.keys");
      await press("Enter");
      await heading(page, "namespace.by.keys");
    },
  },
  {
    route: "/ratelimits/$namespaceId",
    at: ({ namespaceId }) => `/ratelimits/${namespaceId}`,
    does: "sets an override, and tries it",
    act: async ({ page, toButton, toField, press, type }) => {
      await toButton("Set an override");
      await press("Enter");
      await toField("Identifier");
      await type("by_*");
      await press("Tab");
      await type("42");
      await press("Enter");
      await gone(page);
      await toField("Which limit does an identifier get?");
      await type("by_keys");
      await page.getByText("by_keys would have 42 per 1 h, because of the pattern by_*.").waitFor();
    },
  },
  {
    route: "/usage",
    does: "looks at seven days of one outcome, and at the query behind it",
    act: async ({ page, toButton, toField, press, type }) => {
      await toButton("7d");
      await press("Enter");
      await page.waitForURL(/range=7d/);
      await toButton("Filters");
      await press("Enter");
      await toField("Outcome");
      await type("disabled");
      await page.waitForURL(/outcome=DISABLED/);
      await press("Escape");
      await gone(page);
      await tabTo(page, page.locator("summary", { hasText: "SQL of Outcomes" }));
      await press("Enter");
      await page.locator("details[open] code").first().waitFor();
    },
  },
  {
    route: "/usage/sql",
    does: "writes a query, and runs it",
    act: async ({ page, press, type }) => {
      await tabTo(page, page.getByRole("textbox", { name: "Query" }));
      await press("Control+a");
      await type("select count() as n from key_verifications_v1");
      await press("Escape", "Control+Enter");
      await page.getByText(/^1 row in/).waitFor();
    },
  },
  {
    route: "/policies",
    does: "opens a policy, and shows its manifest",
    act: async ({ page, toButton, press }) => {
      await tabTo(page, page.getByRole("row").nth(1));
      await press("ArrowDown", "ArrowUp", "Enter");
      await page.getByRole("heading", { name: "Rules" }).waitFor();
      await toButton("Show as YAML");
      await press("Enter");
      await page.getByRole("dialog").getByText("kind: ApiKeyPolicy").waitFor();
      await press("Escape");
      await gone(page);
    },
  },
  {
    route: "/explain",
    does: "explains a key by its id",
    act: async ({ page, toField, press, type }, _, { keyId }) => {
      await toField("Key, key id or request id");
      await type(keyId);
      await press("Enter");
      await page.getByRole("list", { name: "Steps" }).waitFor();
    },
  },
  {
    route: "/requests",
    does: "follows rate limits until a check comes, and opens its explanation",
    act: async ({ page, press }, { call }) => {
      await tabTo(page, page.getByRole("tab", { name: "Verifications" }));
      await press("ArrowRight");
      await page.waitForURL(/of=ratelimits/);
      await tabTo(page, page.getByRole("switch", { name: "Follow live" }));
      await press("Space");
      const identifier = "checked-by-keys";
      await call("ratelimit.limit", { namespace: "followed", identifier, limit: 5, duration: 60_000 });
      await page.getByText(identifier).waitFor();
      await tabTo(page, page.getByRole("row").nth(1));
      await press("Enter");
      await page.getByRole("region", { name: "Stored data of the request" }).getByText(identifier).waitFor();
    },
  },
  {
    route: "/audit",
    does: "filters by an event, opens a change, and closes it",
    act: async ({ page, toButton, toField, press, type }) => {
      await toButton("Filters");
      await press("Enter");
      await toField("Event");
      await type("api.update");
      await page.waitForURL(/event=api\.update/);
      await press("Escape");
      await gone(page);
      await tabTo(page, page.getByRole("row").nth(1));
      await press("Enter");
      await page.getByRole("dialog").getByRole("table", { name: "Changed fields" }).waitFor();
      await press("Escape");
      await gone(page);
      await page.locator('[role="row"]:focus').waitFor();
    },
  },
  {
    route: "/people",
    does: "makes a sign-in link",
    act: async ({ page, toButton, toField, press, type }, { call }) => {
      await toButton("Create a sign-in link");
      await press("Enter");
      await toField("Name of the person");
      await type("Made by keys");
      await press("Enter");
      await page.getByText("The link is shown only once").waitFor();
      await toButton("Close");
      await press("Enter");
      await gone(page);
      const links = await call("admin.listSignInLinks", {});
      expect(links.map(({ name, role }) => `${name}: ${role}`)).toContain("Made by keys: viewer");
    },
  },
  {
    route: "/settings",
    does: "changes the quota of the workspace",
    act: async ({ page, toButton, toField, press, type }, { call }) => {
      await toButton("Change the quota");
      await press("Enter");
      await toField("Requests per minute");
      await press("Control+a");
      await type("50000");
      await press("Enter");
      await gone(page);
      expect(await call("admin.getSettings", {})).toMatchObject({ quotaPerMinute: 50_000 });
    },
  },
  {
    route: "/workspaces",
    does: "makes a workspace",
    act: async ({ page, toButton, toField, press, type }, { call }) => {
      await toButton("Create a workspace");
      await press("Enter");
      await toField("Name");
      await type("made-by-keys");
      await press("Enter");
      await gone(page);
      expect(await call("admin.listWorkspaces", { search: "made-by-keys" })).toHaveLength(1);
    },
  },
  {
    route: "/",
    at: () => "/identities",
    does: "is gone to by the navigation, and leads to a policy",
    act: async ({ page, press }) => {
      await tabTo(page, page.getByRole("link", { name: "Home" }));
      await press("Enter");
      await page.locator("h1:focus", { hasText: "Home" }).waitFor();
      await tabTo(
        page,
        page.getByRole("region", { name: "Gates", exact: true }).getByRole("link", { name: "dev/shop/orders" }),
      );
      await press("Enter");
      await page.locator("h1:focus", { hasText: "orders" }).waitFor();
    },
  },
  {
    route: "/installation",
    at: () => "/identities",
    does: "is gone to by the navigation, and read",
    act: async ({ page, press }) => {
      await tabTo(page, page.getByRole("link", { name: "Installation" }));
      await press("Enter");
      await page.locator("h1:focus", { hasText: "Installation" }).waitFor();
      await page.getByRole("region", { name: "Postgres" }).waitFor();
    },
  },
];

test.for(DOINGS)(
  "dashboard page $route can be used by keyboard: $does",
  async ({ route, at, act }, { dashboard, open }) => {
    await act(handsOn(await open(at?.(made) ?? route)), dashboard, made);
  },
);

test("keyboard tests cover every page of the navigation", () => {
  const tried = DOINGS.map(({ route }) => route);
  expect(EVERY_PAGE.filter((path) => !tried.includes(path))).toEqual([]);
});

test("list is one Tab stop, followed only by the controls of its active row", async ({ open }) => {
  const page = await open("/apis");
  await page.getByRole("row").nth(2).waitFor();
  const stops = () =>
    page.locator("[data-index]").evaluateAll((rows) =>
      rows.flatMap((row) => {
        const controls = [row, ...row.querySelectorAll("a, button, input, select")] as HTMLElement[];
        return controls.some(({ tabIndex }) => tabIndex >= 0) ? [row.getAttribute("data-index")] : [];
      }),
    );
  expect(await stops()).toEqual(["0"]);
  await page.getByRole("row").nth(1).focus();
  await page.keyboard.press("ArrowDown");
  await expect.poll(stops).toEqual(["1"]);
  await tabTo(page, page.getByRole("row").nth(2).getByRole("button", { name: "More" }));
  await page.keyboard.press("Tab");
  expect(await page.locator("[data-index] :focus").count()).toBe(0);
});
