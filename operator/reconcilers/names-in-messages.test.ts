import { expect, test } from "vitest";
import { anObject } from "../test/builders.ts";
import { labelFor, managerFor, withoutForeignManagers } from "./names-in-messages.ts";

test("an object of the reader's namespace is named, one of another is not", () => {
  const object = anObject("Role", {}, { namespace: "prod", name: "editor" });
  expect(labelFor(object, "prod")).toBe("Role prod/editor");
  expect(labelFor(object, "dev")).toBe("A Role of another namespace");
});

test.each([
  { manager: "main/Role/dev/other", says: "main/Role/dev/other" },
  { manager: "main/ApiKeyPolicy/prod/orders", says: "an ApiKeyPolicy of another namespace" },
  // The same name of a namespace, in a cluster that is another team's.
  { manager: "east/Role/dev/other", says: "a Role of the cluster east" },
])("a manager $manager is said to a reader of main/dev as $says", ({ manager, says }) => {
  expect(managerFor(manager, "main/Role/dev/mine")).toBe(says);
});

test("a text of the API loses the managers of others, with the full stop behind them kept", () => {
  const text = "The role role_1 is managed by main/Role/prod/editor.v2. Edit main/Role/dev/mine instead.";
  expect(withoutForeignManagers(text, "main/Role/dev/mine")).toBe(
    "The role role_1 is managed by a Role of another namespace. Edit main/Role/dev/mine instead.",
  );
});
