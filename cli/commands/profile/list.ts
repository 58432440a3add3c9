import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { json } from "../../options.ts";
import { printList } from "../../output.ts";
import { profilesFile, readProfiles } from "../../profiles.ts";
import { profileFields } from "./fields.ts";

export const profileList = defineCommand({
  name: "profile list",
  description: "Does not show the root keys.",
  options: { json },
  response: listShape("profiles", profileFields),
  run: async (options, io) => {
    const { current, profiles } = readProfiles(profilesFile(io.env));
    const rows = Object.entries(profiles)
      .map(([name, profile]) => ({ ...profile, name, isCurrent: name === current }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    printList(io, options, { resources: "profiles", fields: profileFields, rows, max: rows.length });
    return 0;
  },
});
