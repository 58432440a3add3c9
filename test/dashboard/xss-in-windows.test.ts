import { describe, expect } from "vitest";
import { ALL_WINDOWS, openWindow } from "./every-window.ts";
import { expectHarmless } from "./harmless.ts";
import { dashboardTest } from "./harness.ts";
import { expectFits } from "./window.ts";
import { type Made, makeObjects } from "./window-objects.ts";

/*
 * Names, descriptions and data that look like markup, each as long as it may be, in every window: dialogs, forms that begin with what is stored, the
 * matrix and its review, manifests as YAML, the audit log's before and after; then what the page says itself: toasts and refusals.
 */

const test = dashboardTest();

const MARKUP = "<img src=x onerror=hacked=N>\"><script>hacked=N</script>'-hacked=N-'{{hacked=N}}";
let count = 0;
/** No two are equal: many names must be unique. */
const hostile = (_what: string, lengthMax: number): string => {
  count += 1;
  return MARKUP.replaceAll("N", String(count)).padEnd(lengthMax, "W").slice(0, lengthMax);
};

let made: Made;
test.beforeAll(async ({ dashboard }) => {
  made = await makeObjects(dashboard, hostile);
});

/** What is new, or is about no single object, shows no text of others. */
const SHOWS_NOTHING =
  /^(create |the new |the menu of|the only |set an|import|export|change the |switch |(rename|enable) a workspace)/;

describe("stored texts stay text", () => {
  test.for(ALL_WINDOWS)("dialog $name shows stored scripts as text", async (opening, { open }) => {
    const page = await open(opening.at(made));
    const { window } = await openWindow(page, opening, made);
    await expectHarmless(page, opening.name);
    const { texts, values } = await page.evaluate(() => ({
      texts: document.body.textContent ?? "",
      values: [...document.querySelectorAll("input, textarea")].map((one) => (one as HTMLInputElement).value),
    }));
    if (!SHOWS_NOTHING.test(opening.name)) expect([texts, ...values].join(" ")).toContain("onerror=hacked=");
    await page.setViewportSize({ width: 375, height: 800 });
    await expectFits(window);
  });

  test("toast and error message show entered scripts as text", async ({ open, faults }) => {
    faults.expect(/409/);
    const page = await open("/permissions");
    const name = hostile("role", 128);
    for (const says of [`Role ${name} created.`, "failed."]) {
      await page.getByRole("button", { name: "Create a role" }).click();
      await page.getByLabel("Name").fill(name);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByText(says).waitFor();
      await expectHarmless(page, says);
    }
  });
});
