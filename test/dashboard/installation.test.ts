import { describe, expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

describe("the installation", () => {
  test("installation page shows the state of each component", async ({ open }) => {
    const page = await open("/installation");
    const postgres = page.getByRole("region", { name: "Postgres", exact: true });
    await postgres.getByText("works").waitFor();
    await postgres.getByText(/^\d{4}-.*\.sql$/).waitFor();
    await page.getByRole("region", { name: "Relay" }).getByText("this api-server").waitFor();
    await page.getByRole("region", { name: "Retention" }).getByText("90 days").waitFor();
    expect(await page.locator("main").textContent()).not.toMatch(/postgres:\/\/|redis:\/\//);
    await expectAccessible(page);
  });

  test.for(["viewer", "operator"] as const)(
    "installation page is not loaded for a %s of one workspace",
    async (role, { open }) => {
      const page = await open("/installation", { role });
      await page.getByText(/installation\.\*\.read_installation/).waitFor();
    },
  );
});
