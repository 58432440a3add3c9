import type { Locator, Page } from "playwright-core";
import type { Made } from "./window-objects.ts";

/*
 * Every window that a page can open: dialogs, drawers, menus and lists, and how each is opened by the keyboard. every-window.test.ts holds that no
 * component of the dashboard that opens one is missing here.
 */

export interface Opening {
  readonly name: string;
  /** The components whose window it is, as the guard finds them. */
  readonly by: readonly string[];
  /**
   * A dialog when left out, which keeps the focus. A menu is walked through by arrows; of a list the focus stays in its field; a popover is reached
   * by Tab.
   */
  readonly kind?: "menu" | "list" | "popover";
  /** The page, below /dashboard. */
  readonly at: (made: Made) => string;
  /** Leads from the page to the opener, such as opening the drawer that it stands in. */
  readonly before?: (page: Page, made: Made) => Promise<void>;
  /** Enter on it opens the window, and it gets the focus back. */
  readonly opener: (page: Page, made: Made) => Locator;
  /** What is chosen in the menu that the opener opens. */
  readonly item?: string;
  /** Leads from the window that is open to this one, which takes its place. */
  readonly goesOn?: (window: Locator, made: Made) => Promise<void>;
  /** Is there when the window has read what it shows. */
  readonly shows?: (window: Locator, made: Made) => Locator;
  /** Escape does not close it: it shows what cannot be shown again. */
  readonly isKept?: boolean;
}

const button =
  (name: string | RegExp) =>
  (page: Page): Locator =>
    page.getByRole("button", typeof name === "string" ? { name, exact: true } : { name });
/** The first row of the list, which the address has narrowed to the object. */
const row = (page: Page): Locator => page.getByRole("row").nth(1);
/** Selects the first row, which opens the bar of actions. */
const selected = (page: Page): Promise<void> => row(page).press("Space");
const menuOfRow = (page: Page): Locator => row(page).getByRole("button");
const inWindow = (name: string) => (page: Page) => page.getByRole("dialog").getByRole("button", { name, exact: true });
const field = (label: string) => (page: Page) => page.getByRole("dialog").getByRole("combobox", { name: label });
/** A cell of the matrix: 0,1 is the head of the first role, 1,0 that of the first permission. */
const cell = (place: string) => (page: Page) => page.locator(`[data-place="${place}"]`);
const pressed = async (opener: Locator): Promise<void> => {
  await opener.focus();
  await opener.press("Enter");
};
/** The links above the list have rows too. */
const personRow = (page: Page): Locator => page.getByRole("table", { name: "People" }).getByRole("row").nth(1);
const openPerson = (page: Page): Promise<void> => pressed(personRow(page));
const onceShown = "The key is shown only once";

const rootKey = ({ rootKeyId }: Made): string => `/root-keys?rootKey=${rootKeyId}`;
const api = ({ apiId }: Made): string => `/apis?search=${apiId}`;
const pageOfApi = ({ apiId }: Made): string => `/apis/${apiId}`;
const keysOfApi = ({ apiId }: Made): string => `/keys?api=${apiId}`;
const key = ({ keyId }: Made): string => `/keys/${keyId}`;
const identity = ({ identityId }: Made): string => `/identities/${identityId}`;
const namespace = ({ namespaceId }: Made): string => `/ratelimits/${namespaceId}`;
const person = ({ personName }: Made): string => `/people?search=${encodeURIComponent(personName.slice(0, 60))}`;
const matrix = ({ slug, roleName }: Made): string =>
  `/permissions?search=${encodeURIComponent(slug)}&roles=${encodeURIComponent(roleName)}`;
const workspaces = ({ workspaceId }: Made): string => `/workspaces?search=${workspaceId}`;

/** As if the person could enter no other workspace. */
async function withoutOthers(page: Page): Promise<void> {
  const answer = await page.evaluate(async () => {
    const response = await fetch("/dashboard/session", { headers: { "postern-dashboard": "1" } });
    return (await response.json()) as { data: { session: { workspaces: { name: string }[] } } };
  });
  const { session } = answer.data;
  session.workspaces = session.workspaces.filter(({ name }) => name === "default");
  await page.route("**/dashboard/session", (route) => route.fulfill({ json: answer }));
  await page.reload();
}

