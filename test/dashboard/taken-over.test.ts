import type { Locator } from "playwright-core";
import { expect } from "vitest";
import type { ManagedTable } from "../../api-server/test/resources.ts";
import { inDatabase } from "./database.ts";
import { ALL_WINDOWS, openWindow } from "./every-window.ts";
import { dashboardTest } from "./harness.ts";
import { type Made, makeObjects } from "./window-objects.ts";

/*
 * A manifest takes an object over while a person has it open: what the person then sends is refused, and each window says whose it is by now and
 * where to change it, with what was typed still there.
 */

const test = dashboardTest();
let made: Made;
test.beforeAll(async ({ dashboard }) => {
  let count = 0;
  made = await makeObjects(dashboard, (what, lengthMax) => `${what} taken ${++count}`.slice(0, lengthMax));
});

interface Attempt {
  /** A window of the table. */
  readonly window: string;
  readonly table: ManagedTable;
  /** What it types, by the label. "to confirm" is filled with the name that is asked for. */
  readonly typed?: readonly [label: string, text: string];
  readonly send: string;
}

const ATTEMPTS: readonly Attempt[] = [
  { window: "rename an API", table: "apis", typed: ["Name", "another name"], send: "Rename" },
  { window: "delete an API", table: "apis", typed: ["to confirm", ""], send: "Delete the API" },
  { window: "change a key", table: "keys", typed: ["Name", "another name"], send: "Save" },
  { window: "disable a key", table: "keys", send: "Disable the key" },
  {
    window: "roles and permissions of a key",
    table: "keys",
    typed: ["Direct permissions", "another.one"],
    send: "Save",
  },
  { window: "delete a key", table: "keys", typed: ["to confirm", ""], send: "Delete the key" },
  { window: "a role", table: "roles", typed: ["Description", "another text"], send: "Save" },
  { window: "delete a role", table: "roles", typed: ["to confirm", ""], send: "Delete the role" },
  { window: "review the changes of roles", table: "roles", send: "Save 1 role" },
  { window: "a permission", table: "permissions", typed: ["Description", "another text"], send: "Save" },
  { window: "delete a permission", table: "permissions", typed: ["to confirm", ""], send: "Delete the permission" },
  { window: "an override", table: "ratelimit_overrides", typed: ["Limit", "77"], send: "Save" },
  {
    window: "delete a namespace",
    table: "ratelimit_namespaces",
    typed: ["to confirm", ""],
    send: "Delete the namespace",
  },
];

/** Types the name that a window asks for, or the text that is given, and returns the field. */
async function fill(window: Locator, [label, text]: readonly [string, string]): Promise<Locator> {
  if (label !== "to confirm") {
    const field = window.getByLabel(label, { exact: true }).first();
    await field.fill(text);
    // The text becomes a chip.
    if ((await field.getAttribute("role")) === "combobox") await field.press("Tab");
    return field;
  }
  const field = window.getByLabel(/^Type .* to confirm$/);
  await field.fill((await window.locator("label code").textContent()) ?? "");
  return field;
}

test.for(ATTEMPTS)(
  "dialog of an object that became managed explains the rejection: $window",
  async ({ window: name, table, typed, send }, { dashboard, open, faults }) => {
    faults.expect(/\b409\b/);
    const opening = ALL_WINDOWS.find((one) => one.name === name);
    if (opening === undefined) throw new Error(`no window of the table is ${name}`);
    const page = await open(opening.at(made));
    const { window } = await openWindow(page, opening, made);
    const field = typed === undefined ? undefined : await fill(window, typed);
    const before = await field?.inputValue();
    await inDatabase(dashboard, `update ${table} set manager = 'main/Kind/shop/taken-' || id where manager is null`);
    try {
      await window.getByRole("button", { name: send, exact: true }).click();
      await window.getByText(/is managed by main\/Kind\/shop\/taken-/).waitFor();
      await window.getByText("Change its manifest instead: the operator would undo a change made here.").waitFor();
      expect(await field?.inputValue()).toBe(before);
      if (before === "") expect(await window.getByText(typed?.[1] ?? "").count()).toBeGreaterThan(0);
    } finally {
      await inDatabase(dashboard, `update ${table} set manager = null where manager like 'main/Kind/shop/taken-%'`);
    }
  },
);
