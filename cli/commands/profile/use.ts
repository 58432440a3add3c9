import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { profileOf, profilesFile, readProfiles, writeProfiles } from "../../profiles.ts";
import { name, profileFields } from "./fields.ts";

export const profileUse = defineCommand({
  name: "profile use",
  options: { name, json },
  response: objectShape(profileFields),
  run: async (options, io) => {
    const file = profilesFile(io.env);
    const all = readProfiles(file);
    const row = { ...profileOf(all, options.name), name: options.name, isCurrent: true };
    writeProfiles(file, { ...all, current: options.name });
    printOne(io, options, {
      fields: profileFields,
      row,
      sentence: `profile ${options.name} is the default: ${row.apiUrl}`,
    });
    return 0;
  },
});
