import { describe, expect, test } from "vitest";
import { mayUseName, type NameUse } from "./name-grants.ts";
import { parseSettings } from "./settings.ts";

const { nameGrants } = parseSettings(`
nameGrants:
  - { names: ["orders.*", admin], namespaces: [prod, "prod-*"], kinds: [Role] }
  - { names: [admin], namespaces: [security], kinds: [Role] }
  - { names: [closed], namespaces: [] }
  - { names: [team.editor], namespaces: [shop], workspace: team-shop }
`);
const may = (use: Partial<NameUse>): boolean =>
  mayUseName(nameGrants, { kind: "Role", name: "free", namespace: "dev", workspace: "team-shop", ...use });

describe("names within a workspace", () => {
  test.each<{ name: string; use: Partial<NameUse> }>([
    { name: "that no grant lists", use: { name: "order" } },
    { name: "of a kind that the grant does not mean", use: { kind: "RatelimitNamespace", name: "orders.read" } },
    { name: "that is granted to the namespace", use: { name: "orders.read", namespace: "prod" } },
    { name: "that is granted to namespaces with this beginning", use: { name: "Admin", namespace: "prod-eu" } },
    { name: "that another grant gives to the namespace", use: { name: "admin", namespace: "security" } },
    { name: "that is granted in another workspace", use: { name: "team.editor", workspace: "team-bank" } },
    {
      name: "that is granted in another workspace than the only one",
      use: { name: "team.editor", workspace: undefined },
    },
  ])("tenancy settings permit the use of a name $name", ({ use }) => expect(may(use)).toBe(true));

  test.each<{ name: string; use: Partial<NameUse> }>([
    { name: "that is granted to others", use: { name: "orders.read" } },
    { name: "of a role that is granted to others, in another case", use: { name: "ORDERS.read" } },
    { name: "whose grant names a longer namespace", use: { name: "admin", namespace: "pro" } },
    { name: "that is granted to nobody", use: { kind: "RatelimitNamespace", name: "closed", namespace: "prod" } },
    { name: "that is granted to others in this workspace", use: { name: "team.editor" } },
  ])("tenancy settings forbid the use of a name $name", ({ use }) => expect(may(use)).toBe(false));
});

test.each([
  { text: "nameGrants: [{ names: [a], namespaces: [b], kind: [Role] }]", says: /nameGrants\.0: Unrecognized key/ },
  { text: "workspaces: [{ workspace: 'a b', namespaces: [b] }]", says: /workspaces\.0\.workspace/ },
  { text: "workspaces: [{ workspace: a, namespaces: ['*-prod'] }]", says: /workspaces\.0\.namespaces\.0/ },
  { text: "namespaceLabels: Maybe", says: /namespaceLabels/ },
  { text: "just a text", says: /file/ },
])("invalid tenancy settings `$text` are rejected with the location", ({ text, says }) =>
  expect(() => parseSettings(text)).toThrow(says),
);

test("empty tenancy settings file uses the defaults", () => {
  expect(parseSettings("")).toEqual({ namespaceLabels: "Follow", workspaces: [], nameGrants: [] });
});
