import { PERSON_NAME_LENGTH_MAX } from "../../../api-server/domain/administration/sign-in-links.ts";
import { type SignedOutPerson, signOutPerson } from "../../../api-server/domain/administration/sign-out-person.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { type Fields, objectShape } from "../../fields.ts";
import { database, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseName } from "../../values.ts";

const fields: Fields<SignedOutPerson> = [
  { name: "sessions", title: "sessions ended", value: (row) => row.sessions },
  { name: "links", title: "links ended", value: (row) => row.links },
];

export const dashboardSignOut = defineCommand({
  name: "dashboard sign-out",
  description:
    "Takes effect for the next request. An OpenID user can sign in again; to prevent that, remove their role first.",
  options: {
    person: {
      type: "string",
      placeholder: "PERSON",
      help: "name, email address, or id at the provider",
      required: true,
    },
    ...database,
    json,
  },
  response: objectShape(fields),
  run: async (options, io) => {
    const person = parseName("person", options.person, { lengthMax: PERSON_NAME_LENGTH_MAX });
    const row = await withWorkspace({ ...options, workspace: undefined }, (administrator, { id }) =>
      signOutPerson(administrator, { person, logWorkspaceId: id }),
    );
    printOne(io, options, { fields, row });
    return 0;
  },
});
