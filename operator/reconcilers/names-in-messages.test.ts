import { expect, test } from "vitest";
import { anObject } from "../test/builders.ts";
import { labelFor, managerFor, withoutForeignManagers } from "./names-in-messages.ts";

test("condition messages name objects of the reader's namespace only", () => {
  const object = anObject("Role", {}, { namespace: "prod", name: "editor" });
  expect(labelFor(object, "prod")).toBe("Role prod/editor");
  expect(labelFor(object, "dev")).toBe("A Role of another namespace");
});

test.each([
  { manager: "main/Role/dev/other", says: "main/Role/dev/other" },
  { manager: "main/ApiKeyPolicy/prod/orders", says: "an ApiKeyPolicy of another namespace" },
  // The namespace has the same name but belongs to another team's cluster.
  { manager: "east/Role/dev/other", says: "a Role of the cluster east" },
])("manager $manager is shown to a reader of main/dev as $says", ({ manager, says }) => {
  expect(managerFor(manager, "main/Role/dev/mine")).toBe(says);
});

test("managers of other namespaces are removed from an API error message, and its punctuation is kept", () => {
  const text = "The role role_1 is managed by main/Role/prod/editor.v2. Edit main/Role/dev/mine instead.";
  expect(withoutForeignManagers(text, "main/Role/dev/mine")).toBe(
    "The role role_1 is managed by a Role of another namespace. Edit main/Role/dev/mine instead.",
  );
});