const fillRootKey = async (window: Locator): Promise<void> => {
  await window.getByLabel("Name", { exact: true }).fill("made in a window");
  await window.getByLabel("Which").click();
  await window.page().getByRole("option", { name: "All APIs" }).click();
  await window.getByRole("checkbox", { name: "create api" }).check();
  await pressed(window.getByRole("button", { name: "Create", exact: true }));
};
/** The cell of the only permission and the only role, which is granted. */
const marked = async (page: Page): Promise<void> => pressed(cell("1,1")(page));

/** By what they are about: each has a file of tests of its own, so that none takes long. */
export const EVERY_WINDOW = {
  people: [
    {
      name: "the menu of the person",
      by: ["AccountMenu"],
      kind: "popover",
      at: () => "/installation",
      opener: button(/^Ada \(/),
    },
    {
      name: "the search",
      by: ["SearchDialog"],
      at: () => "/installation",
      opener: button("Search"),
      goesOn: (window) => window.getByRole("combobox").fill("hacked"),
      shows: (window) => window.getByRole("group", { name: "Roles" }),
    },
    { name: "create a root key", by: ["RootKeyForm"], at: () => "/root-keys", opener: button("Create a root key") },
    {
      name: "which API a root key is for",
      by: ["PermissionPicker"],
      kind: "list",
      at: () => "/root-keys",
      before: (page) => pressed(button("Create a root key")(page)),
      opener: (page) => page.getByRole("combobox", { name: "Which" }),
    },
    {
      name: "the new root key",
      by: ["NewRootKey"],
      isKept: true,
      at: () => "/root-keys",
      opener: button("Create a root key"),
      goesOn: fillRootKey,
      shows: (window) => window.getByText(onceShown),
    },
    {
      name: "a root key",
      by: ["RootKeyDrawer"],
      at: ({ rootKeyId }) => `/root-keys?search=${rootKeyId}`,
      opener: row,
      shows: (window) => window.getByRole("button", { name: "Rotate" }),
    },
    {
      name: "the filters of root keys",
      by: ["RootKeysPage"],
      kind: "popover",
      at: () => "/root-keys",
      opener: button("Filters"),
    },
    { name: "change a root key", by: ["RootKeyForm"], at: rootKey, opener: inWindow("Change") },
    { name: "rotate a root key", by: ["RotateRootKey"], at: rootKey, opener: inWindow("Rotate") },
    { name: "disable a root key", by: ["EnableRootKey"], at: rootKey, opener: inWindow("Disable") },
    { name: "revoke a root key", by: ["RevokeRootKey"], at: rootKey, opener: inWindow("Revoke") },
    {
      name: "narrow a root key",
      by: ["NarrowRootKey"],
      at: ({ wideRootKeyId }) => `/root-keys?rootKey=${wideRootKeyId}`,
      opener: inWindow("Restrict …"),
    },
    {
      name: "create a sign-in link",
      by: ["CreateLink"],
      at: () => "/people",
      opener: button("Create a sign-in link"),
    },
    {
      name: "the new sign-in link",
      by: ["CreateLink", "NewLink"],
      isKept: true,
      at: () => "/people",
      opener: button("Create a sign-in link"),
      goesOn: async (window) => {
        await window.getByLabel("Name of the person").fill("Grace");
        await pressed(window.getByRole("button", { name: "Create", exact: true }));
      },
      shows: (window) => window.getByText("The link is shown only once"),
    },
    {
      name: "revoke a sign-in link",
      by: ["RevokeLink"],
      at: () => "/people",
      opener: (page) => page.getByRole("button", { name: "Revoke" }).first(),
    },
    {
      name: "a person",
      by: ["PersonDrawer"],
      at: person,
      opener: personRow,
      shows: (window) => window.getByRole("row").nth(1),
    },
    {
      name: "sign out a person",
      by: ["SignOutPerson"],
      at: person,
      before: openPerson,
      opener: inWindow("Sign out everywhere"),
    },
    {
      name: "end a session of a person",
      by: ["SignOutPerson"],
      at: person,
      before: openPerson,
      opener: inWindow("End"),
    },
    {
      name: "create an identity",
      by: ["CreateIdentity"],
      at: () => "/identities",
      opener: button("Create an identity"),
    },
    { name: "change an identity", by: ["EditIdentity"], at: identity, opener: button("Change") },
    { name: "delete an identity", by: ["DeleteIdentity"], at: identity, opener: button("Delete") },
  ],
  keys: [
    { name: "create an API", by: ["CreateApi"], at: () => "/apis", opener: button("Create an API") },
    { name: "the menu of an API", by: ["columnsOf"], kind: "menu", at: api, opener: menuOfRow },
    { name: "rename an API", by: ["RenameApi"], at: api, opener: menuOfRow, item: "Rename" },
    { name: "delete an API", by: ["DeleteApi"], at: api, opener: menuOfRow, item: "Delete" },
    {
      name: "an API that is protected",
      by: ["Protected"],
      at: ({ protectedApiId }) => `/apis?search=${protectedApiId}`,
      opener: menuOfRow,
      item: "Delete",
    },
    { name: "rename an API on its page", by: ["RenameApi"], at: pageOfApi, opener: button("Rename") },
    {
      name: "the settings of an API",
      by: ["ChangeApiSettings"],
      at: pageOfApi,
      opener: button("Change the settings"),
    },
    { name: "delete an API on its page", by: ["DeleteApi"], at: pageOfApi, opener: button("Delete") },
    { name: "the menu of the keys", by: ["KeysPage"], kind: "menu", at: keysOfApi, opener: button("More") },
    {
      name: "which API the keys are of",
      by: ["KeyFilterBar"],
      kind: "list",
      at: () => "/keys",
      before: (page) => pressed(button("Filters")(page)),
      opener: (page) => page.getByRole("combobox", { name: "API" }),
    },
    {
      name: "the filters of usage",
      by: ["Filters"],
      kind: "popover",
      at: () => "/usage",
      opener: button("Filters"),
    },
    {
      name: "the filters of requests",
      by: ["Filters"],
      kind: "popover",
      at: () => "/requests?of=ratelimits",
      opener: button("Filters"),
    },
    {
      name: "the filters of the keys",
      by: ["KeyFilterBar"],
      kind: "popover",
      at: keysOfApi,
      opener: button("Filters"),
    },
    { name: "create a key", by: ["CreateKey"], at: keysOfApi, opener: button("Create a key") },
    { name: "create a key of any API", by: ["CreateKey"], at: () => "/keys", opener: button("Create a key") },
    {
      name: "which API a new key is of",
      by: ["ApiChoice"],
      kind: "list",
      at: () => "/keys",
      before: (page) => pressed(button("Create a key")(page)),
      opener: (page) => page.getByRole("dialog").getByRole("combobox", { name: "API" }),
    },
    {
      name: "who owns a new key",
      by: ["OwnerPicker"],
      kind: "list",
      at: keysOfApi,
      before: (page) => pressed(button("Create a key")(page)),
      opener: field("Owner"),
    },
    {
      name: "roles of a new key",
      by: ["RightsFields"],
      kind: "list",
      at: keysOfApi,
      before: (page) => pressed(button("Create a key")(page)),
      opener: field("Roles"),
    },
    {
      name: "the new key",
      by: ["NewKey"],
      isKept: true,
      at: keysOfApi,
      opener: button("Create a key"),
      goesOn: (window) => pressed(window.getByRole("button", { name: "Create", exact: true })),
      shows: (window) => window.getByText(onceShown),
    },
    {
      name: "all keys of an owner",
      by: ["OwnerDialog"],
      at: ({ externalId }) => `/keys?by=owner&q=${externalId}`,
      opener: button("More"),
      item: "Disable all keys of an owner",
      goesOn: (window) => pressed(window.getByRole("button", { name: "Count the keys" })),
      shows: (window) => window.getByText("keys would be disabled"),
    },
    {
      name: "the menu of what to assign to selected keys",
      by: ["KeyBatch"],
      kind: "menu",
      at: keysOfApi,
      before: selected,
      opener: button("Assign"),
    },
    { name: "disable selected keys", by: ["EnableKeys"], at: keysOfApi, before: selected, opener: button("Disable") },
    { name: "delete selected keys", by: ["DeleteKeys"], at: keysOfApi, before: selected, opener: button("Delete") },
    {
      name: "add roles to selected keys",
      by: ["ChangeRoles"],
      at: keysOfApi,
      before: selected,
      opener: button("Assign"),
      item: "Add roles",
    },
    {
      name: "set the owner of selected keys",
      by: ["SetOwner"],
      at: keysOfApi,
      before: selected,
      opener: button("Assign"),
      item: "Set the owner",
    },
    {
      name: "roles to add to selected keys",
      by: ["ChangeRoles"],
      kind: "list",
      at: keysOfApi,
      before: async (page) => {
        await selected(page);
        await pressed(button("Assign")(page));
        await page.getByRole("menuitem", { name: "Add roles" }).press("Enter");
      },
      opener: field("Roles"),
    },
    {
      name: "owner of selected keys",
      by: ["OwnerPicker"],
      kind: "list",
      at: keysOfApi,
      before: async (page) => {
        await selected(page);
        await pressed(button("Assign")(page));
        await page.getByRole("menuitem", { name: "Set the owner" }).press("Enter");
      },
      opener: field("Owner"),
    },
    {
      name: "owner whose keys are disabled",
      by: ["OwnerPicker"],
      kind: "list",
      at: keysOfApi,
      before: async (page) => {
        await pressed(button("More")(page));
        await page.getByRole("menuitem", { name: "Disable all keys of an owner" }).press("Enter");
      },
      opener: field("Owner"),
    },
    { name: "import keys", by: ["ImportKeys"], at: keysOfApi, opener: button("More"), item: "Import from CSV" },
    { name: "export keys", by: ["ExportKeys"], at: keysOfApi, opener: button("More"), item: "Export as CSV" },
    { name: "the menu of a key", by: ["KeyActions"], kind: "menu", at: key, opener: button("More") },
    { name: "change a key", by: ["ChangeKey"], at: key, opener: button("Change") },
    { name: "disable a key", by: ["EnableDialog"], at: key, opener: button("Disable") },
    {
      name: "roles and permissions of a key",
      by: ["ChangeRights"],
      at: key,
      opener: button("More"),
      item: "Roles and permissions",
    },
    {
      name: "permissions of a key",
      by: ["RightsFields"],
      kind: "list",
      at: key,
      before: async (page) => {
        await pressed(button("More")(page));
        await page.getByRole("menuitem", { name: "Roles and permissions" }).press("Enter");
      },
      opener: field("Direct permissions"),
    },
    { name: "credits of a key", by: ["CreditsDialog"], at: key, opener: button("More"), item: "Credits" },
    { name: "reroll a key", by: ["RerollDialog"], at: key, opener: button("More"), item: "Reroll" },
    { name: "delete a key", by: ["DeleteKey"], at: key, opener: button("More"), item: "Delete" },
  ],
  rights: [
    { name: "create a role", by: ["CreateRole"], at: () => "/permissions", opener: button("Create a role") },
    {
      name: "permissions of a new role",
      by: ["CreateRole"],
      kind: "list",
      at: () => "/permissions",
      before: (page) => pressed(button("Create a role")(page)),
      opener: field("Permissions"),
    },
    {
      name: "create a permission",
      by: ["CreatePermission"],
      at: () => "/permissions",
      opener: button("Create a permission"),
    },
    {
      name: "a role",
      by: ["RoleDetails"],
      at: matrix,
      opener: cell("0,1"),
      shows: (window) => window.getByRole("button", { name: "Show as YAML" }),
    },
    {
      name: "a role as YAML",
      by: ["RoleDetails"],
      at: matrix,
      before: (page) => pressed(cell("0,1")(page)),
      opener: inWindow("Show as YAML"),
      shows: (window) => window.getByText("kind: Role"),
    },
    {
      name: "delete a role",
      by: ["RoleDetails"],
      at: matrix,
      before: (page) => pressed(cell("0,1")(page)),
      opener: inWindow("Delete"),
    },
    { name: "a permission", by: ["PermissionDetails"], at: matrix, opener: cell("1,0") },
    {
      name: "delete a permission",
      by: ["PermissionDetails"],
      at: matrix,
      before: (page) => pressed(cell("1,0")(page)),
      opener: inWindow("Delete"),
    },
    {
      name: "review the changes of roles",
      by: ["Review"],
      at: matrix,
      before: marked,
      opener: button("Review 1 change"),
      shows: (window) => window.locator("button:not([aria-disabled])", { hasText: "Save 1 role" }),
    },
    {
      name: "leave without saving",
      by: ["PermissionsPage"],
      at: matrix,
      before: marked,
      opener: (page) => page.getByRole("link", { name: "Identities" }),
    },
    {
      name: "create a namespace",
      by: ["CreateNamespace"],
      at: () => "/ratelimits",
      opener: button("Create a namespace"),
    },
    {
      name: "a namespace as YAML",
      by: ["NamespacePage"],
      at: namespace,
      opener: button("Show as YAML"),
      shows: (window) => window.getByText("kind: RatelimitNamespace"),
    },
    { name: "delete a namespace", by: ["DeleteNamespace"], at: namespace, opener: button("Delete") },
    { name: "set an override", by: ["OverrideDialog"], at: namespace, opener: button("Set an override") },
    {
      name: "which identifier an override is for",
      by: ["OverrideDialog"],
      kind: "list",
      at: namespace,
      before: (page) => pressed(button("Set an override")(page)),
      opener: field("Identifier"),
    },
    { name: "an override", by: ["OverrideDialog"], at: namespace, opener: row },
    {
      name: "an override as YAML",
      by: ["OverrideDialog"],
      at: namespace,
      before: (page) => pressed(row(page)),
      opener: inWindow("Show as YAML"),
      shows: (window) => window.getByText("kind: RatelimitOverride"),
    },
    {
      name: "a policy as YAML",
      by: ["PolicyYaml"],
      at: ({ policyId }) => `/policies/${policyId}`,
      opener: button("Show as YAML"),
      shows: (window) => window.getByText("kind: ApiKeyPolicy"),
    },
    {
      name: "the filters of the audit log",
      by: ["AuditPage"],
      kind: "popover",
      at: () => "/audit",
      opener: button("Filters"),
    },
    {
      name: "a change of the audit log",
      by: ["AuditPage"],
      at: ({ apiId }) => `/audit?targetId=${apiId}&event=api.update`,
      opener: row,
      shows: (window) => window.getByRole("table", { name: "Changed fields" }),
    },
  ],
  settings: [
    { name: "change the quota", by: ["ChangeQuota"], at: () => "/settings", opener: button("Change the quota") },
    {
      name: "change the bounds",
      by: ["ChangeQueryLimits"],
      at: () => "/settings",
      opener: button("Change the limits"),
    },
    { name: "switch usage off", by: ["Ask"], at: () => "/settings", opener: button("Turn off") },
    { name: "create a workspace", by: ["NameDialog"], at: () => "/workspaces", opener: button("Create a workspace") },
    { name: "the menu of a workspace", by: ["columnsOf"], kind: "menu", at: workspaces, opener: menuOfRow },
    { name: "rename a workspace", by: ["NameDialog"], at: workspaces, opener: menuOfRow, item: "Rename" },
    {
      name: "disable a workspace",
      by: ["DisableWorkspace"],
      at: () => "/workspaces?search=default",
      opener: menuOfRow,
      item: "Disable",
      shows: (window) => window.getByText("Root keys that stop working"),
    },
    {
      name: "the only workspace that is enabled",
      by: ["DisableWorkspace"],
      at: () => "/workspaces?search=default",
      before: withoutOthers,
      opener: menuOfRow,
      item: "Disable",
      shows: (window) => window.getByText("It is the only enabled workspace"),
    },
    {
      name: "enable a workspace",
      by: ["EnableWorkspace"],
      at: ({ disabledWorkspaceId }) => `/workspaces?search=${disabledWorkspaceId}`,
      opener: menuOfRow,
      item: "Enable",
    },
  ],
} as const satisfies Readonly<Record<string, readonly Opening[]>>;

export const ALL_WINDOWS: readonly Opening[] = Object.values(EVERY_WINDOW).flat();

const WINDOWS = {
  dialog: "[role=dialog]",
  menu: "[role=menu]",
  list: "[role=listbox]",
  popover: "[popover], .filter-popup",
} as const;

/** Goes from the page to the window by keys, and waits until it shows what it has read. */
export async function openWindow(
  page: Page,
  opening: Opening,
  made: Made,
): Promise<{ readonly window: Locator; readonly opener: Locator }> {
  const { kind = "dialog", before, item, goesOn, shows } = opening;
  await before?.(page, made);
  const opener = opening.opener(page, made);
  await opener.focus();
  // A field opens its list when something is looked for.
  await opener.press(kind === "list" ? "ArrowDown" : "Enter");
  if (item !== undefined) await page.getByRole("menuitem", { name: item, exact: true }).press("Enter");
  // The last is the uppermost. One that stands below it must not be taken for it once it is closed.
  const uppermost = page.locator(`${WINDOWS[kind]}:visible`).last();
  await uppermost.waitFor();
  await goesOn?.(uppermost, made);
  if (goesOn !== undefined) await shows?.(uppermost, made).first().waitFor();
  await uppermost.evaluate((element, mark) => element.setAttribute("data-opened", mark), opening.name);
  const window = page.locator(`[data-opened="${opening.name}"]`);
  await shows?.(window, made).first().waitFor();
  return { window, opener };
}
