import {
  LINK_LIVES_MS,
  makeSignInLink,
  PERSON_NAME_LENGTH_MAX,
  signInAddress,
} from "../../../api-server/domain/administration/sign-in-links.ts";
import { PERSON_ROLES, type PersonRole } from "../../../core/permissions/person-roles.ts";
import { EVERY_WORKSPACE } from "../../../core/sessions/assignments.ts";
import { readAddress, withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { findRunningDev } from "../../dev-state.ts";
import { type Fields, instantText, objectShape } from "../../fields.ts";
import { dashboardUrl, database, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { invalidValue, parseDashboardUrl, parseName } from "../../values.ts";

interface Made {
  readonly address: string;
  readonly id: string;
  readonly name: string;
  readonly role: PersonRole;
  readonly workspaceId: string | undefined;
  readonly expiresAt: number;
}

const fields: Fields<Made> = [
  { name: "dashboardUrl", title: "open", value: (row) => row.address },
  { name: "linkId", title: "id", value: (row) => row.id },
  { name: "name", title: "signs in", value: (row) => row.name },
  { name: "role", title: "as", value: (row) => row.role },
  {
    name: "workspaceId",
    title: "of",
    value: (row) => row.workspaceId ?? null,
    text: (row) => row.workspaceId ?? "all workspaces",
  },
  {
    name: "expires",
    title: "until",
    value: (row) => row.expiresAt,
    text: (row) => `${instantText(row.expiresAt)}, once`,
  },
];

/** URL of a server with the default configuration, on this machine or reached by port forwarding. */
const DEFAULT_URL = "http://127.0.0.1:8080";

export const dashboardLink = defineCommand({
  name: "dashboard link",
  description: `The link works once, within ${LINK_LIVES_MS / 60_000} minutes. Send it only to the intended person: the audit log lists their changes under --name.`,
  options: {
    role: {
      type: "string",
      placeholder: PERSON_ROLES.join("|"),
      help: "role of the person; an admin of all workspaces may also create workspaces",
      default: "admin",
    },
    workspace: { type: "string", placeholder: "WORKSPACE|*", help: "workspace id or name, or * for all", default: "*" },
    name: {
      type: "string",
      placeholder: "PERSON",
      help: "name in the audit log (default: your user name)",
    },
    "dashboard-url": dashboardUrl,
    ...database,
    json,
  },
  response: objectShape(fields),
  run: async (options, io) => {
    const role = PERSON_ROLES.find((one) => one === options.role);
    if (role === undefined) throw invalidValue("role", options.role, `one of ${PERSON_ROLES.join(", ")}`);
    const given = options.name && parseName("name", options.name, { lengthMax: PERSON_NAME_LENGTH_MAX });
    const dashboard = options["dashboard-url"];
    const url =
      dashboard === undefined ? (runningDevUrl(options) ?? DEFAULT_URL) : parseDashboardUrl("dashboard-url", dashboard);
    const workspace = options.workspace === EVERY_WORKSPACE ? undefined : options.workspace;
    const row = await withWorkspace({ ...options, workspace }, async (administrator, { id }) => {
      const name = given ?? administrator.actor.name;
      const workspaceId = workspace === undefined ? undefined : id;
      const link = await makeSignInLink(administrator, { name, role, workspaceId, logWorkspaceId: id });
      const { linkId, expiresAt, token } = link;
      return { address: signInAddress(url, token), id: linkId, name, role, workspaceId, expiresAt };
    });
    printOne(io, options, { fields, row });
    return 0;
  },
});

/**
 * Returns the URL of a running `postern dev`; `undefined` with an explicit database, because `postern dev` serves the dashboard only for
 * its own database.
 */
const runningDevUrl = (
  options: Parameters<typeof readAddress>[0] & { readonly "data-dir": string },
): string | undefined => (readAddress(options) === undefined ? findRunningDev(options["data-dir"])?.apiUrl : undefined);
